"""What every search for a certified mean of low rank shares: limits, proof, the last report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import DualPoint, Factors, Gap, Mean, Problem, Subspace, duality_gap
from sidelight.solvers.newton import Effort, newton_last
from sidelight.solvers.solution import Solution, Trace, certificate

Floats = NDArray[np.float64]

_NEARLY = 0.95  # of lam: singular values outside the subspace that are worth following


@dataclass(frozen=True)
class Limits:
    """When to stop: the relative gap to reach, and the largest rank allowed."""

    tol: float = 1e-4
    max_rank: int | None = None


class Search(ABC):
    """One run of a solver on one problem at one ``lam``."""

    def __init__(
        self, problem: Problem, lam: float, limits: Limits, rng: np.random.Generator, trace: Trace
    ) -> None:
        self._problem, self._lam, self._limits = problem, lam, limits
        self._rng, self._trace = rng, trace
        self._subspace = Subspace(problem, rng)
        self._gap: Gap | None = None

    @abstractmethod
    def run(self, start: Solution | None) -> str:
        """Search until the certificate holds; say why otherwise."""

    @abstractmethod
    def recover(self) -> None:
        """Find the last mean again after an interruption, which may come at any moment."""

    @abstractmethod
    def _release(self) -> tuple[Factors, Floats, Floats | None]:
        """Return the mean, its singular values and the dual on the pattern, if it was proven."""

    def _too_far(self, rank: int) -> bool:
        """Say whether the rank went so far beyond the largest allowed that it will not return."""
        most = self._limits.max_rank
        return most is not None and rank > 2 * most + 32

    def _bound(self, mean: Mean, alpha: DualPoint, basis: Factors) -> Gap:
        tol = self._limits.tol
        return duality_gap(self._problem, mean, alpha, basis, self._lam, tol, self._rng)

    def _follow_outside(self, gap: Gap) -> int:
        """Follow the directions that a proof has found outside the subspace; count them."""
        above = int(np.sum(gap.outside.values > _NEARLY * self._lam))
        self._subspace.include(gap.outside.images[:, :above])
        return above

    def solution(self, stopped: str) -> Solution:
        """Draw up what was reached, cut to the rank allowed."""
        problem, most = self._problem, self._limits.max_rank
        factors, s, alpha = self._release()
        if most is not None and len(s) > most:
            stopped = f"max_rank = {most} was reached"
            factors, s = self._cut(factors, most)
            alpha = None
        if alpha is None or stopped or self._gap is None:
            residual = problem.residual(factors)
            alpha, mean = -residual, Mean(problem.loss(residual, factors), s)
            unit = factors.scaled(1 / np.sqrt(s))
            self._gap = self._bound(mean, problem.dual_point(residual, factors), unit)
        proof = certificate(
            self._gap.primal, self._gap.dual, len(s), problem.h, self._limits.tol, self._trace,
            stopped,
        )  # fmt: skip
        return Solution(factors, s, alpha, proof)

    def _cut(self, factors: Factors, most: int) -> tuple[Factors, Floats]:
        """Lower the objective over factors of the rank allowed, from the leading ones."""
        effort = Effort(outer=30, inner=100, reduction=0.01)
        found, _ = newton_last(self._problem, factors.leading(most), self._lam, effort)
        return found.balanced()


def curvature(problem: Problem, rng: np.random.Generator) -> float:
    """Estimate the largest curvature of the loss; it sets scales, no proof rests on it."""
    found = max(float(problem.weights.max(initial=0.0)), problem.w0)
    for cov in (problem.row_cov, problem.col_cov):
        x = rng.standard_normal((cov.size, 2))
        for _ in range(8):
            x = cov.apply(x / max(float(np.linalg.norm(x)), 1e-300))
        found *= float(np.linalg.norm(x))
    return max(found, 1e-300)
