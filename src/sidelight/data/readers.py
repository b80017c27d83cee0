"""Datasets from files, data frames and sparse matrices."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args

import numpy as np
from scipy import sparse

from sidelight.data.axes import Axis, SideInputs
from sidelight.data.columns import Pairs, Unknown, read_pairs
from sidelight.data.dataset import Dataset, Floats, Integers, first_duplicate
from sidelight.data.headers import ENTRIES, find_named, find_triple
from sidelight.data.tables import (
    SUFFIXES,
    FrameTable,
    MatrixMarketTable,
    Source,
    Table,
    find_table,
    open_table,
)
from sidelight.errors import InputError

Duplicates: TypeAlias = Literal["error", "first", "last", "mean", "sum", "max"]


class Sides(TypedDict, total=False):
    """What may be given about rows and columns, besides their ids.

    Each is a path to a file, or an object in memory:

    - edges: a frame of links, a networkx graph, or a symmetric matrix of weights;
    - features: a frame with a column ``id`` (pandas: or with ids as index), or a matrix;
    - kernel: a frame with a column ``id`` (pandas: or ids as index) and the ids as labels of
      the other columns, or a symmetric matrix.

    A matrix, dense or sparse, has its lines in the order of the ids, which must then be given.
    """

    row_edges: object
    col_edges: object
    row_features: object
    col_features: object
    row_kernel: object
    col_kernel: object


def read_dataset(
    path: str | os.PathLike[str],
    *,
    entries: str = "entries",
    duplicates: Duplicates = "error",
    unknown: Unknown = "error",
    rows: object = None,
    cols: object = None,
    **sides: Unpack[Sides],
) -> Dataset:
    """Read a folder, or one file of entries.

    Parameters
    ----------
    path
        A folder with the layout that the module ``sidelight.data`` describes, or a file of
        entries. In a folder the other files are found by name; what is given here comes first.
    entries
        The name, without suffix, of the file of entries in the folder.
    duplicates
        What to do with a pair that is listed twice. One-class entries are merged by any rule.
    unknown
        What to do with ids outside the index set: ``error``, or ``drop`` and note the count.
    rows, cols
        The index sets: paths, frames with a column ``id``, or lists of ids.
    **sides
        See `Sides`.
    """
    folder = Path(path)
    if not folder.is_dir():
        table = open_table(folder)
        return _from_table(table, None, rows, cols, sides, duplicates, unknown)
    table = open_table(_find_entries(folder, entries))
    found: dict[str, Any] = {name: find_table(folder, name) for name in Sides.__annotations__}
    given = {name: value for name, value in sides.items() if value is not None}
    rows = find_table(folder, "rows") if rows is None else rows
    cols = find_table(folder, "cols") if cols is None else cols
    return _from_table(table, None, rows, cols, {**found, **given}, duplicates, unknown)


def dataset_from_frame(
    frame: object,
    *,
    row: str = "row",
    col: str = "col",
    value: str | None = "value",
    duplicates: Duplicates = "error",
    unknown: Unknown = "error",
    rows: object = None,
    cols: object = None,
    **sides: Unpack[Sides],
) -> Dataset:
    """Make a dataset from a pandas, polars or other eager frame with one line for each entry.

    Parameters
    ----------
    frame
        The entries.
    row, col
        The columns of ids, of text or whole numbers.
    value
        The column of values; None when the entries are known positives.
    duplicates, unknown, rows, cols, **sides
        As for `read_dataset`.
    """
    columns = (row, col) if value is None else (row, col, value)
    table = FrameTable(frame, "entries")
    return _from_table(table, columns, rows, cols, sides, duplicates, unknown)


def dataset_from_sparse(
    matrix: Any,
    row_ids: object = None,
    col_ids: object = None,
    *,
    one_class: bool = False,
    duplicates: Duplicates = "error",
    unknown: Unknown = "error",
    **sides: Unpack[Sides],
) -> Dataset:
    """Make a dataset from a scipy sparse matrix: what is stored is known, zeros included.

    Parameters
    ----------
    matrix
        The entries.
    row_ids, col_ids
        The ids in the order of the matrix: lists, paths, or frames with a column ``id``.
        Without them the ids are ``"0"``, ``"1"``, ...
    one_class
        Whether the stored entries are known positives; their values must then be 1.
    duplicates, unknown, **sides
        As for `read_dataset`.
    """
    if not sparse.issparse(matrix):
        raise InputError(
            f"the entries are a {type(matrix).__name__}", remedy="give a scipy sparse matrix"
        )
    _check_option("duplicates", duplicates, Duplicates)
    entries: Any = matrix
    found = entries.tocoo()
    ids: list[Iterable[str]] = [map(str, range(count)) for count in found.shape]
    notes: list[str] = []
    axes = _axes(row_ids, col_ids, sides, unknown, notes, ids)
    for axis, count in zip(axes, found.shape, strict=True):
        _check_count(axis, count)
    values = np.array(found.data, dtype=np.float64)  # a copy: it will be made read-only
    pairs = Pairs(Source("the matrix"), found.row, found.col, values)
    return _finish(pairs, axes, duplicates, notes, one_class=one_class)


def _from_table(
    table: Table,
    columns: tuple[str, ...] | None,
    rows: object,
    cols: object,
    sides: Any,
    duplicates: Duplicates,
    unknown: Unknown,
) -> Dataset:
    _check_option("duplicates", duplicates, Duplicates)
    notes: list[str] = []
    places = find_triple(table, ENTRIES, notes) if columns is None else find_named(table, columns)
    axes = _axes(rows, cols, sides, unknown, notes, _line_numbers(table))
    first, second = (axis.index for axis in axes)
    if isinstance(table, MatrixMarketTable):
        first, second = (
            axis.by_position(n, table) for axis, n in zip(axes, table.shape, strict=True)
        )
    pairs = read_pairs(table, places, first, second, unknown)
    known = pairs.known()
    if len(known.first) < len(pairs.first):
        dropped = len(pairs.first) - len(known.first)
        notes.append(f"{table.name}: {dropped:,} entries with unknown ids dropped")
    return _finish(known, axes, duplicates, notes, one_class=pairs.numbers is None)


def _line_numbers(table: Table) -> list[Iterable[str]] | None:
    """Return the ids that a MatrixMarket file gives by its sizes."""
    if not isinstance(table, MatrixMarketTable):
        return None
    if table.is_symmetric:
        raise table.error("the entries are stored as symmetric", remedy="write them as general")
    return [map(str, range(1, count + 1)) for count in table.shape]


def _axes(
    rows: object,
    cols: object,
    sides: Any,
    unknown: Unknown,
    notes: list[str],
    default_ids: list[Iterable[str]] | None,
) -> tuple[Axis, Axis]:
    _check_option("unknown", unknown, Unknown)
    if strange := set(sides) - set(Sides.__annotations__):
        raise TypeError(f"unexpected keyword arguments: {', '.join(sorted(strange))}")
    parts = ("edges", "features", "kernel")
    made = [
        Axis(
            SideInputs(word, ids, *(sides.get(f"{word}_{part}") for part in parts)),
            unknown,
            notes,
            default,
        )
        for word, ids, default in zip(
            ("row", "col"), (rows, cols), default_ids or (None, None), strict=True
        )
    ]
    return made[0], made[1]


def _finish(
    pairs: Pairs, axes: tuple[Axis, Axis], duplicates: Duplicates, notes: list[str], one_class: bool
) -> Dataset:
    rows, cols = (axis.side() for axis in axes)  # edges may add ids: before the ids are taken
    row_ids, col_ids = (tuple(axis.index.ids) for axis in axes)
    table, values = _merge(pairs, row_ids, col_ids, duplicates, notes, one_class)
    return Dataset(row_ids, col_ids, table, values, one_class, rows, cols, tuple(notes))


def _merge(
    pairs: Pairs,
    row_ids: tuple[str, ...],
    col_ids: tuple[str, ...],
    duplicates: Duplicates,
    notes: list[str],
    one_class: bool,
) -> tuple[Integers, Floats]:
    """Return the entries without duplicates, in the order in which they came."""
    values = np.ones(len(pairs.first)) if pairs.numbers is None else pairs.numbers
    key = pairs.first.astype(np.int64) * len(col_ids) + pairs.second
    twice = first_duplicate(key)
    if twice is not None and duplicates == "error":
        raise _duplicate(pairs, twice, row_ids, col_ids)
    kept: Any = slice(None)
    if twice is not None:
        kept, values = _combine(key, values, "first" if one_class else duplicates)
        dropped = len(key) - len(kept)
        notes.append(f"{pairs.source.name}: {dropped:,} duplicate entries merged ({duplicates})")
    del key
    table = np.empty((len(values), 2), dtype=np.int64)
    table[:, 0], table[:, 1] = pairs.first[kept], pairs.second[kept]
    table.setflags(write=False)
    values.setflags(write=False)
    return table, values


def _duplicate(
    pairs: Pairs, place: int, row_ids: tuple[str, ...], col_ids: tuple[str, ...]
) -> InputError:
    row_id, col_id = row_ids[pairs.first[place]], col_ids[pairs.second[place]]
    return pairs.source.error(
        f"the entry of row {row_id!r} and column {col_id!r} was there before",
        remedy="keep one, or say duplicates='first', 'last', 'mean', 'sum' or 'max'",
        record=pairs.record(place),
    )


def _combine(key: Integers, values: Floats, rule: Duplicates) -> tuple[Integers, Floats]:
    """Return the first place of each key and its combined value."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    kept, counts = order[starts], np.diff(starts, append=len(key))
    ordered = values[order]
    rules: dict[str, Callable[[], Floats]] = {
        "first": lambda: ordered[starts],
        "last": lambda: ordered[starts + counts - 1],
        "sum": lambda: np.add.reduceat(ordered, starts),
        "mean": lambda: np.add.reduceat(ordered, starts) / counts,
        "max": lambda: np.maximum.reduceat(ordered, starts),
    }
    came = np.argsort(kept)
    return kept[came], rules[rule]()[came]


def _find_entries(folder: Path, stem: str) -> Path:
    found = find_table(folder, stem)
    if found is None:
        names = ", ".join(f"{stem}{suffix}" for suffix in SUFFIXES)
        raise InputError(
            f"there is no file of entries (looked for {names})",
            remedy="add one, or name another with entries=",
            path=folder,
        )
    return found


def _check_count(axis: Axis, count: int) -> None:
    if len(axis.index.ids) != count:
        raise InputError(
            f"{len(axis.index.ids):,} {axis.word} ids for {count:,} {axis.word}s of the matrix",
            remedy="give one id for each, in the order of the matrix",
        )


def _check_option(name: str, value: str, options: Any) -> None:
    if value not in get_args(options):
        raise InputError(
            f"{name}={value!r}", remedy=f"choose one of {', '.join(map(repr, get_args(options)))}"
        )
