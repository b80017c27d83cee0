"""One axis while it is being read; rows and columns are two of the same."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from narwhals.dependencies import is_into_dataframe
from numpy.typing import NDArray
from scipy import sparse

from sidelight.data.columns import (
    Index,
    Pairs,
    Unknown,
    read_ids,
    read_matrix,
    read_pairs,
    read_texts,
    unknown_id,
)
from sidelight.data.dataset import Csr, Floats, Side, asymmetry
from sidelight.data.headers import EDGES, find_ids, find_triple
from sidelight.data.tables import (
    HEADER,
    FrameTable,
    ListTable,
    MatrixMarketTable,
    Table,
    open_table,
)
from sidelight.errors import InputError


@dataclass(frozen=True, slots=True)
class SideInputs:
    """What the user gives for one axis: paths, frames, matrices, graphs, or nothing.

    Parameters
    ----------
    word
        ``row`` or ``col``.
    ids
        The index set.
    edges, features, kernel
        The sides.
    """

    word: str
    ids: object = None
    edges: object = None
    features: object = None
    kernel: object = None


class Axis:
    """The index set of one axis, known before the entries are read, and its sides, read after.

    Parameters
    ----------
    inputs
        What the user gave.
    unknown
        What to do with ids outside the index set.
    notes
        Where to say what was dropped or merged.
    default_ids
        The index set when the user gives none and the entries come by position.
    """

    def __init__(
        self,
        inputs: SideInputs,
        unknown: Unknown,
        notes: list[str],
        default_ids: Iterable[str] | None = None,
    ) -> None:
        self.word, self._unknown, self._notes = inputs.word, unknown, notes
        self._edges = self._source(inputs.edges, "edges")
        self._features = self._source(inputs.features, "features")
        self._kernel = self._source(inputs.kernel, "kernel")
        self.names: tuple[str, ...] | None = None
        self.index = self._index_set(inputs.ids, default_ids)

    def by_position(self, count: int, source: Table) -> Index:
        """Return the index for ids that are line numbers from 1, as in MatrixMarket files."""
        if count != len(self.index.ids) or self.index.grows:
            raise source.error(
                f"{count:,} {self.word}s are announced, the index set has {len(self.index.ids):,}",
                remedy=f"give the {self.word} ids in the order of the matrix, one for each",
            )
        return Index(map(str, range(1, count + 1)))

    def side(self) -> Side:
        """Read the sides; ids in the edges may still be new."""
        graph = self._graph()
        features, feature_names = self._feature_matrix()
        return Side(self.names, graph, features, self._similarity(), feature_names)

    def _source(self, given: object, part: str) -> Any:
        """Return a table when there are ids in it, else the matrix."""
        name = f"{self.word}_{part}"
        if given is None or _is_matrix(given):
            return given
        if isinstance(given, str | os.PathLike):
            return open_table(Path(given))
        if is_into_dataframe(given):
            return FrameTable(given, name, index_is_id=part != "edges")
        if part == "edges" and hasattr(given, "nodes") and hasattr(given, "edges"):
            return _network_table(given, name)
        raise _unusable(given, name)

    def _index_set(self, given: object, default_ids: Iterable[str] | None) -> Index:
        if given is not None:
            return self._given_ids(_id_table(given, f"{self.word}s"))
        if default_ids is not None:
            return Index(default_ids)
        for source in (self._kernel, self._features):
            if isinstance(source, Table) and not isinstance(source, MatrixMarketTable):
                return Index(read_ids(source, find_ids(source)))
        return Index(grows=True)

    def _given_ids(self, table: Table) -> Index:
        column = find_ids(table)
        if "name" in table.header:
            self.names = read_texts(table, table.header.index("name"))
        ignored = [name for name in table.header if name not in {"name", table.header[column]}]
        if ignored:
            self._notes.append(f"{table.name}: columns {', '.join(ignored)} ignored")
        return Index(read_ids(table, column))

    def _graph(self) -> Csr | None:
        if not isinstance(self._edges, Table):
            return None if self._edges is None else sparse.csr_array(self._positional("edges"))
        table, index = self._edges, self.index
        if isinstance(table, MatrixMarketTable):
            index = self.by_position(max(table.shape), table)
        columns = find_triple(table, EDGES, self._notes)
        links = read_pairs(table, columns, index, index, self._unknown)
        kept = links.known()
        self._note_dropped(table, len(links.first) - len(kept.first), "links")
        return _links_to_graph(kept, self.index.ids, self._notes)

    def _feature_matrix(self) -> tuple[Floats | Csr | None, tuple[str, ...] | None]:
        table = self._features
        if not isinstance(table, Table):
            return (None if table is None else self._positional("features")), None
        if isinstance(table, MatrixMarketTable):
            return self._sparse_features(table), None
        at = find_ids(table)
        columns = [k for k in range(len(table.header)) if k != at]
        if not columns:
            raise table.error("there are no features", remedy="add columns", record=HEADER)
        matrix, order = read_matrix(table, columns), self._align(table, read_ids(table, at))
        return matrix[order], tuple(table.header[k] for k in columns)

    def _sparse_features(self, table: MatrixMarketTable) -> Csr:
        index = self.by_position(table.shape[0], table)
        width = Index(map(str, range(1, table.shape[1] + 1)))
        columns = list(range(len(table.header)))
        found = read_pairs(table, columns, index, width, "error")
        values = np.ones(len(found.first)) if found.numbers is None else found.numbers
        return sparse.csr_array((values, (found.first, found.second)), shape=table.shape)

    def _similarity(self) -> Floats | None:
        table = self._kernel
        if not isinstance(table, Table):
            return None if table is None else self._positional("kernel")
        at = find_ids(table)
        columns = [k for k in range(len(table.header)) if k != at]
        ids = read_ids(table, at)
        matrix = read_matrix(table, [columns[k] for k in _match_header(table, columns, ids)])
        if (place := asymmetry(matrix)) is not None:
            raise _asymmetric(table, ids, matrix, *place)
        order = self._align(table, ids)
        half: Floats = matrix[np.ix_(order, order)] / 2  # halves first: exact, and symmetric
        return half + half.T

    def _positional(self, part: str) -> Any:
        if self.index.grows:
            raise InputError(
                f"{self.word}_{part} is a matrix, and nothing says which ids its lines are",
                remedy=f"give the {self.word} ids in its order, or a frame with a column id",
            )
        return getattr(self, f"_{part}")

    def _align(self, table: Table, ids: list[str]) -> NDArray[np.intp]:
        """Return the record of each item of the index set."""
        places = np.array([self.index.get(text, -1) for text in ids])
        strange = np.flatnonzero(places < 0)
        if strange.size and self._unknown == "error":
            record = int(strange[0])
            raise unknown_id(table, ids[record], self.index, record=record, column="id")
        self._note_dropped(table, strange.size, "lines")
        order = np.full(len(self.index.ids), -1, dtype=np.intp)
        order[places[places >= 0]] = np.flatnonzero(places >= 0)
        if order.min(initial=0) < 0:
            lost = self.index.ids[int(np.argmin(order))]
            raise table.error(
                f"there is no line for the id {lost!r}", remedy="add one for every id"
            )
        return order

    def _note_dropped(self, table: Table, count: int, what: str) -> None:
        if count:
            self._notes.append(f"{table.name}: {count:,} {what} with unknown ids dropped")


def _is_matrix(value: object) -> bool:
    return sparse.issparse(value) or (isinstance(value, np.ndarray) and value.ndim == 2)


def _unusable(given: object, name: str) -> InputError:
    return InputError(
        f"{name} is of type {type(given).__name__}",
        remedy="give a path, a data frame, a matrix or (for links) a networkx graph",
    )


def _id_table(given: Any, name: str) -> Table:
    if isinstance(given, str | os.PathLike):
        return open_table(Path(given))
    if is_into_dataframe(given):
        return FrameTable(given, name, index_is_id=True)
    return ListTable(name, id=given.tolist() if hasattr(given, "tolist") else list(given))


def _network_table(graph: Any, name: str) -> Table:
    links = list(graph.edges(data="weight", default=1.0))
    a, b, weights = zip(*links, strict=True) if links else ((), (), ())
    return ListTable(name, a=a, b=b, weight=weights)


def _match_header(table: Table, columns: list[int], ids: list[str]) -> list[int]:
    """Return the place of each id among the labels of the columns."""
    found = {table.header[k]: place for place, k in enumerate(columns)}
    odd = list(found.keys() - set(ids))
    if odd:
        raise table.error(
            f"there is a column {min(odd)!r} and no such line",
            remedy="name each id once in the header and once in the lines",
            record=HEADER,
        )
    lost = [k for k, text in enumerate(ids) if text not in found]
    if lost:
        raise table.error(
            f"the id {ids[lost[0]]!r} is not in the header",
            remedy="name each id once in the header and once in the lines",
            record=lost[0],
            column="id",
        )
    return [found[text] for text in ids]


def _asymmetric(table: Table, ids: list[str], matrix: Floats, i: int, j: int) -> InputError:
    return table.error(
        f"the similarity of {ids[i]!r} and {ids[j]!r} is {matrix[i, j]:.10g} here"
        f" and {matrix[j, i]:.10g} in the line of {ids[j]!r}",
        remedy="write the same value in both places",
        record=i,
        column=ids[j],
    )


def _links_to_graph(links: Pairs, ids: list[str], notes: list[str]) -> Csr:
    """Return symmetric weights from links that are listed once or in both directions."""
    weights = np.ones(len(links.first)) if links.numbers is None else links.numbers
    _check_links(links, weights, ids)
    a = np.minimum(links.first, links.second).astype(np.int64)
    b = np.maximum(links.first, links.second)
    key = a * len(ids) + b
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    _check_same(links, weights, ids, order[again], order[again + 1])
    if again.size:
        notes.append(f"{links.source.name}: {again.size:,} links listed again merged")
    kept = np.delete(order, again + 1)
    ends = np.concatenate([a[kept], b[kept]]), np.concatenate([b[kept], a[kept]])
    return sparse.csr_array((np.tile(weights[kept], 2), ends), shape=(len(ids), len(ids)))


def _check_links(links: Pairs, weights: Floats, ids: list[str]) -> None:
    loops = np.flatnonzero(links.first == links.second)
    if loops.size:
        raise links.source.error(
            f"{ids[links.first[loops[0]]]!r} is linked to itself",
            remedy="remove self-links",
            record=links.record(int(loops[0])),
        )
    bad = np.flatnonzero(weights <= 0)
    if bad.size:
        raise links.source.error(
            f"the weight {weights[bad[0]]:g} is not positive",
            remedy="give positive weights and leave out links that are not there",
            record=links.record(int(bad[0])),
            column="weight",
        )


def _check_same(
    links: Pairs, weights: Floats, ids: list[str], before: NDArray[Any], after: NDArray[Any]
) -> None:
    differ = np.flatnonzero(weights[before] != weights[after])
    if differ.size:
        k = differ[np.argmin(after[differ])]
        one, two = int(before[k]), int(after[k])
        raise links.source.error(
            f"the link of {ids[links.first[two]]!r} and {ids[links.second[two]]!r} has the weight"
            f" {weights[two]:g} here and {weights[one]:g} before",
            remedy="give one weight for both directions",
            record=links.record(two),
            column="weight",
        )
