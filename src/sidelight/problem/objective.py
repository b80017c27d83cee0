"""The one problem behind every model: its value, gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Covariance
from sidelight.problem.dualpoint import DualPoint
from sidelight.problem.factors import Factors
from sidelight.problem.pattern import Pattern

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gradient:
    """The gradient at some factors, in dual coordinates.

    ``dF/dU = G_M' a`` and ``dF/dV = G_N' b``; ``slope`` is the sparse part of the loss' slope
    along psi.
    """

    value: float
    slope: Floats
    a: Floats
    b: Floats


class Problem:
    """``F(B) = 1/2 sum w (y - psi)^2 + w0/2 sum psi^2 + h/2 |B|_F^2 + lam |B|_*``.

    ``Psi = G_M B G_N'``; the first sum is over the observed entries, the second over all cells of
    the table that are not observed: they count as zeros, and none of them is ever visited.

    Parameters
    ----------
    pairs, y, weights
        Observed entries; ``weights`` are positive (the model's is ``1 / sigma2``).
    row_cov, col_cov
        The covariances of the two axes.
    h
        The weight of the ridge: 1 for the Gaussian process prior, 0 without it.
    w0
        The weight of every unobserved cell.

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
        w0: float = 0.0,
    ) -> None:
        self.row_cov, self.col_cov, self.h, self.w0 = row_cov, col_cov, h, w0
        self.pattern = Pattern(pairs, (row_cov.size, col_cov.size))
        self.y = np.asarray(y, float)[self.pattern.order]
        self.weights = np.asarray(weights, float)[self.pattern.order]
        self.cells = w0 / self.pattern.repeats() if w0 > 0 else np.zeros(0)

    def part(self, kept: NDArray[np.bool_], h: float | None = None) -> Problem:
        """Return the problem of some of the entries (in the pattern's order), or another ridge."""
        pattern = self.pattern
        pairs = np.column_stack([pattern.rows[kept], pattern.cols[kept]])
        ridge = self.h if h is None else h
        sides = self.row_cov, self.col_cov
        return Problem(pairs, self.y[kept], self.weights[kept], *sides, h=ridge, w0=self.w0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.pattern.shape

    def loss(self, residual: Floats, factors: Factors | None = None) -> float:
        """Return the loss from ``w (psi - y)`` and the factors of psi; None is zero."""
        found = float(0.5 * np.dot(residual, residual / self.weights))
        if self.w0 > 0 and factors is not None:
            found += 0.5 * self.elsewhere(residual / self.weights + self.y, factors)
        return found

    def elsewhere(self, psi: Floats, factors: Factors) -> float:
        """Return ``w0 sum psi^2`` over the unobserved cells, given psi at the observed ones."""
        everywhere = np.sum((factors.p.T @ factors.p) * (factors.q.T @ factors.q))
        return max(float(self.w0 * everywhere - np.sum(self.cells * psi**2)), 0.0)

    def dual_point(self, residual: Floats, factors: Factors) -> DualPoint:
        """Return the dual point that the mean implies: the slope of the loss, turned."""
        return DualPoint(self, -residual, factors)

    def residual(self, factors: Factors) -> Floats:
        """Return ``w (psi - y)`` at the observed places."""
        if factors.rank == 0:
            return np.asarray(-self.weights * self.y)
        return np.asarray(self.weights * (self.pattern.product(factors.p, factors.q) - self.y))

    def value(self, factors: Factors, lam: float) -> float:
        """Return the objective in factor form, an upper bound of ``F(B)``."""
        loss = self.loss(self.residual(factors), factors)
        return loss + self._penalty(*factors.grams(), lam)

    def _penalty(self, left: Floats, right: Floats, lam: float) -> float:
        ridge = 0.5 * self.h * np.sum(left * right)
        return float(ridge + 0.5 * lam * (np.trace(left) + np.trace(right)))

    def gradient(self, factors: Factors, lam: float) -> Gradient:
        """Return the value and the gradient at the factors."""
        e, by_row = self.pattern.residual(self.weights, self.y, factors.p, factors.q)
        loss = self.loss(e, factors)
        if self.w0 > 0:
            e -= self.cells * (e / self.weights + self.y)
            by_row = self.pattern.times(e, factors.q)
            by_row += self.w0 * (factors.p @ (factors.q.T @ factors.q))
        by_column = self.pattern.times_t(e, factors.p)
        if self.w0 > 0:
            by_column += self.w0 * (factors.q @ (factors.p.T @ factors.p))
        left, right = factors.grams()
        return Gradient(
            value=loss + self._penalty(left, right, lam),
            slope=e,
            a=by_row + lam * factors.a + self.h * (factors.a @ right),
            b=by_column + lam * factors.b + self.h * (factors.b @ left),
        )

    def bend(self, at: Factors, slope: Floats, step: Factors) -> tuple[Floats, Floats]:
        """Return the derivative of the loss' gradient along a step, in dual coordinates."""
        weights = self.weights - self.cells if self.w0 > 0 else self.weights
        by_row, by_column = self.pattern.curvature(weights, slope, at.p, at.q, step.p, step.q)
        if self.w0 > 0:
            by_row += self.w0 * _bend(at.p, at.q, step.p, step.q)
            by_column += self.w0 * _bend(at.q, at.p, step.q, step.p)
        return by_row, by_column

    def images(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Apply the covariances to the two sides."""
        return self.row_cov.apply(a), self.col_cov.apply(b)


def _bend(P: Floats, Q: Floats, dP: Floats, dQ: Floats) -> Floats:
    """Return the derivative of ``P Q'Q``."""
    cross = Q.T @ dQ
    return np.asarray(dP @ (Q.T @ Q) + P @ (cross + cross.T))
