"""The immutable table of known entries with what is known about its rows and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sidelight.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Csr: TypeAlias = "sparse.csr_array[np.float64, tuple[int, int]]"

SYMMETRIC_WITHIN = 1e-9  # relative to the largest similarity: text files carry rounding


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What is known about the items of one axis, besides their entries.

    Arrays that their owner could still write to are copied; the others are shared.

    Parameters
    ----------
    names
        A name to show for each item.
    graph
        Symmetric weights of the links: both directions stored, positive, no self-links.
    features
        One line of numbers for each item, dense or sparse.
    similarity
        A symmetric matrix, dense. It need not be positive semidefinite here.
    feature_names
        A name for each column of ``features``.
    """

    names: tuple[str, ...] | None = None
    graph: Csr | None = None
    features: Floats | Csr | None = None
    similarity: Floats | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, made in (
            ("names", _texts(self.names)),
            ("graph", None if self.graph is None else _graph(self.graph)),
            ("features", None if self.features is None else _features(self.features)),
            ("similarity", None if self.similarity is None else _similarity(self.similarity)),
            ("feature_names", _texts(self.feature_names)),
        ):
            object.__setattr__(self, name, made)
        self._check_feature_names()

    def sizes(self) -> dict[str, int]:
        """Return the number of items that each part describes."""
        parts = {"graph": self.graph, "features": self.features, "similarity": self.similarity}
        sizes = {name: int(part.shape[0]) for name, part in parts.items() if part is not None}
        return sizes if self.names is None else {"names": len(self.names), **sizes}

    def describe(self) -> str:
        """Return what is known, as part of a sentence."""
        known = [] if self.names is None else ["names"]
        known += [] if self.graph is None else [_describe_graph(self.graph)]
        known += [] if self.features is None else [f"{self.features.shape[1]:,} features"]
        known += [] if self.similarity is None else ["a similarity matrix"]
        return ", ".join(known) or "no side information"

    def _check_feature_names(self) -> None:
        if self.feature_names is None:
            return
        width = None if self.features is None else self.features.shape[1]
        if width != len(self.feature_names):
            raise InputError(
                f"{len(self.feature_names)} feature names for {width or 'no'} features",
                remedy="give one name for each column of the features",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Known entries of a table, by position, with the ids and the sides of its two axes.

    Parameters
    ----------
    row_ids, col_ids
        The ids of all rows and columns, with those that no entry mentions.
    pairs
        One (row, column) for each known entry; no pair twice.
    values
        The value of each entry.
    one_class
        Whether the entries are known positives, all of value 1, and the rest is unknown.
    rows, cols
        What else is known about the rows and the columns.
    notes
        What was dropped or merged on the way here.
    """

    row_ids: tuple[str, ...]
    col_ids: tuple[str, ...]
    pairs: Integers
    values: Floats
    one_class: bool = False
    rows: Side = field(default_factory=Side)
    cols: Side = field(default_factory=Side)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for axis in ("row", "col"):
            object.__setattr__(self, f"{axis}_ids", _ids(getattr(self, f"{axis}_ids"), axis))
        object.__setattr__(self, "pairs", _pairs(self.pairs, self.shape))
        object.__setattr__(self, "values", _values(self.values, len(self.pairs)))
        object.__setattr__(self, "notes", tuple(self.notes))
        if self.one_class and not bool(np.all(self.values == 1.0)):
            raise InputError(
                "a one-class set has a value other than 1", remedy="set one_class=False"
            )
        _check_side(self.rows, len(self.row_ids), "row")
        _check_side(self.cols, len(self.col_ids), "column")

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.row_ids), len(self.col_ids)

    @property
    def density(self) -> float:
        """The fraction of the table that is known, between 0 and 1."""
        cells = len(self.row_ids) * len(self.col_ids)
        return len(self.values) / cells if cells else 0.0

    def row_index(self, row_id: str) -> int:
        """Return the position of a row."""
        return _position(row_id, self.row_ids, "row")

    def col_index(self, col_id: str) -> int:
        """Return the position of a column."""
        return _position(col_id, self.col_ids, "column")

    def with_entries(self, pairs: ArrayLike, values: ArrayLike) -> Self:
        """Return a dataset with other entries on the same axes.

        A one-class set stays one as long as all values are 1; with sampled negatives it is not.
        """
        new = np.asarray(values, dtype=np.float64)
        one_class = self.one_class and bool(np.all(new == 1.0))
        return replace(self, pairs=np.asarray(pairs), values=new, one_class=one_class)

    def describe(self) -> str:
        """Return one paragraph with the counts of everything here."""
        kind = "known positives" if self.one_class else f"values{_span(self.values)}"
        cold = [n - len(np.unique(self.pairs[:, k])) for k, n in enumerate(self.shape)]
        text = (
            f"{len(self.row_ids):,} rows x {len(self.col_ids):,} columns with"
            f" {len(self.values):,} {kind} (density {self.density:.3g});"
            f" {cold[0]:,} rows and {cold[1]:,} columns have none."
            f" Rows: {self.rows.describe()}. Columns: {self.cols.describe()}."
        )
        return " ".join([text, *(f"Note: {note}." for note in self.notes)])


def near(wanted: str, known: Iterable[str]) -> str:
    """Return a hint at ids that look like the one wanted, or nothing."""
    # difflib compares with each id in turn: the bounds keep an error message under a second
    likely = (text for text in known if abs(len(text) - len(wanted)) <= 2)
    close = get_close_matches(wanted, list(islice(likely, 20_000)), n=3)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""


def asymmetry(matrix: Floats) -> tuple[int, int] | None:
    """Find the first place below the diagonal that differs from its mirror image."""
    within = SYMMETRIC_WITHIN * float(np.abs(matrix).max(initial=0.0))
    for i in range(1, len(matrix)):  # a row at a time: no second matrix of this size
        off = np.flatnonzero(np.abs(matrix[i, :i] - matrix[:i, i]) > within)
        if off.size:
            return i, int(off[0])
    return None


def first_duplicate(keys: Integers) -> int | None:
    """Find the first place whose key occurred before."""
    ordered = np.sort(keys)
    if not np.any(ordered[1:] == ordered[:-1]):
        return None
    order = np.argsort(keys, kind="stable")
    return int(order[1:][keys[order[1:]] == keys[order[:-1]]].min())


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array read-only: copied when somebody could still write to it, else shared."""
    frozen = array.copy() if array.flags.writeable else array
    frozen.setflags(write=False)
    return frozen


def _freeze_csr(matrix: Any) -> Csr:
    made: Csr = sparse.csr_array(matrix, dtype=np.float64)
    if not made.has_canonical_format:
        made = made.copy()
        made.sum_duplicates()
    parts = tuple(freeze(part) for part in (made.data, made.indices, made.indptr))
    return sparse.csr_array(parts, shape=made.shape)


def _texts(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _graph(graph: Csr) -> Csr:
    made = _freeze_csr(graph)
    if made.shape[0] != made.shape[1]:
        raise InputError(f"a graph of shape {made.shape}", remedy="give a square matrix of weights")
    if not bool(np.all(np.isfinite(made.data) & (made.data > 0))):
        raise InputError(
            "a graph with a weight that is not positive and finite", remedy="store links alone"
        )
    if made.diagonal().any():
        node = int(np.flatnonzero(made.diagonal())[0])
        raise InputError(f"a self-link at position {node}", remedy="clear the diagonal")
    difference = (made - made.T).tocoo()
    if difference.data.any():
        place = int(np.flatnonzero(difference.data)[0])
        a, b = int(difference.row[place]), int(difference.col[place])
        raise InputError(
            f"a graph whose links {a} to {b} and {b} to {a} differ",
            remedy="store both directions with one weight",
        )
    return made


def _features(features: Floats | Csr) -> Floats | Csr:
    is_sparse = sparse.issparse(features)
    made = _freeze_csr(features) if is_sparse else _dense(features, "features")
    numbers = made.data if isinstance(made, sparse.csr_array) else made
    if not bool(np.all(np.isfinite(numbers))):
        raise InputError("features with a value that is not finite", remedy="fill in or leave out")
    return made


def _similarity(similarity: Floats) -> Floats:
    made = _dense(similarity, "a similarity")
    if made.shape[0] != made.shape[1]:
        raise InputError(f"a similarity of shape {made.shape}", remedy="give a square matrix")
    if not bool(np.all(np.isfinite(made))):
        raise InputError("a similarity that is not finite", remedy="fill in every pair of items")
    if (place := asymmetry(made)) is not None:
        i, j = place
        raise InputError(
            f"the similarity at ({i}, {j}) is {made[i, j]:.10g}, at ({j}, {i}) {made[j, i]:.10g}",
            remedy="give a symmetric matrix, such as (S + S.T) / 2",
        )
    return made


def _dense(array: Any, what: str) -> Floats:
    made: Floats = np.asarray(array, dtype=np.float64)
    if made.ndim != 2:
        raise InputError(f"{what} with {made.ndim} dimensions", remedy="give a matrix")
    return freeze(made)


def _ids(ids: Iterable[str], axis: str) -> tuple[str, ...]:
    made = tuple(ids)
    if not all(isinstance(text, str) and text for text in made):
        raise InputError(f"{axis} ids that are not text or are empty", remedy="give text ids")
    if len(set(made)) < len(made):
        twice = Counter(made).most_common(1)[0][0]
        raise InputError(
            f"the {axis} id {twice!r} occurs twice", remedy="give each item its own id"
        )
    return made


def _pairs(pairs: Integers, shape: tuple[int, int]) -> Integers:
    made = np.asarray(pairs)
    if made.size == 0:
        made = made.reshape(-1, 2).astype(np.int64)
    if made.ndim != 2 or made.shape[1] != 2 or made.dtype.kind not in "iu":
        raise InputError(
            f"pairs of shape {made.shape} and type {made.dtype}",
            remedy="give an (L, 2) array of integers (row, column)",
        )
    made = made.astype(np.int64, copy=False)
    _check_range(made, shape)
    if (place := first_duplicate(made[:, 0] * shape[1] + made[:, 1])) is not None:
        raise InputError(
            f"the pair {tuple(made[place].tolist())} occurs twice", remedy="merge them"
        )
    return freeze(made)


def _check_range(pairs: Integers, shape: tuple[int, int]) -> None:
    outside = np.flatnonzero(((pairs < 0) | (pairs >= shape)).any(axis=1))
    if outside.size:
        raise InputError(
            f"the pair {tuple(pairs[outside[0]].tolist())} lies outside the {shape} table",
            remedy="count rows and columns from 0",
        )


def _values(values: Floats, count: int) -> Floats:
    made: Floats = np.asarray(values, dtype=np.float64)
    if made.shape != (count,):
        raise InputError(f"values of shape {made.shape} for {count} pairs", remedy="give one each")
    bad = np.flatnonzero(~np.isfinite(made))
    if bad.size:
        raise InputError(
            f"the value at position {bad[0]} is {made[bad[0]]}",
            remedy="leave out entries that are not known",
        )
    return freeze(made)


def _check_side(side: Side, count: int, axis: str) -> None:
    for part, size in side.sizes().items():
        if size != count:
            raise InputError(
                f"the {axis} {part} describe{'' if part[-1] == 's' else 's'} {size} items,"
                f" the table has {count} {axis}s",
                remedy=f"give one for each {axis}, in the order of the {axis} ids",
            )


def _position(wanted: str, ids: tuple[str, ...], axis: str) -> int:
    try:
        return ids.index(wanted)
    except ValueError:
        raise InputError(
            f"there is no {axis} {wanted!r}{near(str(wanted), ids)}",
            remedy=f"use one of the {len(ids):,} {axis} ids",
        ) from None


def _describe_graph(graph: Csr) -> str:
    alone = int(np.sum(np.diff(graph.indptr) == 0))
    return f"a graph of {graph.nnz // 2:,} links ({alone:,} items have none)"


def _span(values: Floats) -> str:
    return f" from {values.min():g} to {values.max():g}" if len(values) else ""
