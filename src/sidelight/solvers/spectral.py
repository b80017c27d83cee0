"""The certified solver for every ``lam > 0``.

With the ridge of the Gaussian process prior (h = 1) one ascent of the dual is enough. Without it
(h = 0) the dual is not smooth: a proximal ridge around the last mean takes its place, and the
centre moves until the gap of the true problem closes. With a weight on the unobserved cells the
dual has a number for each cell of the table, and proximal steps on the mean take its place. All
stop on the certificate alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import DualPoint, Factors, Problem
from sidelight.solvers.dual import Ascent, DualProblem
from sidelight.solvers.proximal import ProximalSearch
from sidelight.solvers.search import Limits, Search, curvature
from sidelight.solvers.solution import Solution, Trace, Watch

Floats = NDArray[np.float64]

_STEPS = 10_000
_INEXACT = 0.3  # how well a proximal problem is solved, relative to the move of its centre
_SOFTEST, _STIFFEST = 100.0, 1000.0  # condition of the proximal problems, first and last


def solve(
    problem: Problem,
    lam: float,
    limits: Limits = Limits(),  # noqa: B008 -- frozen
    *,
    start: Solution | None = None,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> Solution:
    """Minimise the objective to a certified relative gap.

    ``start`` is a solution of the same problem at another ``lam``. KeyboardInterrupt ends the run
    with the last mean, labelled "stopped".
    """
    kind = ProximalSearch if problem.w0 > 0 else DualSearch
    search = kind(problem, lam, limits, np.random.default_rng(rng), Trace(watch))
    try:
        stopped = search.run(start)
    except KeyboardInterrupt:
        stopped = "interrupted"
        search.recover()
    return search.solution(stopped)


class DualSearch(Search):
    """Climbs the dual."""

    def __init__(
        self, problem: Problem, lam: float, limits: Limits, rng: np.random.Generator, trace: Trace
    ) -> None:
        super().__init__(problem, lam, limits, rng, trace)
        self._root = np.sqrt(problem.weights)
        self._bend = 1.0  # the largest curvature of the loss
        self._dual = DualProblem(problem, lam, problem.h or 1.0, self._subspace)
        self._ascent: Ascent | None = None
        self._certify_below = np.inf  # the shift of the centre under which a proof is worth it

    def run(self, start: Solution | None) -> str:
        """Climb until the certificate holds; say why otherwise."""
        ascent = self._begin(start)
        for _ in range(_STEPS):
            here = ascent.here
            rank = len(self._dual.mean.s)
            self._trace.note(rank, here.primal, here.gap / max(here.primal, 1e-300))
            if self._too_far(rank):
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

    def _begin(self, start: Solution | None) -> Ascent:
        """Start from another solution, or on the border where the mean leaves zero."""
        self._bend = curvature(self._problem, self._rng)
        if self._problem.h == 0:
            self._dual.h = self._bend / _SOFTEST
        if start is None:
            alpha = self._problem.weights * self._problem.y
            point = DualPoint(self._problem, alpha)
            self._subspace.follow(point, np.inf)
            top = float(np.max(self._subspace.follow(point, np.inf).values, initial=0.0))
            alpha = alpha * min(1.0, self._lam / top if top > 0 else 1.0)
        else:
            alpha = start.alpha
            self._subspace.include(start.factors.q)
            if self._problem.h == 0:
                self._dual.around(start.factors, start.singular_values, self._dual.h)
        self._ascent = Ascent(self._dual, alpha / self._root, 1 + self._bend / self._dual.h)
        return self._ascent

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
        self._gap = self._bound(self._dual.mean, self._point(here.beta), self._dual.basis())
        if self._gap.relative <= tol:
            return True
        above = self._follow_outside(self._gap)
        if self._problem.h == 0:
            self._certify_below = 0.5 * self._dual.shift / self._lam
            self._recentre(ascent)
        elif above or here.gap < 0.05 * tol * here.primal:
            ascent.restart()
        else:
            ascent.step()
        return False

    def _point(self, beta: Floats) -> DualPoint:
        return DualPoint(self._problem, self._root * beta)

    def _recentre(self, ascent: Ascent) -> None:
        """Move the proximal centre to the present mean, and soften its ridge."""
        h = max(0.5 * self._dual.h, self._bend / _STIFFEST)
        self._dual.around(self._dual.factors(), self._dual.mean.s, h)
        ascent.restart(forget=True)

    def recover(self) -> None:
        """Find the mean again after an interruption, which may have come in the midst of a step."""
        self._trace.watch = None  # whoever interrupted has seen enough
        if self._ascent is not None and not self._dual.whole:
            self._subspace.retrace(self._point(self._ascent.here.beta), self._lam)
            self._ascent.restart()

    def _release(self) -> tuple[Factors, Floats, Floats | None]:
        factors, s = self._dual.release()
        return factors, s, None if self._ascent is None else self._root * self._ascent.here.beta
