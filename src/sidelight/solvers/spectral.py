"""The certified solver for every ``lam > 0``.

With the ridge of the Gaussian process prior (h = 1) one ascent of the dual is enough. Without it
(h = 0) the dual is not smooth: a proximal ridge around the last mean takes its place, and the
centre moves until the gap of the true problem closes. Both stop on the certificate alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors, Gap, Mean, Problem, Subspace, duality_gap
from sidelight.solvers.dual import Ascent, DualProblem
from sidelight.solvers.newton import Effort, newton
from sidelight.solvers.solution import Solution, Trace, Watch, certificate

Floats = NDArray[np.float64]

_STEPS = 10_000
_INEXACT = 0.3  # how well a proximal problem is solved, relative to the move of its centre
_NEARLY = 0.95  # of lam: singular values outside the subspace that are worth following
_SOFTEST, _STIFFEST = 100.0, 1000.0  # condition of the proximal problems, first and last


@dataclass(frozen=True)
class Limits:
    """When to stop: the relative gap to reach, and the largest rank allowed."""

    tol: float = 1e-4
    max_rank: int | None = None


def solve(
    problem: Problem,
    lam: float,
    limits: Limits = Limits(),
    *,
    start: Solution | None = None,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> Solution:
    """Minimise the objective to a certified relative gap.

    ``start`` is a solution of the same problem at another ``lam``. KeyboardInterrupt ends the run
    with the last mean, labelled "stopped".
    """
    search = _Search(problem, lam, limits, np.random.default_rng(rng), Trace(watch))
    try:
        stopped = search.run(search.begin(start))
    except KeyboardInterrupt:
        stopped = "interrupted"
        search.recover()
    return search.solution(stopped)


class _Search:
    """One run of the solver."""

    def __init__(
        self, problem: Problem, lam: float, limits: Limits, rng: np.random.Generator, trace: Trace
    ) -> None:
        self._problem, self._lam, self._limits = problem, lam, limits
        self._rng, self._trace = rng, trace
        self._root = np.sqrt(problem.weights)
        self._bend = 1.0  # the largest curvature of the loss
        self._subspace = Subspace(problem, rng)
        self._dual = DualProblem(problem, lam, problem.h or 1.0, self._subspace)
        self._ascent: Ascent | None = None
        self._gap: Gap | None = None
        self._certify_below = np.inf  # the shift of the centre under which a proof is worth it

    def begin(self, start: Solution | None) -> Ascent:
        """Start from another solution, or on the border where the mean leaves zero."""
        self._bend = _curvature(self._problem, self._rng)
        if self._problem.h == 0:
            self._dual.h = self._bend / _SOFTEST
        if start is None:
            alpha = self._problem.weights * self._problem.y
            self._subspace.follow(alpha, np.inf)
            top = float(np.max(self._subspace.follow(alpha, np.inf).values, initial=0.0))
            alpha = alpha * min(1.0, self._lam / top if top > 0 else 1.0)
        else:
            alpha = start.alpha
            self._subspace.include(start.factors.q)
            if self._problem.h == 0:
                self._dual.around(start.factors, start.singular_values, self._dual.h)
        curvature = 1 + self._bend / self._dual.h
        self._ascent = Ascent(self._dual, alpha / self._root, curvature)
        return self._ascent

    def run(self, ascent: Ascent) -> str:
        """Climb until the certificate holds; say why otherwise."""
        for _ in range(_STEPS):
            here = ascent.here
            rank = len(self._dual.mean.s)
            self._trace.note(rank, here.primal, here.gap / max(here.primal, 1e-300))
            if self._limits.max_rank is not None and rank > 2 * self._limits.max_rank + 32:
                return "the rank went far beyond max_rank"
            if here.gap > self._goal(here.primal):
                ascent.step()
            elif not ascent.fresh:
                ascent.restart()
            elif self._problem.h == 0 and self._dual.shift > self._certify_below * self._lam:
                self._recentre(ascent)
            elif self._certified(ascent):
                return ""
        return f"{_STEPS} steps did not reach tol = {self._limits.tol:g}"

    def _goal(self, primal: float) -> float:
        """Return the inner gap at which a proof, or a move of the centre, is worth it.

        A proximal problem need not be solved better than its centre is known.
        """
        goal = 0.3 * self._limits.tol * primal
        if self._problem.h > 0:
            return goal
        return max(min(goal, _INEXACT * self._dual.shift**2 / self._dual.h), 1e-15 * primal)

    def _certified(self, ascent: Ascent) -> bool:
        """Certify where we are; when that fails, prepare to go on."""
        tol, here = self._limits.tol, ascent.here
        self._gap = self._bound(self._dual.mean, self._root * here.beta, self._dual.basis())
        if self._gap.relative <= tol:
            return True
        above = int(np.sum(self._gap.outside.values > _NEARLY * self._lam))
        self._subspace.include(self._gap.outside.images[:, :above])
        if self._problem.h == 0:
            self._certify_below = 0.5 * self._dual.shift / self._lam
            self._recentre(ascent)
        elif above or here.gap < 0.05 * tol * here.primal:
            ascent.restart()
        else:
            ascent.step()
        return False

    def _recentre(self, ascent: Ascent) -> None:
        """Move the proximal centre to the present mean, and soften its ridge."""
        h = max(0.5 * self._dual.h, self._bend / _STIFFEST)
        self._dual.around(self._dual.factors(), self._dual.mean.s, h)
        ascent.restart(forget=True)

    def recover(self) -> None:
        """Find the mean again after an interruption, which may have come in the midst of a step."""
        self._trace.watch = None  # whoever interrupted has seen enough
        if self._ascent is not None and not self._dual.whole:
            self._subspace.retrace(self._root * self._ascent.here.beta, self._lam)
            self._ascent.restart()

    def _bound(self, mean: Mean, alpha: Floats, basis: Factors) -> Gap:
        tol = self._limits.tol
        return duality_gap(self._problem, mean, alpha, basis, self._lam, tol, self._rng)

    def solution(self, stopped: str) -> Solution:
        """Draw up what was reached, cut to the rank allowed."""
        problem, most = self._problem, self._limits.max_rank
        factors, s = self._dual.release()
        alpha = None if self._ascent is None else self._root * self._ascent.here.beta
        if most is not None and len(s) > most:
            stopped = f"max_rank = {most} was reached"
            factors, s = self._cut(factors, most)
            alpha = None
        if alpha is None or stopped or self._gap is None:
            residual = problem.residual(factors)
            alpha = -residual
            unit = factors.scaled(1 / np.sqrt(s))
            self._gap = self._bound(Mean(problem.loss(residual), s), alpha, unit)
        proof = certificate(
            self._gap.primal, self._gap.dual, len(s), problem.h, self._limits.tol, self._trace,
            stopped,
        )  # fmt: skip
        return Solution(factors, s, alpha, proof)

    def _cut(self, factors: Factors, most: int) -> tuple[Factors, Floats]:
        """Lower the objective over factors of the rank allowed, from the leading ones."""
        effort = Effort(outer=30, inner=100, reduction=0.01)
        return newton(self._problem, factors.leading(most), self._lam, effort)


def _curvature(problem: Problem, rng: np.random.Generator) -> float:
    """Estimate the largest curvature of the loss; it sets scales, no proof rests on it."""
    found = float(problem.weights.max(initial=0.0))
    for cov in (problem.row_cov, problem.col_cov):
        x = rng.standard_normal((cov.size, 2))
        for _ in range(8):
            x = cov.apply(x / max(float(np.linalg.norm(x)), 1e-300))
        found *= float(np.linalg.norm(x))
    return max(found, 1e-300)
