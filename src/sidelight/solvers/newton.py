"""Truncated Newton steps on factors of fixed rank, for a rank that is given.

All inner products are those of U and V, read off their dual coordinates
(``<U1, U2> = a1' p2``), so each inner step costs one product with each covariance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors, Gradient, Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """How hard to try.

    Outer steps, inner steps of each, the inner reduction asked for, and the relative fall of the
    objective under which a step was the last.
    """

    outer: int
    inner: int
    reduction: float = 0.1
    least: float = 1e-12


def newton(
    problem: Problem, factors: Factors, lam: float, effort: Effort
) -> Iterator[tuple[Factors, float]]:
    """Lower the objective over factors of this rank; yield them and their value, step by step.

    The last ones are stationary, as far as the effort allows.
    """
    factors, s = factors.balanced()
    for _ in range(effort.outer):
        gradient = problem.gradient(factors, lam)
        yield factors, gradient.value
        step = _direction(problem, factors, s, gradient, lam, effort)
        moved = _search(problem, factors, step, gradient, lam)
        if moved is None:
            return
        factors, s = moved[0].balanced()
        if gradient.value - moved[1] <= effort.least * gradient.value:
            break
    yield factors, problem.value(factors, lam)


def newton_last(
    problem: Problem, factors: Factors, lam: float, effort: Effort
) -> tuple[Factors, float]:
    """Return what ``newton`` yields last."""
    return deque(newton(problem, factors, lam, effort), maxlen=1)[0]


def _dot(x: Factors, y: Factors) -> float:
    """Return ``<U_x, U_y> + <V_x, V_y>``: the dual side of x with the images of y."""
    return float(np.vdot(x.a, y.p) + np.vdot(x.b, y.q))


def _direction(
    problem: Problem, factors: Factors, s: Floats, gradient: Gradient, lam: float, effort: Effort
) -> Factors:
    """Solve the Newton equations approximately; stop at negative curvature."""
    hessian = _Hessian(problem, factors, s, gradient, lam)
    scale = 1 / (lam + problem.h * s)
    rest_a = -gradient.a
    rest_b = -gradient.b
    step_a, step_b = np.zeros_like(rest_a), np.zeros_like(rest_b)
    ahead = _preconditioned(problem, rest_a, rest_b, scale)
    size = first = float(np.vdot(rest_a, ahead.p) + np.vdot(rest_b, ahead.q))
    for _ in range(effort.inner):
        bent_a, bent_b = hessian.times(ahead)
        curvature = float(np.vdot(ahead.p, bent_a) + np.vdot(ahead.q, bent_b))
        if curvature <= 1e-12 * lam * _dot(ahead, ahead):
            break
        length = size / curvature
        step_a += length * ahead.a
        step_b += length * ahead.b
        rest_a -= length * bent_a
        rest_b -= length * bent_b
        fresh = _preconditioned(problem, rest_a, rest_b, scale)
        size, before = float(np.vdot(rest_a, fresh.p) + np.vdot(rest_b, fresh.q)), size
        if not 0 < size > effort.reduction**2 * first:
            break
        ahead = fresh.moved(ahead, size / before)
    if not step_a.any() and not step_b.any():
        step_a, step_b = ahead.a, ahead.b
    return Factors.make(step_a, step_b, problem.row_cov, problem.col_cov)


def _preconditioned(problem: Problem, a: Floats, b: Floats, scale: Floats) -> Factors:
    """Divide each factor by its own curvature, ``lam + h s``."""
    p, q = problem.images(a, b)
    return Factors(a * scale, p * scale, b * scale, q * scale)


class _Hessian:
    """The second derivative at balanced factors."""

    def __init__(
        self, problem: Problem, factors: Factors, s: Floats, gradient: Gradient, lam: float
    ) -> None:
        self._problem, self._h = problem, problem.h
        self._at = factors.contiguous()
        self._slope = gradient.slope
        self._ridge = lam + problem.h * s

    def times(self, step: Factors) -> tuple[Floats, Floats]:
        """Return the two sides of ``H step`` in dual coordinates."""
        at = self._at
        a, b = self._problem.bend(at, self._slope, step)
        a += self._ridge * step.a
        b += self._ridge * step.b
        if self._h:
            left, right = at.a.T @ step.p, at.b.T @ step.q
            a += at.a @ (self._h * (right + right.T))
            b += at.b @ (self._h * (left + left.T))
        return a, b


def _search(
    problem: Problem, factors: Factors, step: Factors, gradient: Gradient, lam: float
) -> tuple[Factors, float] | None:
    """Halve the step until the objective falls enough; None when rounding leaves nothing."""
    slope = float(np.vdot(step.p, gradient.a) + np.vdot(step.q, gradient.b))
    length = 1.0
    while length > 1e-6 and slope < 0:
        moved = factors.moved(step, length)
        value = problem.value(moved, lam)
        if value <= gradient.value + 1e-4 * length * slope:
            return moved, value
        length /= 2
    return None
