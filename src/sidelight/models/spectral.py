"""The models with a nuclear norm: a mean of low rank, found with a proof."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sidelight.covariance import Covariance
from sidelight.errors import InputError
from sidelight.models.axes import Axis
from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.models.inputs import positive
from sidelight.problem import Problem, lam_max
from sidelight.solvers import Limits, Solution, Watch, grid, path, solve


class SpectralModel(PairModel):
    """A mean ``Psi = C_M A B' C_N`` with few columns in A and B."""

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        sigma2: float = 1.0,
        lam: float = 1.0,
        tol: float = 1e-4,
        max_rank: int | None = None,
        mean: str = "zero",
        random_state: int | None = None,
    ) -> None:
        self.row_cov, self.col_cov = row_cov, col_cov
        self.sigma2, self.lam, self.tol, self.max_rank = sigma2, lam, tol, max_rank
        self.mean, self.random_state = mean, random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.lam, "lam")
        positive(self.tol, "tol")
        if self.max_rank is not None and self.max_rank < 1:
            raise InputError(f"max_rank is {self.max_rank!r}", remedy="use 1 or more, or None")

    def _limits(self) -> Limits:
        return Limits(self.tol, self.max_rank)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(0 if self.random_state is None else self.random_state)

    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        found = solve(problem, self.lam, self._limits(), rng=self._rng(), watch=watch)
        self._keep(found)

    def _keep(self, found: Solution) -> None:
        factors = found.factors.contiguous()
        self.row_weights_, self.row_factors_ = factors.a, factors.p
        self.col_weights_, self.col_factors_ = factors.b, factors.q
        self.singular_values_, self.certificate_ = found.singular_values, found.certificate

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

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "row_weights": self.row_weights_,
            "row_factors": self.row_factors_,
            "col_weights": self.col_weights_,
            "col_factors": self.col_factors_,
            "singular_values": self.singular_values_,
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        for name in self._names():
            setattr(self, f"{name}_", arrays[name])

    @staticmethod
    def _names() -> tuple[str, ...]:
        return ("row_weights", "row_factors", "col_weights", "col_factors", "singular_values")


class ConstrainedMVGP(SpectralModel):
    """The paper's model: the Gaussian process prior and a penalty on the mean's nuclear norm.

    Parameters
    ----------
    row_cov, col_cov
        Covariances of the two axes; None is the identity on the items seen.
    sigma2
        Variance of the noise.
    lam
        Weight of the nuclear norm; the rank falls as it grows.
    tol
        Relative duality gap at which the fit is certified.
    max_rank
        Largest rank allowed; a fit that needs more is labelled "stopped".
    mean
        "zero", or "global" for the weighted mean of the values.
    random_state
        Seed of the solver's random starts.

    Attributes
    ----------
    certificate_
        The proof: status, objective, dual, relative_gap, rank, bound, seconds, trace.
    singular_values_
        Those of ``B`` in ``Psi = G_M B G_N'``.
    """

    def _ridge(self) -> float:
        return 1.0


class TraceGP(SpectralModel):
    """The nuclear norm alone, without the Gaussian process' ridge.

    Parameters and attributes are those of ConstrainedMVGP; ``certificate_.bound`` is None.
    """

    def _ridge(self) -> float:
        return 0.0


def regularization_path(
    model: SpectralModel,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    lams: ArrayLike | None = None,
    count: int = 10,
    ratio: float = 0.01,
) -> Iterator[SpectralModel]:
    """Yield fitted models along a path of ``lam``, from the largest down, each warm-started.

    Without ``lams`` the path has ``count`` log-spaced values from the exact largest ``lam`` with a
    nonzero mean down to ``ratio`` times it. The model given is not fitted itself.
    """
    prepared = clone(model)
    problem = prepared._prepare(X, y, sample_weight)
    rng = prepared._rng()
    values = grid(lam_max(problem, rng), count, ratio) if lams is None else np.atleast_1d(lams)
    for lam, found in path(problem, map(float, values), prepared._limits(), rng=rng):
        fitted = copy(prepared).set_params(lam=lam)
        fitted._keep(found)
        yield fitted
