"""Singular values of ``S = G_M' [alpha] G_N``, by products with the covariances alone.

Right vectors ``v = G_N' b`` are held in dual coordinates ``b``, beside their images ``q = C_N b``:
``S'S v = G_N' [alpha]' C_M [alpha] q``. Inner products are ``b' q``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from sidelight.problem.dualpoint import DualPoint
from sidelight.problem.factors import Factors, orthonormal, symmetric
from sidelight.problem.objective import Problem

Floats = NDArray[np.float64]

_BLOCK = 8
_RISK = 1e-10  # probability that a random start is worse than the bound from above assumes
_MOST_COLUMNS, _KEPT_COLUMNS = 400, 96  # of the Krylov basis, before and after a thick restart
_MOST_PRODUCTS = 4000


@dataclass(frozen=True)
class Triplets:
    """Leading singular values of a deflated ``S``, and images of their right vectors.

    ``values`` are bounds from below, descending; ``upper`` bounds the largest singular value from
    above; ``images`` holds ``C_N b`` for each right vector ``G_N' b``, all orthonormal.
    """

    values: Floats
    upper: float
    images: Floats


def leading_triplets(
    problem: Problem,
    alpha: DualPoint,
    deflate: Factors,
    *,
    norm: float = 0.0,
    enough: float | None,
    tol: float,
    rng: np.random.Generator,
) -> Triplets:
    """Find the leading singular values of ``(I - U U') S (I - V V')`` by a block Krylov space.

    ``deflate`` holds the orthonormal U and V, ``norm`` is that of S there: next to it, the rest
    can be rounding. Without ``enough`` the space grows until the largest
    value is accurate to ``tol`` (relative). Given ``enough``, it grows until the bound from above
    is at most that, or until the largest value is beyond it and known to a tenth of the distance:
    the caller then wants directions, not digits.
    """
    space = _KrylovSpace(problem, alpha, deflate, norm, rng)
    while not space.exhausted:
        space.advance()
        top, near = space.top, space.nearest()
        if enough is None and near - top <= tol * top and space.upper <= 1.05 * top:
            break
        if enough is not None and (space.upper <= enough or near - top < 0.1 * (top - enough)):
            break
        if space.products >= _MOST_PRODUCTS:
            break
        if space.columns >= _MOST_COLUMNS:
            if enough is not None and top <= enough:
                break  # the bound from above has no more to gain
            space.compress(_KEPT_COLUMNS)
    return space.triplets()


class _KrylovSpace:
    """An orthonormal basis of right vectors that ``A = S'S`` maps into it and one more block.

    The bound from above rests on the random start alone, not on a residual, which cannot tell the
    largest value from a smaller one. A start z, isotropic where ``G_N'`` leads, has the share
    ``c = |u'z| / |z|`` of the unit vector u of the largest value. After k more blocks the space
    holds ``p(A) z`` for every polynomial ``p(x) = x r(x)`` with r of degree k; no Rayleigh
    quotient there exceeds the largest Ritz value theta, so

        c^2 p(top)^2 (top - theta)  <=  max over [0, theta] of p(x)^2 (theta - x)

    The best r is the Chebyshev polynomial of the fourth kind, and it gives

        top  <=  theta cosh^2(w / 2)    with    sinh((k + 1/2) w) = 1 / c
    """

    def __init__(
        self,
        problem: Problem,
        alpha: DualPoint,
        deflate: Factors,
        norm: float,
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._alpha, self._deflate = problem, alpha, deflate
        self._most = norm**2  # of the values of A, inside the deflated subspace or outside
        size = problem.col_cov.size
        self._doubt = 1 / _least_share(size, _BLOCK)
        self._b, self._q = np.zeros((size, 0)), np.zeros((size, 0))
        self._gram = np.zeros((0, 0))
        self._lost = 0.0  # what orthonormalisation left out, squared: it moves A by no more
        self.products, self._degree = 0, -1
        self.top, self.upper = 0.0, np.inf
        start = problem.col_cov.draw(_BLOCK, rng) / np.sqrt(size)
        start = start - deflate.q @ (deflate.b.T @ start)
        block = self._outside_basis(*self._times(start))
        self._next: tuple[Floats, Floats] = self._independent(*block)
        self._lost *= self._doubt**2 if self.exhausted else 0.0  # the rest of a start stands for it
        self._settle()

    @property
    def columns(self) -> int:
        return int(self._b.shape[1])

    @property
    def exhausted(self) -> bool:
        """Say whether A maps the basis into itself: its largest value is then A's."""
        return self._next[0].size == 0

    def _times(self, q: Floats) -> tuple[Floats, Floats]:
        """Return ``A v`` and its image, for ``v`` with the image ``q``, outside the deflated."""
        a = self._alpha.times(q)
        a -= self._deflate.a @ (self._deflate.p.T @ a)
        p = self._problem.row_cov.apply(a)
        b = self._alpha.times_t(p)
        b -= self._deflate.b @ (self._deflate.q.T @ b)
        self.products += 2 * q.shape[1]
        return b, self._problem.col_cov.apply(b)

    def _outside_basis(self, b: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Take off what lies in the basis or in the deflated subspace, twice against rounding."""
        for _ in range(2):
            for old, image in ((self._deflate.b, self._deflate.q), (self._b, self._q)):
                overlap = image.T @ b
                b, q = b - old @ overlap, q - image @ overlap
        return b, q

    def _independent(self, b: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Orthonormalise a new block; what has no length next to the rest of A is left out."""
        lengths = np.linalg.eigvalsh(symmetric(b.T @ q))
        rounding = 1e-14 * max(self._most, float(np.max(self._gram, initial=0.0)))
        floor = max(rounding**2, 1e-12 * float(lengths[-1]))
        self._lost += float(np.sum(np.maximum(lengths[lengths <= floor], 0.0)))
        b, q = orthonormal(b, q, floor)
        return orthonormal(*self._outside_basis(b, q))

    def advance(self) -> None:
        """Add a block and prepare the one after it."""
        b, q = self._next
        back, image = self._times(q)
        cross, corner = self._q.T @ back, symmetric(q.T @ back)
        self._gram = np.block([[self._gram, cross], [cross.T, corner]])
        self._b, self._q = np.hstack([self._b, b]), np.hstack([self._q, q])
        back, image = self._outside_basis(back, image)
        self._leak = symmetric(back.T @ image)
        self._next = self._independent(back, image)
        self._degree += 1
        self._settle()

    def _settle(self) -> None:
        """Take the largest Ritz value and bound the largest value from above."""
        values = np.linalg.eigvalsh(self._gram)
        theta = max(float(np.max(values, initial=0.0)), 0.0)
        self.top = float(np.sqrt(theta))
        if self.exhausted:
            reach = theta
        elif self._degree >= 0:
            reach = theta * float(np.cosh(np.arcsinh(self._doubt) / (2 * self._degree + 1))) ** 2
        else:
            return
        lost = 2 * np.sqrt(self._lost) + 1e-14 * theta
        self.upper = min(self.upper, float(np.sqrt(reach + lost)))

    def nearest(self) -> float:
        """Return the top with its residual: some singular value lies between the two."""
        values, vectors = np.linalg.eigh(self._gram)
        last = vectors[-self._leak.shape[0] :, -1]
        leak = 0.0 if self.exhausted else max(float(last @ self._leak @ last), 0.0)
        return float(np.sqrt(max(values[-1], 0.0) + np.sqrt(leak)))

    def compress(self, count: int) -> None:
        """Keep the leading Ritz vectors alone: a thick restart.

        What A makes of them outside their span lies in the block that comes next, so the
        residual's bookkeeping goes on unchanged; the bound from above stays what it was.
        """
        values, vectors = np.linalg.eigh(self._gram)
        kept = vectors[:, -count:]
        self._b, self._q = self._b @ kept, self._q @ kept
        self._gram = np.diag(values[-count:])
        self._doubt = np.inf

    def triplets(self) -> Triplets:
        values, vectors = np.linalg.eigh(self._gram)
        values, vectors = np.sqrt(np.maximum(values[::-1], 0.0)), vectors[:, ::-1]
        kept = values > 1e-6 * np.max(values, initial=1e-300)
        return Triplets(values[kept], self.upper, self._q @ vectors[:, kept])


def _least_share(size: int, block: int) -> float:
    """Return the share of any fixed unit vector in the best start of a block of random ones.

    ``|X'u|^2`` is chi-squared with ``block`` degrees of freedom, and ``|X|_op`` is at most
    ``sqrt(size) + sqrt(block) + 8``; both fail with a probability below ``_RISK``.
    """
    least = np.sqrt(2 * gammaincinv(block / 2, _RISK))
    return float(least / (np.sqrt(size) + np.sqrt(block) + 8))
