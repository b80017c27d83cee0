"""A warm-started singular subspace of ``S = G_M' [alpha] G_N + h B0``.

Each pass is one step of block power iteration with a Rayleigh-Ritz step on one side; between
passes ``alpha`` moves a little, so one pass is enough to follow it. The width follows the number of
singular values above the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.problem.factors import Factors
from sidelight.problem.objective import Problem

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Ritz:
    """Approximate singular values, descending, and the images of the vectors on both sides.

    The dual coordinates of the vectors are kept unturned: most passes never need them.
    """

    values: Floats
    p: Floats
    q: Floats
    _a: Floats
    _b: Floats
    _turn: Floats

    def vectors(self, count: int) -> Factors:
        """Return the first ``count`` singular vectors, orthonormal on both sides."""
        turn = self._turn[:, :count]
        p, q = self.p[:, :count], self.q[:, :count]
        return Factors(self._a @ turn, p, self._b @ (turn / self.values[:count]), q)


class Subspace:
    """The leading right singular vectors of S, followed from pass to pass.

    ``centre`` is the matrix ``B0`` of a proximal term, times ``h``; None without one.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator, width: int = 32) -> None:
        self._problem, self._rng = problem, rng
        self._most = min(problem.shape)
        self._images = np.zeros((problem.shape[1], 0))
        self._widen(width)
        self.centre: Factors | None = None
        self.passes = 0

    @property
    def width(self) -> int:
        """Count the vectors followed."""
        return int(self._images.shape[1])

    @property
    def whole(self) -> bool:
        """Say whether the subspace is as wide as the table is."""
        return self.width >= self._most

    def include(self, found: Factors) -> None:
        """Follow these right vectors too."""
        self._images = np.hstack([found.q, self._images])

    def follow(self, alpha: Floats, lam: float) -> Ritz:
        """Take passes at ``alpha`` until the subspace is wider than what lies above ``lam``."""
        while True:
            ritz = self._step(alpha)
            above = int(np.sum(ritz.values > lam))
            full = above > 0.9 * self.width and not self.whole
            self._images = ritz.q[:, : int(1.2 * above) + 24]
            wanted = int(1.15 * above) + 12
            if full or self.width < wanted:
                self._widen(max(wanted - self.width, self.width // 2 if full else 0))
            if not full:
                return ritz

    def _widen(self, count: int) -> None:
        count = min(count, self._most - self.width)
        if count > 0:
            fresh = self._rng.standard_normal((self._problem.shape[1], count))
            self._images = np.hstack([self._images, self._problem.col_cov.apply(fresh)])

    def _step(self, alpha: Floats) -> Ritz:
        problem, centre = self._problem, self.centre
        a = problem.pattern.times(alpha, self._images)
        if centre is not None:
            a += centre.a @ (centre.b.T @ self._images)
        a, p = _orthonormal(a, problem.row_cov.apply(a))
        b = problem.pattern.times_t(alpha, p)
        if centre is not None:
            b += centre.b @ (centre.a.T @ p)
        q = problem.col_cov.apply(b)
        self.passes += 1
        squares, turn = np.linalg.eigh(_symmetric(b.T @ q))
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        kept = values > 1e-7 * values[0] if len(values) else []
        values, turn = values[kept], turn[:, ::-1][:, kept]
        return Ritz(values, p @ turn, q @ (turn / values), a, b, turn)


def _symmetric(gram: Floats) -> Floats:
    return np.asarray((gram + gram.T) / 2)


def _orthonormal(a: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Orthonormalise in the metric ``a' C a``, leaving out what is dependent."""
    for _ in range(2):
        values, vectors = np.linalg.eigh(_symmetric(a.T @ p))
        kept = values > 1e-13 * values[-1] if len(values) else []
        scale = vectors[:, kept] / np.sqrt(values[kept])
        a, p = a @ scale, p @ scale
    return a, p
