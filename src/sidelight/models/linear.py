"""The Gaussian process without a nuclear norm: the plain posterior mean."""

from __future__ import annotations

import numpy as np

from sidelight.covariance import Covariance
from sidelight.models.gaussian import GaussianModel
from sidelight.models.spread import SpreadModel
from sidelight.problem import Problem
from sidelight.solvers import Watch, solve_linear


class MVGP(GaussianModel, SpreadModel):
    """The matrix-variate Gaussian process, ``lam = 0``: the mean of the exact posterior.

    Parameters
    ----------
    row_cov, col_cov
        Covariances of the two axes; None is the identity on the items seen.
    sigma2
        Variance of the noise, or "learn".
    tol
        Relative duality gap at which the fit is certified.
    mean
        "zero", "global", "biases" or "graph-biases": see ``mean`` in ConstrainedMVGP.
    learn
        Whose covariances' parameters are learnt: "none", "rows", "cols" or "both"; see
        ConstrainedMVGP.

    Attributes
    ----------
    certificate_
        The proof: status, objective, dual, relative_gap, rank, bound, seconds, trace.
    sigma2_, row_cov_, col_cov_
        What the fit was made with, learnt or given.
    learnt_
        Values, errors, correlation and status of what was learnt; None without.
    alpha_
        One weight for each fitted entry: the mean is ``C_M [alpha] C_N``.
    """

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        sigma2: float | str = 1.0,
        tol: float = 1e-4,
        mean: str = "zero",
        learn: str = "none",
    ) -> None:
        self.row_cov, self.col_cov = row_cov, col_cov
        self.sigma2, self.tol, self.mean, self.learn = sigma2, tol, mean, learn

    def _ridge(self) -> float:
        return 1.0

    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        found = solve_linear(problem, self.tol, watch=watch)
        self.certificate_ = found.certificate
        self.alpha_ = np.empty_like(found.alpha)
        self.alpha_[problem.pattern.order] = found.alpha
