"""What the models with normal noise share: the problem they state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sidelight.data import Dataset
from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.models.inputs import positive
from sidelight.posterior import PRECISION, Entries, Postdata, Query
from sidelight.problem import Problem
from sidelight.solvers import Watch


class GaussianModel(PairModel):
    """A mean under a Gaussian process prior and noise of variance ``sigma2``."""

    sigma2: float
    sigma2_: float
    tol: float
    unobserved_weight: float = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.sigma2, "sigma2")
        positive(self.tol, "tol")

    def _prepare(
        self, X: ArrayLike | Dataset, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Pairs, Floats, Floats]:
        prepared = super()._prepare(X, y, sample_weight)
        self.sigma2_ = float(self.sigma2)
        return prepared

    def postdata(self, precision: float = PRECISION) -> Postdata:
        """Return the answer as a distribution, its variances right to ``precision``.

        That is an error relative to the prior's variance; smaller tables are exact to rounding.
        """
        check_is_fitted(self)
        positive(precision, "precision")
        self._check_prior()
        noise = self.sigma2_ / self.weights_
        entries = Entries(self.pairs_, noise, self.row_cov_, self.col_cov_)
        return Postdata(entries, self._mean_of, self.sigma2_, precision)

    def _mean_of(self, query: Query) -> Floats:
        return self._mean_at(query.pairs, query.rows, query.cols)

    def _check_prior(self) -> None:
        """Raise AttributeError where the model states no Gaussian process."""
        if self._ridge() == 0:
            name = type(self).__name__
            raise AttributeError(f"{name} has no postdata: without a prior there is no covariance")
        if self.unobserved_weight > 0:
            raise AttributeError(
                "with unobserved_weight there is no postdata: every cell would count as observed"
            )

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        self._solve(self._problem(pairs, values, weights), watch)

    def _problem(self, pairs: Pairs, values: Floats, weights: Floats) -> Problem:
        """State the problem of what the mean function leaves."""
        return Problem(
            pairs,
            values,
            weights / self.sigma2_,
            self.row_cov_,
            self.col_cov_,
            h=self._ridge(),
            w0=self.unobserved_weight,
        )

    def _settings(self) -> dict[str, Any]:
        return {"sigma2": self.sigma2_}

    def _take_settings(self, settings: dict[str, Any]) -> None:
        self.sigma2_ = settings["sigma2"]

    @abstractmethod
    def _ridge(self) -> float:
        """Return h."""

    @abstractmethod
    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        """Solve and keep the answer."""
