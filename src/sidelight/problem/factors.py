"""The matrix ``B = U V'`` of the mean, held through dual coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Covariance

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Factors:
    """``B = U V'`` with ``U = G_M' a`` and ``V = G_N' b``; ``p = C_M a``, ``q = C_N b``.

    The stationary points of the objective lie in the ranges of ``G_M'`` and ``G_N'`` (the
    representer theorem), so nothing is lost, and a great deal is won: ``U'U = a'p``, the mean is
    ``Psi = p q'``, new rows follow from ``C(new, known) a``, and neither a root nor an inverse of
    a covariance is ever needed, only the product with it.
    """

    a: Floats
    p: Floats
    b: Floats
    q: Floats

    @classmethod
    def make(cls, a: Floats, b: Floats, row_cov: Covariance, col_cov: Covariance) -> Self:
        """Apply the covariances to given dual factors."""
        return cls(a, row_cov.apply(a), b, col_cov.apply(b))

    @classmethod
    def empty(cls, shape: tuple[int, int]) -> Self:
        """Return rank zero."""
        left, right = np.zeros((shape[0], 0)), np.zeros((shape[1], 0))
        return cls(left, left, right, right)

    @property
    def rank(self) -> int:
        """Count the factors."""
        return int(self.a.shape[1])

    def grams(self) -> tuple[Floats, Floats]:
        """Return ``U'U`` and ``V'V``."""
        return symmetric(self.a.T @ self.p), symmetric(self.b.T @ self.q)

    def inner(self, other: Factors) -> float:
        """Return the inner product of the two matrices ``B``."""
        return float(np.sum((self.a.T @ other.p) * (self.b.T @ other.q)))

    def beside(self, other: Factors) -> Factors:
        """Return the factors of the sum of the two matrices ``B``."""
        mine, theirs = (self.a, self.p, self.b, self.q), (other.a, other.p, other.b, other.q)
        return Factors(*(np.hstack(pair) for pair in zip(mine, theirs, strict=True)))

    def weighted(self, scale: float) -> Factors:
        """Return the factors of ``scale B``."""
        return Factors(self.a * scale, self.p * scale, self.b, self.q)

    def times(self, left: Floats, right: Floats) -> Factors:
        """Return the factors ``U @ left`` and ``V @ right``."""
        return Factors(self.a @ left, self.p @ left, self.b @ right, self.q @ right)

    def scaled(self, scale: Floats) -> Factors:
        """Return both sides with their columns multiplied by ``scale``."""
        return Factors(self.a * scale, self.p * scale, self.b * scale, self.q * scale)

    def leading(self, count: int) -> Factors:
        """Return the first ``count`` factors, without a copy."""
        return Factors(*(x[:, :count] for x in (self.a, self.p, self.b, self.q)))

    def moved(self, step: Factors, length: float) -> Factors:
        """Return ``self + length * step``, side by side."""
        return Factors(
            self.a + length * step.a,
            self.p + length * step.p,
            self.b + length * step.b,
            self.q + length * step.q,
        )

    def contiguous(self) -> Factors:
        """Return the factors as the kernels want them."""
        return Factors(*map(np.ascontiguousarray, (self.a, self.p, self.b, self.q)))

    def balanced(self, drop: float = 1e-14) -> tuple[Factors, Floats]:
        """Return the same ``B`` with ``U'U = V'V = diag(s)``, and its singular values ``s``.

        Directions with ``s`` below ``drop`` times the largest are left out.
        """
        if self.rank == 0:
            return self, np.zeros(0)
        left, right = (_square_root(gram) for gram in self.grams())
        W, s, Zt = np.linalg.svd(left @ right)
        kept = s > drop * s[0]
        scale = np.sqrt(s[kept])
        return self.times(right @ (Zt[kept].T / scale), left @ (W[:, kept] / scale)), s[kept]


def symmetric(gram: Floats) -> Floats:
    """Return the symmetric part: a Gram matrix without its rounding."""
    return np.asarray((gram + gram.T) / 2)


def orthonormal(a: Floats, p: Floats, floor: float = 0.0) -> tuple[Floats, Floats]:
    """Orthonormalise ``G' a`` given ``p = C a``, leaving out what is dependent.

    Squared lengths up to ``floor`` count as nothing.
    """
    for _ in range(2):  # the second round removes what the first one's rounding left
        values, vectors = np.linalg.eigh(symmetric(a.T @ p))
        least = max(1e-12 * float(np.max(values, initial=0.0)), floor, 1e-300)
        first, floor = int(np.sum(values <= least)), 0.0
        scale = vectors[:, first:] / np.sqrt(values[first:])
        a, p = a @ scale, p @ scale
    return a, p


def _square_root(gram: Floats) -> Floats:
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
