"""The dual solver: a smooth concave problem in one number per observed entry.

For a ridge ``h > 0`` the dual ``D(alpha)`` is differentiable: with ``B(alpha) = (S - lam)_+ / h``
its gradient is ``y - alpha / w - psi(B(alpha))``. L-BFGS moves ``alpha``; a warm-started subspace
follows the singular vectors of S; the rank of the optimum shows by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import DualPoint, Factors, Mean, Problem, Ritz, Subspace

Floats = NDArray[np.float64]

_MEMORY = 12


@dataclass(frozen=True)
class Point:
    """The dual at one ``beta = alpha / sqrt(w)``, and the primal value of the mean it implies."""

    beta: Floats
    primal: float
    dual: float
    slope: Floats  # of -D along beta

    @property
    def gap(self) -> float:
        """The gap of the problem being solved, as far as the Ritz values can be trusted."""
        return 0.5 * float(self.slope @ self.slope)


class DualProblem:
    """``D`` and its gradient for a ridge ``h`` around a centre."""

    def __init__(self, problem: Problem, lam: float, h: float, subspace: Subspace) -> None:
        self._problem, self._lam, self.h = problem, lam, h
        self._root = np.sqrt(problem.weights)
        self._subspace = subspace
        self._centre = Factors.empty(problem.shape)
        self._centre_square = 0.0
        self._ritz: Ritz | None = None
        self.beta = np.zeros(0)
        self.mean = Mean(problem.loss(problem.weights * problem.y), np.zeros(0))
        self.shift = 0.0
        self.whole = True  # False in the midst of an evaluation

    def around(self, factors: Factors, s: Floats, h: float) -> None:
        """Move the centre of the ridge, and set its weight."""
        self.h, self._centre, self._centre_square = h, factors, float(np.sum(s**2))
        self._subspace.centre = factors.weighted(h)

    def at(self, beta: Floats) -> Point:
        """Evaluate at ``alpha = sqrt(w) beta``."""
        problem, lam, h = self._problem, self._lam, self.h
        self.whole = False
        self._ritz = None  # let go of the last one before the next is made
        self.beta = beta
        self._ritz = ritz = self._subspace.follow(DualPoint(problem, self._root * beta), lam)
        s = (ritz.values[ritz.values > lam] - lam) / h
        p, q = ritz.p[:, : len(s)] * s, ritz.q[:, : len(s)]
        residual = self._root * (problem.y - problem.pattern.product(p, q))
        self.mean = Mean(0.5 * float(residual @ residual), s)
        ridge = 0.5 * h * (float(np.sum(s**2)) - self._centre_square)
        overlap = float(np.sum((self._centre.a.T @ p) * (self._centre.b.T @ q)))
        pull = h * (self._centre_square - overlap)
        self.shift = float(np.sqrt(max(2 * h * (ridge + pull), 0.0)))
        dual = float(self._root * beta @ problem.y - 0.5 * beta @ beta) - ridge
        self.whole = True
        return Point(beta, self.mean.value(0.0, lam) + ridge + pull, dual, beta - residual)

    def factors(self) -> Factors:
        """Return ``B`` at the last point evaluated, balanced."""
        return self.basis().leading(len(self.mean.s)).scaled(np.sqrt(self.mean.s))

    def release(self) -> tuple[Factors, Floats]:
        """Return ``B`` and its singular values, and let go of everything else, part by part."""
        basis, s, self._ritz = self.basis(), self.mean.s, None
        self._subspace.release()
        parts = [basis.a, basis.p, basis.b, basis.q]
        del basis
        scaled = [parts.pop(0)[:, : len(s)] * np.sqrt(s) for _ in range(4)]
        return Factors(*scaled), s

    def basis(self) -> Factors:
        """Return all singular vectors followed, orthonormal."""
        empty = Factors.empty(self._problem.shape)
        return empty if self._ritz is None else self._ritz.vectors()


class Ascent:
    """L-BFGS on the dual, one accepted step at a time.

    ``curvature`` bounds that of the dual; its inverse is the length of the first step.
    """

    def __init__(self, dual: DualProblem, start: Floats, curvature: float) -> None:
        self._dual = dual
        self._first = 1 / curvature
        self.here = dual.at(start)
        self._memory: list[tuple[Floats, Floats, float]] = []

    def restart(self, forget: bool = False) -> None:
        """Evaluate again where we are: the centre or the subspace has changed."""
        if forget:
            self._memory.clear()
        self.here = self._dual.at(self.here.beta)

    @property
    def fresh(self) -> bool:
        """Say whether the dual was last evaluated where we are."""
        return self._dual.beta is self.here.beta

    def step(self) -> None:
        """Move along the quasi-Newton direction; shorten it when the dual falls.

        A value taken with a poorer subspace was too high: before a step is shortened, the dual
        where it began is taken anew.
        """
        here = self.here
        move = -self._inverse_times(here.slope)
        for length in (1.0, 0.3, 0.1, 0.03):
            there = self._dual.at(here.beta + length * move)
            if not self._rises(here, there):
                here = self._dual.at(here.beta)
            if self._rises(here, there):
                break
        else:
            self._memory.clear()
        self._remember(there.beta - here.beta, there.slope - here.slope)
        self.here = there

    @staticmethod
    def _rises(here: Point, there: Point) -> bool:
        promised = float((there.beta - here.beta) @ here.slope)
        return -there.dual <= -here.dual + 1e-4 * promised + 0.02 * here.gap

    def _remember(self, moved: Floats, turned: Floats) -> None:
        curvature = float(moved @ turned)
        if curvature > 1e-8 * np.linalg.norm(moved) * np.linalg.norm(turned):
            self._memory.append((moved, turned, 1 / curvature))
            del self._memory[:-_MEMORY]

    def _inverse_times(self, slope: Floats) -> Floats:
        """Apply the two-loop recursion."""
        out, weights = slope.copy(), []
        for moved, turned, scale in reversed(self._memory):
            weights.append(scale * float(moved @ out))
            out -= weights[-1] * turned
        if self._memory:
            _, turned, scale = self._memory[-1]
            out /= scale * float(turned @ turned)
        else:
            out *= self._first
        for (moved, turned, scale), weight in zip(self._memory, reversed(weights), strict=True):
            out += (weight - scale * float(turned @ out)) * moved
        return out
