"""Matrix factorisation of a given rank: what the certified models are compared with."""

from __future__ import annotations

from sidelight.covariance import Covariance, Identity
from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.models.base import Pairs
from sidelight.models.factors import FactorModel
from sidelight.models.inputs import whole
from sidelight.problem import Problem
from sidelight.solvers import Watch, solve_fixed


class KPMF(FactorModel):
    """Kernelised probabilistic matrix factorisation of rank R: the most probable factors.

    The columns of the two factors are independent draws from ``N(0, C_M)`` and ``N(0, C_N)``. The
    objective is the constrained model's with h = 0 and lam = 1 at a fixed rank, from a random
    start: not convex, so ``certificate_`` is "stopped" unless the best mean of any rank was found.

    Parameters
    ----------
    row_cov, col_cov
        Covariances of the two axes; None is the identity on the items seen.
    n_factors
        Columns of the factors: the rank R, at most the rows or columns that there are.
    sigma2
        Variance of the noise.
    tol
        Relative duality gap at which the fit counts as certified; its square says when a step was
        the last.
    mean, unobserved_weight
        As in ConstrainedMVGP.
    restarts
        Random starts; the one with the lowest objective is kept.
    random_state
        Seed of the random starts.

    Attributes
    ----------
    certificate_
        The proof that no mean of any rank is better; without one, its gap is an upper bound, and a
        loose one.
    singular_values_
        Those of ``B = U V'``.
    """

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        n_factors: int = 10,
        sigma2: float = 1.0,
        tol: float = 1e-4,
        mean: str = "zero",
        unobserved_weight: float = 0.0,
        restarts: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.row_cov, self.col_cov = row_cov, col_cov
        self.n_factors, self.sigma2, self.tol = n_factors, sigma2, tol
        self.mean, self.unobserved_weight = mean, unobserved_weight
        self.restarts, self.random_state = restarts, random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole(self.n_factors, "n_factors")
        whole(self.restarts, "restarts")

    def _ridge(self) -> float:
        return 0.0

    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        found = solve_fixed(
            problem,
            1.0,
            min(self.n_factors, *problem.shape),
            self.tol,
            restarts=self.restarts,
            rng=self._rng(),
            watch=watch,
        )
        self.certificate_ = found.certificate
        self._keep_factors(found.factors, found.singular_values)


class PMF(KPMF):
    """Probabilistic matrix factorisation: KPMF without side information.

    Parameters and attributes are those of KPMF. The covariances name the items of the axes; the
    factors' rows are independent whatever they say, and a new item's are zero: new items are
    described by their number alone.
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.mean == "graph-biases":
            raise InputError(
                "mean is 'graph-biases' and PMF has no covariances", remedy="use 'biases', or KPMF"
            )

    def _name(self, data: Dataset | None, pairs: Pairs) -> None:
        super()._name(data, pairs)
        self.row_cov_, self.col_cov_ = Identity(self.row_cov_.size), Identity(self.col_cov_.size)
