"""Postdata: the answer as a distribution over the cells of the table.

Its mean is the model's. Its covariance is that of the Gaussian process given the entries: the
paper's constraint acts on the mean alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from sidelight.covariance import Axis
from sidelight.errors import InputError
from sidelight.posterior.draws import prior_draws
from sidelight.posterior.entries import Entries, Query
from sidelight.posterior.iterative import FEW, Iterative
from sidelight.posterior.systems import Factored, System
from sidelight.posterior.weights import Weights, features
from sidelight.problem import Pattern, spread_pairs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mean = Callable[[Query], Floats]

PRECISION = 1e-6
_FEATURES = 4096  # features up to which their weights are solved for
_MOST = 20_000  # entries that are factored where many pairs are asked for
_MANY = 0.1  # pairs for each entry that count as many
_CROSS = 2**26  # numbers of the entries' covariances with the pairs at a time
_PAIRS = 128  # pairs solved for at a time, where the solution is iterative


class Postdata:
    """A Gaussian distribution over all cells, known or not, of known rows and columns or new ones.

    Standard deviations and covariances are of the latent value, without the noise of an
    observation; ``noise`` adds it where a method offers that. New rows and columns are described as
    in ``predict``.

    Parameters
    ----------
    entries
        The fitted entries.
    mean
        The mean of pairs.
    noise
        The variance of an observation's noise at weight 1.
    precision
        The largest error of a variance, relative to the prior's, where it is found by iterations.

    Attributes
    ----------
    residual
        The largest relative residual of all linear systems solved so far. It is relative to the
        pair's covariance with the entries: where they say little of a pair, a large one does no
        harm, and ``error`` is what counts.
    error
        A bound on the error of all variances so far, relative to the prior's.
    """

    def __init__(
        self, entries: Entries, mean: Mean, noise: float, precision: float = PRECISION
    ) -> None:
        self._entries, self._mean, self.noise, self.precision = entries, mean, noise, precision
        self._system: System | None = None

    @property
    def residual(self) -> float:
        """The largest relative residual of all linear systems solved so far."""
        return 0.0 if self._system is None else self._system.residual

    @property
    def error(self) -> float:
        """A bound on the error of all variances so far, relative to the prior's."""
        return 0.0 if self._system is None else self._system.error

    def mean(self, pairs: ArrayLike, *, new_rows: Any = None, new_cols: Any = None) -> Floats:
        """Return the mean of pairs (row, column)."""
        return self._mean(self._query(pairs, new_rows, new_cols))

    def std(self, pairs: ArrayLike, *, new_rows: Any = None, new_cols: Any = None) -> Floats:
        """Return the standard deviation of the latent value of pairs (row, column)."""
        return np.sqrt(self._variances(self._query(pairs, new_rows, new_cols)))

    def cov(self, pairs: ArrayLike, *, new_rows: Any = None, new_cols: Any = None) -> Floats:
        """Return the covariance between the latent values of pairs (row, column)."""
        query = self._query(pairs, new_rows, new_cols)
        if not len(query):
            return np.zeros((0, 0))
        return query.covariance() - self._solver(len(query)).explained(query)

    def sample(
        self,
        pairs: ArrayLike,
        n: int = 1,
        random_state: int | np.random.Generator | None = None,
        *,
        new_rows: Any = None,
        new_cols: Any = None,
    ) -> Floats:
        """Return joint draws of the latent values of pairs, of shape (n, pairs).

        By pathwise conditioning (Matheron's rule): a draw from the prior, corrected by one solution
        for what it says of the entries.
        """
        query = self._query(pairs, new_rows, new_cols)
        rng, known = np.random.default_rng(random_state), len(self._entries)
        if n == 0 or not len(query):
            return np.zeros((n, len(query)))
        both = Query(np.vstack([self._entries.pairs, query.pairs]), query.rows, query.cols)
        drawn = prior_draws(both, n, rng)
        noise = rng.standard_normal((known, n)) * np.sqrt(self._entries.noise)[:, None]
        weights = self._solver(known).solve(drawn[:known] + noise, np.ones(n))[0]
        pattern = Pattern(self._entries.pairs, self._entries.shape)
        back = spread_pairs(pattern, weights[pattern.order], query.rows, query.cols, query.pairs)
        return (drawn[known:] - back + self._mean(query)[:, None]).T

    def exceed(
        self,
        pairs: ArrayLike,
        value: float,
        *,
        noise: bool = False,
        new_rows: Any = None,
        new_cols: Any = None,
    ) -> Floats:
        """Return the probability that pairs exceed a value; with ``noise``, once observed."""
        query = self._query(pairs, new_rows, new_cols)
        spread = np.sqrt(self._variances(query) + noise * self.noise)
        above = self._mean(query) - value
        safe = np.where(spread > 0, spread, 1.0)
        return np.where(spread > 0, ndtr(above / safe), (above > 0).astype(float))

    def interval(
        self,
        pairs: ArrayLike,
        level: float = 0.9,
        *,
        noise: bool = True,
        new_rows: Any = None,
        new_cols: Any = None,
    ) -> tuple[Floats, Floats]:
        """Return the ends of central intervals: of an observation, or of the latent value."""
        return ends(self, pairs, level, noise, {"new_rows": new_rows, "new_cols": new_cols})

    def _query(self, pairs: ArrayLike, new_rows: Any, new_cols: Any) -> Query:
        index = np.asarray(pairs)
        if index.ndim != 2 or index.shape[1] != 2 or (index.size and index.dtype.kind not in "iu"):
            raise InputError(
                f"pairs have shape {index.shape} and dtype {index.dtype}",
                remedy="give a (k, 2) array of (row, column) numbers",
            )
        rows = Axis.place("row", self._entries.row_cov, new_rows)
        cols = Axis.place("column", self._entries.col_cov, new_cols)
        query = Query(index.astype(np.int64).reshape(-1, 2), rows, cols)
        rows.check(query.pairs[:, 0])
        cols.check(query.pairs[:, 1])
        return query

    def _variances(self, query: Query) -> Floats:
        """Return the variances, pairs of the same row together."""
        system, out = self._solver(len(query)), query.variances()
        order = np.lexsort(query.pairs.T[::-1])
        for part in self._parts(len(query)):
            out[order[part]] -= system.explained_variances(query.part(order[part]))
        return np.maximum(out, 0.0)

    def _parts(self, count: int) -> list[slice]:
        step = max(_CROSS // max(len(self._entries), 1), 1)
        if isinstance(self._system, Iterative):
            step = min(step, _PAIRS)
        return [slice(at, at + step) for at in range(0, count, step)]

    def _solver(self, asked: int) -> System:
        """Choose how to solve, once and for all unless many more pairs are asked for."""
        size = len(self._entries)
        many = size <= _MOST and asked >= _MANY * size
        if self._system is None or (many and isinstance(self._system, Iterative)):
            before, self._system = self._system, self._chosen(size <= FEW or many)
            if before is not None:
                self._system.residual, self._system.error = before.residual, before.error
        return self._system

    def _chosen(self, factored: bool) -> System:
        entries = self._entries
        count = features(entries.row_cov) * features(entries.col_cov)
        if count <= _FEATURES and count < len(entries):
            return Weights(entries)
        return Factored(entries) if factored else Iterative(entries, self.precision)


def ends(
    postdata: Any, pairs: ArrayLike, level: float, noise: bool, new: dict[str, Any]
) -> tuple[Floats, Floats]:
    """Return the ends of central normal intervals around the mean of pairs."""
    mean, std = postdata.mean(pairs, **new), postdata.std(pairs, **new)
    return around(mean, std, noise * postdata.noise, level)


def around(mean: Floats, std: Floats, noise: float, level: float) -> tuple[Floats, Floats]:
    """Return the ends of central normal intervals with a variance of noise in them."""
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}", remedy="choose a probability between 0 and 1")
    half = float(ndtri((1 + level) / 2)) * np.sqrt(std**2 + noise)
    return mean - half, mean + half
