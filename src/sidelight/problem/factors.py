"""The matrix ``B = U V'`` of the mean, held through dual coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sidelight.covariance.base import Covariance

Floats = NDArray[np.floating[Any]]


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
        left, right = self.a.T @ self.p, self.b.T @ self.q
        return (left + left.T) / 2, (right + right.T) / 2

    def times(self, left: Floats, right: Floats) -> Factors:
        """Return the factors ``U @ left`` and ``V @ right``."""
        return Factors(self.a @ left, self.p @ left, self.b @ right, self.q @ right)

    def scaled(self, scale: Floats) -> Factors:
        """Return both sides with their columns multiplied by ``scale``."""
        return Factors(self.a * scale, self.p * scale, self.b * scale, self.q * scale)

    def leading(self, count: int) -> Factors:
        """Return the first ``count`` factors."""
        parts = (self.a, self.p, self.b, self.q)
        return Factors(*(np.ascontiguousarray(x[:, :count]) for x in parts))

    def beside(self, other: Factors) -> Factors:
        """Return these factors followed by the other's: the sum of the two matrices."""
        return Factors(
            np.hstack([self.a, other.a]),
            np.hstack([self.p, other.p]),
            np.hstack([self.b, other.b]),
            np.hstack([self.q, other.q]),
        )

    def moved(self, step: Factors, length: float) -> Factors:
        """Return ``self + length * step``, side by side."""
        return Factors(
            self.a + length * step.a,
            self.p + length * step.p,
            self.b + length * step.b,
            self.q + length * step.q,
        )

    def astype(self, dtype: DTypeLike) -> Factors:
        """Return the factors in another precision."""
        parts = (self.a, self.p, self.b, self.q)
        return Factors(*(np.ascontiguousarray(x, dtype=dtype) for x in parts))

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


def _square_root(gram: Floats) -> Floats:
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
