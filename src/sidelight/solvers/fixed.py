"""Factors of a rank that is given, from random starts: what matrix factorisation does.

The problem is not convex. The certificate holds all the same: its dual bounds the objective of the
best mean of any rank from below. Where the gap closes the fit is that mean; where it does not, the
bound is loose, and the gap much larger than what is missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors, Mean, Problem, duality_gap
from sidelight.solvers.newton import Effort, newton
from sidelight.solvers.solution import Solution, Trace, Watch, certificate

Floats = NDArray[np.float64]

_OUTER, _INNER = 200, 60
_LEAST = 0.1  # of tol^2, the relative fall of the last step: of second order, the gap of first
_SPENT = f"{_OUTER} steps did not reach a stationary point"
_NOTHING = 1e-7  # of the largest singular value: what is smaller is a factor not needed
_START = 0.1  # size of the first mean's entries, relative to the values'


def solve_fixed(
    problem: Problem,
    lam: float,
    rank: int,
    tol: float,
    *,
    restarts: int = 1,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> Solution:
    """Minimise over factors of this rank; of several random starts the best is kept."""
    trace = Trace(watch)
    best, value, stopped = Factors.empty(problem.shape), np.inf, ""
    effort = Effort(_OUTER, _INNER, least=_LEAST * tol**2)
    try:
        for _ in range(restarts):
            steps = newton(problem, _start(problem, rank, rng), lam, effort)
            for count, (factors, found) in enumerate(steps):
                trace.note(factors.rank, found, np.inf)
                if found < value:
                    best, value = factors, found
                    stopped = _SPENT if count == _OUTER else ""
    except KeyboardInterrupt:
        stopped, trace.watch = "interrupted", None
    return _certified(problem, lam, best, tol, rng, trace, stopped)


def _start(problem: Problem, rank: int, rng: np.random.Generator) -> Factors:
    """Draw factors, their product small beside the values and not against them.

    Items without entries start at zero: without a weight on unobserved cells they stay there.
    """
    a, b = (rng.standard_normal((size, rank)) for size in problem.shape)
    a[np.bincount(problem.pattern.rows, minlength=len(a)) == 0] = 0.0
    b[np.bincount(problem.pattern.cols, minlength=len(b)) == 0] = 0.0
    factors = Factors.make(a, b, problem.row_cov, problem.col_cov)
    along = np.einsum("mr,mr->r", problem.pattern.times(problem.y, factors.q), factors.p)
    factors = factors.times(np.eye(rank), np.diag(np.where(along < 0, -1.0, 1.0)))
    psi = problem.pattern.product(factors.p, factors.q)
    size = float(np.sqrt(np.mean(problem.y**2) / max(float(np.mean(psi**2)), 1e-300)))
    return factors.scaled(np.full(rank, np.sqrt(_START * size)))


def _certified(
    problem: Problem,
    lam: float,
    factors: Factors,
    tol: float,
    rng: np.random.Generator,
    trace: Trace,
    stopped: str,
) -> Solution:
    factors, s = factors.balanced(_NOTHING)
    residual = problem.residual(factors)
    mean, unit = Mean(problem.loss(residual, factors), s), factors.scaled(1 / np.sqrt(s))
    point = problem.dual_point(residual, factors)
    gap = duality_gap(problem, mean, point, unit, lam, tol, rng)
    reason = stopped or f"a stationary point of rank {len(s)}; the best of any rank may be better"
    proof = certificate(gap.primal, gap.dual, len(s), problem.h, tol, trace, reason)
    return Solution(factors, s, -residual, proof)
