"""Models whose mean is the covariances' product with one weight for each entry."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Axis
from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.posterior import Support, spread_support
from sidelight.problem import Pattern, spread_pairs, spread_rows

_BLOCK = 256  # rows scored at a time


class SpreadModel(PairModel):
    """``Psi = C_M [alpha] C_N``: every entry spreads its weight to all that covary with it."""

    alpha_: Floats

    def _pattern(self) -> tuple[Pattern, Floats]:
        pattern = Pattern(self.pairs_, (self.row_cov_.size, self.col_cov_.size))
        return pattern, self.alpha_[pattern.order, None]

    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        return spread_pairs(*self._pattern(), rows, cols, pairs)[:, 0]

    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        spread, everything = self._pattern(), np.arange(cols.size)
        out = np.empty((len(index), cols.size))
        for at in range(0, len(index), _BLOCK):
            here = slice(at, at + _BLOCK)
            out[here] = spread_rows(*spread, rows, cols, index[here], everything)[:, :, 0]
        return out

    def _support(self, row: int, col: int, rows: Axis, cols: Axis) -> Support:
        by_row, by_col = rows.rows(np.array([row]))[0], cols.rows(np.array([col]))[0]
        return spread_support(self.pairs_, self.values_, self.alpha_, by_row, by_col)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"alpha": self.alpha_}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.alpha_ = arrays["alpha"]
