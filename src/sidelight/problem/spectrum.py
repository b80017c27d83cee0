"""Singular values of ``S = G_M' [alpha] G_N``, by products with the covariances alone.

Left vectors ``u = G_M' a`` and right vectors ``v = G_N' b`` are held in dual coordinates, beside
their images ``C_M a`` and ``C_N b``: ``S v = G_M' (alpha C_N b)``. Inner products are ``a' C_M a``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem.factors import Factors, orthonormal
from sidelight.problem.objective import Problem

Floats = NDArray[np.float64]

_MOST_COLUMNS, _KEPT_COLUMNS = 240, 96  # of the Krylov basis, before and after a thick restart


@dataclass(frozen=True)
class Triplets:
    """Leading singular triplets of a deflated ``S``.

    ``values`` are lower bounds, descending; ``upper`` bounds the largest singular value from
    above by its residual; ``vectors`` has orthonormal sides; ``products`` counts the products
    with ``S`` and ``S'``.
    """

    values: Floats
    upper: float
    vectors: Factors
    products: int


def leading_triplets(
    problem: Problem,
    alpha: Floats,
    deflate: Factors,
    *,
    enough: float | None,
    tol: float,
    rng: np.random.Generator,
    block: int = 8,
    max_products: int = 4000,
) -> Triplets:
    """Find the leading singular triplets of ``(I - U U') S (I - V V')`` by a block Krylov space.

    ``deflate`` holds the orthonormal U and V. The space starts at random and grows until its
    largest Ritz value is accurate to ``tol`` (relative) or, given ``enough``, until the bound from
    above is at most that, or the largest value is beyond it and known to a tenth of the distance:
    the caller then wants directions, not digits.
    """
    space = _KrylovSpace(problem, alpha, deflate, block, rng)
    upper = 0.0
    while not space.exhausted:
        space.advance()
        top, upper = space.bounds()
        if upper - top <= tol * top or space.products >= max_products:
            break
        if enough is not None and _decided(top, upper, enough):
            break
        if space.columns >= _MOST_COLUMNS:
            space.compress(_KEPT_COLUMNS)
    return space.triplets(upper)


def _decided(top: float, upper: float, enough: float) -> bool:
    """Say whether the largest singular value is known to lie on one side of ``enough``.

    A residual bounds the distance to *some* singular value. From a random start a Krylov space
    finds the outermost first: whatever it can still miss lies above the largest Ritz value by less
    than that one's own residual, once the residual is small.
    """
    below = upper <= enough and upper - top <= 0.005 * top
    return below or upper - top < 0.1 * (top - enough)


class _KrylovSpace:
    """An orthonormal basis of right vectors with the images of each under S, block by block."""

    def __init__(
        self, problem: Problem, alpha: Floats, deflate: Factors, block: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._problem, self._alpha, self._deflate = problem, alpha, deflate
        rows, cols = problem.shape
        self._b, self._q = np.zeros((cols, 0)), np.zeros((cols, 0))
        self._a, self._p = np.zeros((rows, 0)), np.zeros((rows, 0))
        self._gram = np.zeros((0, 0))
        self.products = 0
        start = rng.standard_normal((cols, min(block, rows, cols)))
        self._next = self._fresh(start, problem.col_cov.apply(start))
        self.exhausted = self._next[0].shape[1] == 0

    @property
    def columns(self) -> int:
        return int(self._b.shape[1])

    def _fresh(self, b: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Orthonormalise new right vectors against the deflated ones and the basis."""
        for _ in range(2):
            for old, image in ((self._deflate.b, self._deflate.q), (self._b, self._q)):
                overlap = image.T @ b
                b, q = b - old @ overlap, q - image @ overlap
            b, q = orthonormal(b, q)
        return b, q

    def advance(self) -> None:
        """Add a block and prepare the one after it."""
        b, q = self._next
        a = self._problem.pattern.times(self._alpha, q)
        p = self._problem.row_cov.apply(a)
        overlap = self._deflate.p.T @ a
        a, p = a - self._deflate.a @ overlap, p - self._deflate.p @ overlap
        self._extend_gram(a, p)
        self._b, self._q = np.hstack([self._b, b]), np.hstack([self._q, q])
        self._a, self._p = np.hstack([self._a, a]), np.hstack([self._p, p])
        back = self._problem.pattern.times_t(self._alpha, p)
        image = self._problem.col_cov.apply(back)
        self.products += 2 * b.shape[1]
        self._scale = max(float(np.max(np.einsum("ij,ij->j", back, image), initial=0.0)), 0.0)
        self._leak(back, image)

    def _extend_gram(self, a: Floats, p: Floats) -> None:
        cross, corner = self._p.T @ a, a.T @ p
        self._gram = np.block([[self._gram, cross], [cross.T, (corner + corner.T) / 2]])

    def _leak(self, back: Floats, image: Floats) -> None:
        """Keep what ``S'S`` of the last block has outside the basis: residual and next block."""
        for _ in range(2):
            for old, old_image in ((self._deflate.b, self._deflate.q), (self._b, self._q)):
                overlap = old_image.T @ back
                back, image = back - old @ overlap, image - old_image @ overlap
        outside = back.T @ image
        self._outside = (outside + outside.T) / 2
        room = min(self._problem.shape) - self._deflate.rank - self.columns
        self._next = self._fresh(*orthonormal(back, image, floor=1e-28 * self._scale))
        self.exhausted = self._next[0].shape[1] == 0 or room <= 0

    def compress(self, count: int) -> None:
        """Keep the leading Ritz vectors alone: a thick restart.

        What ``S'S`` makes of them outside their span lies in the block that comes next, so the
        residual's bookkeeping goes on unchanged.
        """
        values, vectors = np.linalg.eigh(self._gram)
        kept = vectors[:, -count:]
        self._a, self._p = self._a @ kept, self._p @ kept
        self._b, self._q = self._b @ kept, self._q @ kept
        self._gram = np.diag(values[-count:])

    def bounds(self) -> tuple[float, float]:
        """Return the largest Ritz value and, by its residual, a bound from above."""
        values, vectors = np.linalg.eigh(self._gram)
        top, last = max(values[-1], 0.0), vectors[-self._outside.shape[0] :, -1]
        leak = 0.0 if self.exhausted else max(float(last @ self._outside @ last), 0.0)
        return float(np.sqrt(top)), float(np.sqrt(top + np.sqrt(leak)))

    def triplets(self, upper: float) -> Triplets:
        values, vectors = np.linalg.eigh(self._gram)
        values, vectors = np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]
        kept = values > 1e-8 * np.max(values, initial=1e-300)
        left, right = vectors[:, kept] / values[kept], vectors[:, kept]
        factors = Factors(self._a @ left, self._p @ left, self._b @ right, self._q @ right)
        return Triplets(values[kept], upper, factors, self.products)
