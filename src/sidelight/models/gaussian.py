"""What the models with normal noise share: the problem they state."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.models.inputs import positive
from sidelight.posterior import (
    PRECISION,
    Entries,
    Evidence,
    Learnt,
    MeanSolver,
    Postdata,
    Prior,
    Query,
    Setting,
    learn,
)
from sidelight.problem import Problem
from sidelight.solvers import Watch

LEARN = ("none", "rows", "cols", "both")
_NOTHING = 1e-20  # of the values' square, which is rounding
_SEED = 0  # of the random signs that estimate traces
_FIRST = 0.3  # of the values' mean square, the noise that learning starts from


class GaussianModel(PairModel):
    """A mean under a Gaussian process prior and noise of variance ``sigma2``."""

    sigma2: float | str
    sigma2_: float
    tol: float
    learn: str = "none"
    learnt_: Learnt | None
    unobserved_weight: float = 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.sigma2 != "learn":
            positive(self.sigma2, "sigma2")  # type: ignore[arg-type]
        positive(self.tol, "tol")
        if self.learn not in LEARN:
            raise InputError(
                f"learn is {self.learn!r}", remedy=f"choose one of {', '.join(map(repr, LEARN))}"
            )
        if self._learns():
            try:
                self._check_prior()
            except AttributeError as reason:
                raise InputError(
                    f"nothing can be learnt here: {reason}",
                    remedy="learn with MVGP or ConstrainedMVGP, or give sigma2 a number",
                ) from None

    def _learns(self) -> bool:
        return self.sigma2 == "learn" or self.learn != "none"

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        self._solve(self._problem(pairs, values, weights), watch)

    def _prepare(
        self, X: ArrayLike | Dataset, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Pairs, Floats, Floats]:
        pairs, values, weights = super()._prepare(X, y, sample_weight)
        self.learnt_ = None
        if self._learns():
            self._settle(pairs, values, weights)
        else:
            self.sigma2_ = float(self.sigma2)
        return pairs, values, weights

    def _settle(self, pairs: Pairs, values: Floats, weights: Floats) -> None:
        """Learn the noise, and the covariances' parameters that are asked for."""
        size = float(np.mean(values**2))
        if size <= _NOTHING * float(np.max(self.values_**2, initial=0.0)):
            raise InputError(
                "the mean function leaves nothing of the values to learn from",
                remedy="give sigma2 a number, and leave learn out",
            )
        first = _FIRST * size if self.sigma2 == "learn" else float(self.sigma2)
        start = Setting(max(first, np.finfo(float).tiny), self.row_cov_, self.col_cov_)
        sides = {"none": (), "rows": ("row",), "cols": ("col",), "both": ("row", "col")}
        wanted = (*sides[self.learn], *(("sigma2",) if self.sigma2 == "learn" else ()))
        names = [name for name in start.parameters() if name.partition(".")[0] in wanted]
        if self.learn != "none" and all(name == "sigma2" for name in names):
            raise InputError(
                f"learn is {self.learn!r}, and no covariance there has a parameter",
                remedy="leave learn out, or give a weight to learn: 1.0 * covariance",
            )
        evidence = Evidence(
            pairs, values, weights, (self.row_cov_.size, self.col_cov_.size),
            self._mean_solver(pairs, values, weights), np.random.default_rng(_SEED),
        )  # fmt: skip
        found, self.learnt_ = learn(evidence, start, names, Prior.of(values))
        self.sigma2_ = found.sigma2
        self.row_cov_, self.col_cov_ = found.row_cov, found.col_cov

    def _mean_solver(self, pairs: Pairs, values: Floats, weights: Floats) -> MeanSolver | None:
        """Return what solves for a mean with a nuclear norm; None is the mean without."""
        return None

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
        return {"sigma2": self.sigma2_, "learnt": self.learnt_ and self.learnt_.record()}

    def _take_settings(self, settings: dict[str, Any]) -> None:
        self.sigma2_, made = settings["sigma2"], settings["learnt"]
        self.learnt_ = made and Learnt.from_record(made)

    @abstractmethod
    def _ridge(self) -> float:
        """Return h."""

    @abstractmethod
    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        """Solve and keep the answer."""
