"""A warm-started singular subspace of ``S = G_M' [alpha] G_N + h B0``.

Each pass is one step of block power iteration with a Rayleigh-Ritz step on one side; between
passes ``alpha`` moves a little, so one pass is enough to follow it. The width follows the number of
singular values above the threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.problem.dualpoint import DualPoint
from sidelight.problem.factors import Factors, orthonormal, symmetric
from sidelight.problem.objective import Problem

Floats = NDArray[np.float64]


class Ritz:
    """Approximate singular values, descending, and the images of the vectors on both sides.

    The dual coordinates of the vectors are turned when they are first asked for: most passes
    never need them, and they are as large as the images.
    """

    def __init__(self, values: Floats, p: Floats, q: Floats, a: Floats, b: Floats, turn: Floats):
        self.values, self.p, self.q = values, p, q
        self._a, self._b, self._turn = a, b, turn
        self._turned = False

    def vectors(self) -> Factors:
        """Return the singular vectors, orthonormal on both sides."""
        if not self._turned:
            self._a = self._a @ self._turn
            self._b = self._b @ (self._turn / self.values)
            self._turned = True
        return Factors(self._a, self.p, self._b, self.q)


class Subspace:
    """The leading right singular vectors of S, followed from pass to pass.

    ``centre`` is the matrix ``B0`` of a proximal term, times ``h``; None without one.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator, width: int = 32) -> None:
        self._problem, self._rng = problem, rng
        self._most = min(problem.shape)
        self._images = np.zeros((problem.shape[1], 0))
        self._width = width
        self._widen(width)
        self.centre: Factors | None = None
        self.passes = 0

    @property
    def width(self) -> int:
        """Count the vectors followed."""
        return int(self._images.shape[1])

    def release(self) -> None:
        """Let go of the vectors followed."""
        self._images = np.zeros((len(self._images), 0))

    def include(self, images: Floats) -> None:
        """Follow the right vectors with these images too."""
        self._images = np.hstack([images, self._images])[:, : self._most]

    def retrace(self, alpha: DualPoint, lam: float, passes: int = 3) -> None:
        """Find the subspace anew, after the last one was lost in the midst of a pass."""
        self.release()
        self._widen(self._width)
        for _ in range(passes):
            self.follow(alpha, lam)

    def follow(self, alpha: DualPoint, lam: float) -> Ritz:
        """Take passes at ``alpha`` until the subspace is wider than what lies above ``lam``."""
        while True:
            self._width = width = self.width
            ritz = self._step(alpha)
            above = int(np.sum(ritz.values > lam))
            full = above > 0.9 * width and len(ritz.values) == width < self._most
            self._images = ritz.q[:, : int(1.15 * above) + 48]
            if not full:
                self._widen(int(1.12 * above) + 32 - self.width)
                return ritz
            del ritz  # before the next, wider one is made
            self._widen(above // 2 + 12)

    def _widen(self, count: int) -> None:
        count = min(count, self._most - self.width)
        if count > 0:
            fresh = self._rng.standard_normal((self._problem.shape[1], count))
            self._images = np.hstack([self._images, self._problem.col_cov.apply(fresh)])

    def _step(self, alpha: DualPoint) -> Ritz:
        problem, centre = self._problem, self.centre
        a = alpha.times(self._images)
        if centre is not None:
            a += centre.a @ (centre.b.T @ self._images)
        self.release()  # the largest array there is
        return self.settled(*orthonormal(a, problem.row_cov.apply(a)), alpha)

    def settled(self, a: Floats, p: Floats, alpha: DualPoint) -> Ritz:
        """Return the Ritz values on these left vectors; ``S`` does not lead out of the right ones.

        The right vectors span ``S' U``, exactly: what is left of S there is no leak.
        """
        problem, centre = self._problem, self.centre
        b = alpha.times_t(p)
        if centre is not None:
            b += centre.b @ (centre.a.T @ p)
        q = problem.col_cov.apply(b)
        self.passes += 1
        squares, turn = np.linalg.eigh(symmetric(b.T @ q))
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        count = int(np.sum(values > 1e-7 * values[0])) if len(values) else 0
        values, turn = values[:count], turn[:, ::-1][:, :count]
        return Ritz(values, p @ turn, q @ (turn / values), a, b, turn)
