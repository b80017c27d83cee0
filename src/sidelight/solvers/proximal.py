"""Proximal steps on the mean itself, for a loss over the whole table.

Where the unobserved cells count, the dual has a number for each of them. The mean has not: from
any mean Z the next is the singular value shrinkage of ``S = G_M' [-slope of the loss] G_N + L Z``,
sparse plus low rank, which the warm-started subspace follows. Steps are extrapolated and start
over when the objective rises (O'Donoghue and Candes); ``L`` follows the curvature on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import DualPoint, Factors, Mean, Problem, Ritz
from sidelight.solvers.search import Limits, Search, curvature
from sidelight.solvers.solution import Solution, Trace

Floats = NDArray[np.float64]

_STEPS = 10_000
_EASE = 0.9  # of L, after each step: where the loss is flatter, steps may be longer
_NOISE = 1e-9  # of |B|^2: below it the curvature along a step is rounding


@dataclass(frozen=True)
class _Point:
    """A mean, and what it is at the observed places."""

    factors: Factors
    psi: Floats
    s: Floats


class ProximalSearch(Search):
    """Accelerated proximal steps."""

    def __init__(
        self, problem: Problem, lam: float, limits: Limits, rng: np.random.Generator, trace: Trace
    ) -> None:
        super().__init__(problem, lam, limits, rng, trace)
        nothing = _Point(Factors.empty(problem.shape), np.zeros_like(problem.y), np.zeros(0))
        self._here = self._before = nothing
        self._bend, self._pace = 1.0, 1.0
        self._ritz: Ritz | None = None
        self._certify_below = np.inf  # the step under which a proof is worth it

    def run(self, start: Solution | None) -> str:
        """Step until the certificate holds; say why otherwise."""
        self._begin(start)
        primal = np.inf
        for _ in range(_STEPS):
            step = self._advance()
            last, primal = primal, self._mean().value(self._problem.h, self._lam)
            if primal > last:
                self._pace = 1.0
            doubt = self._doubt(step) / max(primal, 1e-300)
            self._trace.note(len(self._here.s), primal, doubt)
            if self._too_far(len(self._here.s)):
                return "the rank went far beyond max_rank"
            if doubt <= 0.5 * self._limits.tol and step <= self._certify_below:
                if self._certified():
                    return ""
                if step == 0:
                    return "rounding leaves no further progress"
                self._certify_below = 0.5 * step
        return f"{_STEPS} steps did not reach tol = {self._limits.tol:g}"

    def _begin(self, start: Solution | None) -> None:
        problem = self._problem
        self._bend = curvature(problem, self._rng)
        if start is None:
            point = DualPoint(problem, problem.weights * problem.y)
            for _ in range(2):
                self._subspace.follow(point, np.inf)
        else:
            factors = start.factors
            psi = problem.pattern.product(factors.p, factors.q)
            self._here = self._before = _Point(factors, psi, start.singular_values)
            self._subspace.include(factors.q)

    def _advance(self) -> float:
        """Take one step; return its length in units of the slope."""
        problem, here = self._problem, self._here
        pace = (1 + np.sqrt(1 + 4 * self._pace**2)) / 2
        ahead = self._ahead((self._pace - 1) / pace)
        slope = DualPoint(
            problem, problem.weights * (problem.y - ahead.psi), ahead.factors, ahead.psi
        )
        while True:
            there = self._shrunk(slope, ahead)
            length, bend = self._measure(ahead, there)
            if bend <= self._bend:
                break
            self._bend = max(1.5 * self._bend, 1.01 * bend)
        self._pace = pace
        step = self._bend * length
        self._before, self._here = here, there
        self._bend *= _EASE if bend > 0 else 1.0
        return step

    def _ahead(self, beyond: float) -> _Point:
        """Extrapolate from the last two means."""
        here, before = self._here, self._before
        if beyond == 0 or not before.factors.rank:
            return here
        factors = here.factors.weighted(1 + beyond).beside(before.factors.weighted(-beyond))
        return _Point(factors, (1 + beyond) * here.psi - beyond * before.psi, here.s)

    def _shrunk(self, slope: DualPoint, ahead: _Point) -> _Point:
        """Shrink the singular values of S; keep its vectors for the proof."""
        problem, lam = self._problem, self._lam
        self._subspace.centre = ahead.factors.weighted(self._bend)
        self._ritz = None  # let go of the last one before the next is made
        self._ritz = ritz = self._subspace.follow(slope, lam)
        s = (ritz.values[ritz.values > lam] - lam) / (self._bend + problem.h)
        factors = ritz.vectors().leading(len(s)).scaled(np.sqrt(s))
        return _Point(factors, problem.pattern.product(factors.p, factors.q), s)

    def _measure(self, ahead: _Point, there: _Point) -> tuple[float, float]:
        """Return the length of a step and the curvature along it, 0 where it is not known."""
        problem = self._problem
        change = there.factors.beside(ahead.factors.weighted(-1.0))
        square, psi = change.inner(change), there.psi - ahead.psi
        if square <= _NOISE * float(np.sum(there.s**2)):
            return float(np.sqrt(max(square, 0.0))), 0.0
        bent = float(np.sum(problem.weights * psi**2)) + problem.elsewhere(psi, change)
        return float(np.sqrt(square)), bent / square

    def _doubt(self, step: float) -> float:
        """Estimate the gap from the length of the last step."""
        if self._problem.h > 0:
            return 0.5 * step**2 / self._problem.h
        return step * float(np.sqrt(np.sum(self._here.s**2)))

    def _mean(self) -> Mean:
        problem, here = self._problem, self._here
        return Mean(problem.loss(problem.weights * (here.psi - problem.y), here.factors), here.s)

    def _certified(self) -> bool:
        problem, here = self._problem, self._here
        residual = problem.weights * (problem.y - here.psi)
        alpha = DualPoint(problem, residual, here.factors, here.psi)
        self._gap = self._bound(self._mean(), alpha, self._basis(alpha))
        self._follow_outside(self._gap)
        return self._gap.relative <= self._limits.tol

    def _basis(self, alpha: DualPoint) -> Factors:
        """Keep the left vectors, and take the right ones from S as it is now: one leak less."""
        if self._ritz is None:
            return Factors.empty(self._problem.shape)
        left = self._ritz.vectors()
        self._subspace.centre = None
        return self._subspace.settled(left.a, left.p, alpha).vectors()

    def recover(self) -> None:
        """Nothing is lost: a mean takes its place when it is whole."""
        self._trace.watch = None  # whoever interrupted has seen enough

    def _release(self) -> tuple[Factors, Floats, Floats | None]:
        problem, here = self._problem, self._here
        return here.factors, here.s, problem.weights * (problem.y - here.psi)
