"""What the models with normal noise share: the problem they state."""

from __future__ import annotations

from abc import abstractmethod

from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.models.inputs import positive
from sidelight.problem import Problem
from sidelight.solvers import Watch


class GaussianModel(PairModel):
    """A mean under a Gaussian process prior and noise of variance ``sigma2``."""

    sigma2: float
    tol: float
    unobserved_weight: float = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.sigma2, "sigma2")
        positive(self.tol, "tol")

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        self._solve(self._problem(pairs, values, weights), watch)

    def _problem(self, pairs: Pairs, values: Floats, weights: Floats) -> Problem:
        """State the problem of what the mean function leaves."""
        return Problem(
            pairs,
            values,
            weights / self.sigma2,
            self.row_cov_,
            self.col_cov_,
            h=self._ridge(),
            w0=self.unobserved_weight,
        )

    @abstractmethod
    def _ridge(self) -> float:
        """Return h."""

    @abstractmethod
    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        """Solve and keep the answer."""
