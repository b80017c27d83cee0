"""The Gaussian process without a nuclear norm: the plain posterior mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance import Covariance
from sidelight.models.base import Axis, Floats, PairModel, Pairs, positive
from sidelight.problem import Problem
from sidelight.solvers import Watch, solve_linear

_BLOCK = 256  # rows scored at a time


class MVGP(PairModel):
    """The matrix-variate Gaussian process, ``lam = 0``: the mean of the exact posterior.

    Parameters
    ----------
    row_cov, col_cov
        Covariances of the two axes; None is the identity on the items seen.
    sigma2
        Variance of the noise.
    tol
        Relative duality gap at which the fit is certified.
    mean
        "zero", or "global" for the weighted mean of the values.

    Attributes
    ----------
    certificate_
        The proof: status, objective, dual, relative_gap, rank, bound, seconds, trace.
    alpha_
        One weight for each fitted entry: the mean is ``C_M [alpha] C_N``.
    """

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        sigma2: float = 1.0,
        tol: float = 1e-4,
        mean: str = "zero",
    ) -> None:
        self.row_cov, self.col_cov = row_cov, col_cov
        self.sigma2, self.tol, self.mean = sigma2, tol, mean

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.tol, "tol")

    def _ridge(self) -> float:
        return 1.0

    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        found = solve_linear(problem, self.tol, watch=watch)
        self.certificate_ = found.certificate
        self.alpha_ = np.empty_like(found.alpha)
        self.alpha_[problem.pattern.order] = found.alpha

    def _weights(self) -> sp.csr_array[Any]:
        shape = (self.row_cov_.size, self.col_cov_.size)
        return sp.csr_array((self.alpha_, self.pairs_.T), shape=shape)

    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        """Work by rows or by columns, whichever are fewer."""
        used_rows, at_row = np.unique(pairs[:, 0], return_inverse=True)
        used_cols, at_col = np.unique(pairs[:, 1], return_inverse=True)
        weights = self._weights()
        if len(used_rows) <= len(used_cols):
            return _by_rows(weights, rows, cols, used_rows, at_row, used_cols, at_col)
        return _by_rows(weights.T.tocsr(), cols, rows, used_cols, at_col, used_rows, at_row)

    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        everything = np.arange(cols.size)
        blocks = [index[i : i + _BLOCK] for i in range(0, len(index), _BLOCK)]
        weights = self._weights()
        found = [_spread(weights, rows, cols, block, everything) for block in blocks]
        return np.concatenate(found) if found else np.zeros((0, cols.size))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"alpha": self.alpha_}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.alpha_ = arrays["alpha"]


def _spread(
    weights: Any, rows: Axis, cols: Axis, block: NDArray[np.int64], wanted: NDArray[np.int64]
) -> Floats:
    """Return ``C_M[block] [alpha] C_N[:, wanted]``."""
    pulled = np.asarray(weights.T @ rows.rows(block).T)
    return cols.spread(pulled, cols.cov.apply(pulled), wanted).T


def _by_rows(
    weights: Any, rows: Axis, cols: Axis, used: Any, at_row: Any, wanted: Any, at_col: Any
) -> Floats:
    out = np.empty(len(at_row))
    order = np.argsort(at_row, kind="stable")
    stops = np.searchsorted(at_row[order], np.arange(_BLOCK, len(used) + _BLOCK, _BLOCK))
    start = 0
    for i, stop in enumerate(stops):
        block = used[i * _BLOCK : (i + 1) * _BLOCK]
        here = order[start:stop]
        table = _spread(weights, rows, cols, block, wanted)
        out[here] = table[at_row[here] - i * _BLOCK, at_col[here]]
        start = stop
    return out
