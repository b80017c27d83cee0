"""Models whose mean is the covariances' product with one weight for each entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance import Axis
from sidelight.models.base import Floats, PairModel, Pairs

_BLOCK = 256  # rows scored at a time


class SpreadModel(PairModel):
    """``Psi = C_M [alpha] C_N``: every entry spreads its weight to all that covary with it."""

    alpha_: Floats

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
