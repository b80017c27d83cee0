"""The one problem behind every model: its value, gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Covariance
from sidelight.problem.factors import Factors
from sidelight.problem.pattern import Pattern

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gradient:
    """The gradient at some factors, in dual coordinates.

    ``dF/dU = G_M' a`` and ``dF/dV = G_N' b``; ``residual`` is ``w (psi - y)`` at the observed
    places, ``by_row`` is ``E q``, ``by_column`` is ``E' p``.
    """

    value: float
    residual: Floats
    by_row: Floats
    by_column: Floats
    a: Floats
    b: Floats


class Problem:
    """``F(B) = 1/2 sum w (y - psi)^2 + h/2 |B|_F^2 + lam |B|_*`` with ``Psi = G_M B G_N'``.

    Parameters
    ----------
    pairs, y, weights
        Observed entries; ``weights`` are positive (the model's is ``1 / sigma2``).
    row_cov, col_cov
        The covariances of the two axes.
    h
        The weight of the ridge: 1 for the Gaussian process prior, 0 without it.

    With factors ``B = U V'`` the nuclear norm is ``1/2 (|U|^2 + |V|^2)`` when they are balanced.
    ``lam`` is an argument of the methods: a path over it shares the problem.
    """

    def __init__(
        self,
        pairs: NDArray[np.integer[Any]],
        y: Floats,
        weights: Floats,
        row_cov: Covariance,
        col_cov: Covariance,
        h: float = 1.0,
    ) -> None:
        self.row_cov, self.col_cov, self.h = row_cov, col_cov, h
        self.pattern = Pattern(pairs, (row_cov.size, col_cov.size))
        self.y = np.asarray(y, float)[self.pattern.order]
        self.weights = np.asarray(weights, float)[self.pattern.order]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.pattern.shape

    def loss(self, residual: Floats) -> float:
        """Return ``1/2 sum w (y - psi)^2`` from the weighted residual."""
        return float(0.5 * np.dot(residual, residual / self.weights))

    def residual(self, factors: Factors) -> Floats:
        """Return ``w (psi - y)`` at the observed places."""
        if factors.rank == 0:
            return np.asarray(-self.weights * self.y)
        return np.asarray(self.weights * (self.pattern.product(factors.p, factors.q) - self.y))

    def value(self, factors: Factors, lam: float) -> float:
        """Return the objective in factor form, an upper bound of ``F(B)``."""
        return self.loss(self.residual(factors)) + self._penalty(*factors.grams(), lam)

    def _penalty(self, left: Floats, right: Floats, lam: float) -> float:
        ridge = 0.5 * self.h * np.sum(left * right)
        return float(ridge + 0.5 * lam * (np.trace(left) + np.trace(right)))

    def gradient(self, factors: Factors, lam: float) -> Gradient:
        """Return the value and the gradient at the factors."""
        e, by_row = self.pattern.residual(self.weights, self.y, factors.p, factors.q)
        by_column = self.pattern.times_t(e, factors.p)
        left, right = factors.grams()
        return Gradient(
            value=self.loss(e) + self._penalty(left, right, lam),
            residual=e,
            by_row=by_row,
            by_column=by_column,
            a=by_row + lam * factors.a + self.h * (factors.a @ right),
            b=by_column + lam * factors.b + self.h * (factors.b @ left),
        )

    def images(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Apply the covariances to the two sides."""
        return self.row_cov.apply(a), self.col_cov.apply(b)
