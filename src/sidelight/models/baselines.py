"""What any model has to beat, as estimators with the same interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import (
    Axis,
    Covariance,
    Diffusion,
    Identity,
    RandomWalk,
    Sum,
)
from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.models.spread import SpreadModel
from sidelight.solvers import Watch


class _OfItems(PairModel):
    """A score that its mean function and its columns' scores give, whatever the pair."""

    certificate_ = None

    def _columns(self, cols: Axis, index: NDArray[np.int64]) -> Floats:
        return np.zeros(len(index))

    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        return self._columns(cols, pairs[:, 1])

    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        return np.tile(self._columns(cols, np.arange(cols.size)), (len(index), 1))

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        pass

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        pass


class Popularity(_OfItems):
    """Every row likes what all rows have: the number of a column's entries above zero.

    Parameters
    ----------
    row_cov, col_cov
        Name the items of the axes; nothing else of them is used. A new column scores 0.
    """

    def __init__(
        self, row_cov: Covariance | None = None, col_cov: Covariance | None = None
    ) -> None:
        self.row_cov, self.col_cov = row_cov, col_cov

    def takes_positives(self) -> bool:
        """Say that known positives alone teach something."""
        return True

    def _columns(self, cols: Axis, index: NDArray[np.int64]) -> Floats:
        new, _ = cols.split(index)
        out = np.zeros(len(index))
        out[~new] = self.popularity_[index[~new]]
        return out


class Bias(_OfItems):
    """A mean, a bias for each row and one for each column, with variances that are learnt.

    Parameters
    ----------
    row_cov, col_cov
        Covariances of the two axes; None is the identity on the items seen.
    mean
        "biases", or "graph-biases" for biases drawn from the covariances.
    """

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        mean: str = "biases",
    ) -> None:
        self.row_cov, self.col_cov, self.mean = row_cov, col_cov, mean

    def _check_parameters(self) -> None:
        if self.mean not in ("biases", "graph-biases"):
            raise InputError(
                f"mean is {self.mean!r} and Bias is nothing without biases",
                remedy="use 'biases' or 'graph-biases'",
            )


class Propagation(SpreadModel):
    """Entries spread over the graphs by random walks with restarts, as in PRINCE.

    The scores are ``W_M Y W_N`` with ``W = (1 - alpha) (I - alpha N)^-1`` on each axis over whose
    graph they spread, N being its normalised adjacency, and Y the entries, 0 where unknown.

    Parameters
    ----------
    row_cov, col_cov
        Name the items of the axes and hold their graphs: a Diffusion, a RandomWalk, or a sum with
        one. New items are described by their links alone, or by their number on an axis over
        which nothing spreads.
    over
        "rows", "columns" or "both"; None is wherever there is a graph.
    alpha
        How likely each step of a walk goes on.
    """

    certificate_ = None

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        over: str | None = None,
        alpha: float = 0.8,
    ) -> None:
        self.row_cov, self.col_cov, self.over, self.alpha = row_cov, col_cov, over, alpha

    def takes_positives(self) -> bool:
        """Say that known positives alone teach something."""
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.over not in (None, "rows", "columns", "both"):
            raise InputError(
                f"over is {self.over!r}", remedy="use 'rows', 'columns', 'both' or None"
            )

    def _name(self, data: Dataset | None, pairs: Pairs) -> None:
        super()._name(data, pairs)
        wanted = {"rows": (True, False), "columns": (False, True), "both": (True, True)}
        graphs = [_graph(cov) for cov in (self.row_cov_, self.col_cov_)]
        used = wanted.get(str(self.over), tuple(graph is not None for graph in graphs))
        if not any(used):
            raise InputError(
                "neither the rows nor the columns have a graph",
                remedy="give the rows or the columns a graph: a Diffusion or a RandomWalk",
            )
        for axis, graph, spread in zip(("row", "column"), graphs, used, strict=True):
            if spread and graph is None:
                raise InputError(
                    f"the {axis}s have no graph", remedy="give one, or spread over the other axis"
                )
        self.row_cov_, self.col_cov_ = (
            RandomWalk(graph, self.alpha) if spread else Identity(cov.size)
            for cov, graph, spread in zip((self.row_cov_, self.col_cov_), graphs, used, strict=True)
        )

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        self.alpha_ = values * weights


def _graph(cov: Covariance) -> Any:
    """Return the first graph in a covariance; None without one."""
    parts = cov.parts if isinstance(cov, Sum) else (cov,)
    return next((p.graph for p in parts if isinstance(p, (Diffusion, RandomWalk))), None)
