"""Models whose mean is a product of two factors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Axis
from sidelight.errors import InputError
from sidelight.models.base import Floats, Pairs
from sidelight.models.gaussian import GaussianModel
from sidelight.models.inputs import positive, whole
from sidelight.posterior import Support, factor_support
from sidelight.problem import Factors

_ARRAYS = ("row_weights", "row_factors", "col_weights", "col_factors", "singular_values")


class FactorModel(GaussianModel):
    """A mean ``Psi = C_M A B' C_N`` with few columns in A and B."""

    random_state: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.unobserved_weight != 0:
            positive(self.unobserved_weight, "unobserved_weight")
            if self.mean != "zero":
                raise InputError(
                    f"unobserved_weight makes unknown cells zeros, and mean is {self.mean!r}",
                    remedy="use mean='zero', or leave unobserved_weight out",
                )
        if self.random_state is not None:
            whole(self.random_state, "random_state", least=0)

    def takes_positives(self) -> bool:
        """Say whether unknown cells count as zeros, so that positives alone teach something."""
        return self.unobserved_weight > 0

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(0 if self.random_state is None else self.random_state)

    def _keep_factors(self, factors: Factors, values: Floats) -> None:
        factors = factors.contiguous()
        self.row_weights_, self.row_factors_ = factors.a, factors.p
        self.col_weights_, self.col_factors_ = factors.b, factors.q
        self.singular_values_ = values

    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        used_rows, at_row = np.unique(pairs[:, 0], return_inverse=True)
        used_cols, at_col = np.unique(pairs[:, 1], return_inverse=True)
        p = rows.spread(self.row_weights_, self.row_factors_, used_rows)
        q = cols.spread(self.col_weights_, self.col_factors_, used_cols)
        return np.asarray(np.einsum("lr,lr->l", p[at_row], q[at_col]))

    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        p = rows.spread(self.row_weights_, self.row_factors_, index)
        q = cols.spread(self.col_weights_, self.col_factors_, np.arange(cols.size))
        return np.asarray(p @ q.T)

    def _support(self, row: int, col: int, rows: Axis, cols: Axis) -> Support:
        left = self.values_ - self.mean_.at(self.pairs_, self._rows(), self._cols())
        p = rows.spread(self.row_weights_, self.row_factors_, np.array([row]))[0]
        q = cols.spread(self.col_weights_, self.col_factors_, np.array([col]))[0]
        return factor_support(
            self.pairs_,
            self.values_,
            self._problem(self.pairs_, left, self.weights_),
            Factors(self.row_weights_, self.row_factors_, self.col_weights_, self.col_factors_),
            self.singular_values_,
            p,
            q,
        )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, f"{name}_") for name in _ARRAYS}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        for name in _ARRAYS:
            setattr(self, f"{name}_", arrays[name])
