"""The models with a nuclear norm: a mean of low rank, found with a proof."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sidelight.covariance import Axis, Covariance
from sidelight.errors import InputError
from sidelight.models.base import Floats, Pairs
from sidelight.models.factors import FactorModel
from sidelight.models.inputs import positive, whole
from sidelight.posterior import Constrained, MeanSolver, Setting
from sidelight.problem import Problem, lam_max
from sidelight.solvers import Limits, Refit, Solution, Watch, grid, path, refit, solve

_WHILE_LEARNING = 1e-6  # relative gap of the means on the way


class SpectralModel(FactorModel):
    """A mean of low rank whose rank the nuclear norm finds."""

    refit_: Refit | None

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        sigma2: float | str = 1.0,
        lam: float = 1.0,
        tol: float = 1e-4,
        max_rank: int | None = None,
        mean: str = "zero",
        unobserved_weight: float = 0.0,
        refit: bool = False,
        learn: str = "none",
        random_state: int | None = None,
    ) -> None:
        self.row_cov, self.col_cov = row_cov, col_cov
        self.sigma2, self.lam, self.tol, self.max_rank = sigma2, lam, tol, max_rank
        self.mean, self.unobserved_weight, self.refit = mean, unobserved_weight, refit
        self.learn, self.random_state = learn, random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.lam, "lam")
        if self.max_rank is not None:
            whole(self.max_rank, "max_rank")
        if not isinstance(self.refit, (bool, np.bool_)):
            raise InputError(f"refit is {self.refit!r}", remedy="use True or False")

    def _mean_solver(self, pairs: Pairs, values: Floats, weights: Floats) -> MeanSolver:
        rng, limits = self._rng(), Limits(min(self.tol, _WHILE_LEARNING), self.max_rank)

        def solved(setting: Setting) -> Constrained:
            sides = setting.row_cov, setting.col_cov
            problem = Problem(pairs, values, weights / setting.sigma2, *sides, h=self._ridge())
            found = solve(problem, self.lam, limits, rng=rng)
            cost, s = found.certificate.objective, found.singular_values
            return Constrained(cost, found.alpha, found.factors, s, self.lam)

        return solved

    def _limits(self) -> Limits:
        return Limits(self.tol, self.max_rank)

    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        found = solve(problem, self.lam, self._limits(), rng=self._rng(), watch=watch)
        self._keep(problem, found)

    def _keep(self, problem: Problem, found: Solution) -> None:
        self.certificate_, self.refit_ = found.certificate, None
        factors, values = found.factors, found.singular_values
        if self.refit:
            factors, values, self.refit_ = refit(problem, found, self.lam, self._rng())
        self._keep_factors(factors, values)

    def _bounds(self, row: int, cols: NDArray[np.int64], rows: Axis) -> Floats | None:
        """Bound the certified mean; a refitted one is another."""
        return None if self.refit_ is not None else super()._bounds(row, cols, rows)

    def _settings(self) -> dict[str, Any]:
        refitted = None if self.refit_ is None else self.refit_.record()
        return super()._settings() | {"refit": refitted}

    def _take_settings(self, settings: dict[str, Any]) -> None:
        super()._take_settings(settings)
        made = settings["refit"]
        self.refit_ = None if made is None else Refit.from_record(made)


class ConstrainedMVGP(SpectralModel):
    """The paper's model: the Gaussian process prior and a penalty on the mean's nuclear norm.

    Parameters
    ----------
    row_cov, col_cov
        Covariances of the two axes; None is the identity on the items seen.
    sigma2
        Variance of the noise, or "learn": then by its marginal likelihood under an inverse-gamma
        prior, the paper's fixed point.
    lam
        Weight of the nuclear norm; the rank falls as it grows.
    tol
        Relative duality gap at which the fit is certified.
    max_rank
        Largest rank allowed; a fit that needs more is labelled "stopped".
    mean
        What is taken from the values first and added to every prediction: "zero" for nothing,
        "global" for their weighted mean, "biases" for a mean, a bias for each row and one for each
        column, "graph-biases" for biases drawn from the covariances, so that items that covary have
        similar ones and new items have one too. The variances of the biases are learnt.
    unobserved_weight
        Weight of every unobserved cell, which then counts as a zero; beside it, an observed entry
        weighs ``1 / sigma2``. For known positives: no negatives need be sampled. ``mean`` is "zero"
        then.
    refit
        Fit the factors found once more without the nuclear norm, which shrinks what it keeps:
        with a ridge that, like the rank where the spectrum has a gap, held-out entries choose.
        ``certificate_`` then speaks of the first stage; predictions and ``singular_values_`` are
        the second stage's, described in ``refit_``, and have no bound.
    learn
        Whose covariances' parameters are learnt: "none", "rows", "cols" or "both". From the values
        given, which are the centre of wide priors; a parameter given as 0 stays 0.
    random_state
        Seed of the solver's random starts and of the entries that a refit holds out.

    Attributes
    ----------
    certificate_
        The proof: status, objective, dual, relative_gap, rank, bound, seconds, trace.
    sigma2_, row_cov_, col_cov_
        What the fit was made with, learnt or given.
    learnt_
        Values, errors, correlation and status of what was learnt; None without.
    singular_values_
        Those of ``B`` in ``Psi = G_M B G_N'``.
    refit_
        The second stage: rank, ridge, objective, held_out, seconds, and the certified rank and
        singular values; None without one.
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
    if not isinstance(model, SpectralModel):
        raise InputError(
            f"a path over lam is asked for, and {type(model).__name__} has no lam",
            remedy="give a ConstrainedMVGP or a TraceGP",
        )
    prepared = clone(model)
    problem = prepared._problem(*prepared._prepare(X, y, sample_weight))
    rng = prepared._rng()
    values = grid(lam_max(problem, rng), count, ratio) if lams is None else np.atleast_1d(lams)
    for lam, found in path(problem, map(float, values), prepared._limits(), rng=rng):
        fitted = copy(prepared).set_params(lam=lam)
        fitted._keep(problem, found)
        yield fitted
