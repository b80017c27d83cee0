"""The support vector machine over pairs, without its kernel matrix.

With ``v_i = s_i alpha_i`` for signs ``s`` the dual is

    min  1/2 v' K v - s' v      over  0 <= s_i v_i <= c_i,  sum v = 0

and one product with ``K`` tells its value, its gradient and the gap to the primal. Spectral
projected gradient steps find which of the bounds hold; between them conjugate gradients solve for
the numbers that are free, once these have stopped changing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Product
from sidelight.solvers.solution import Certificate, Trace, Watch, certificate

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_PRODUCTS = 20_000
_FACE_STEPS = 50  # of conjugate gradients, at most, before the bounds are looked at again
_FACE_GAIN = 1e-3  # of the first step's fall of the objective, at which a face is solved


@dataclass(frozen=True)
class Machine:
    """The decision is ``K(pair, entries) weights + bias``."""

    weights: Floats
    bias: float
    certificate: Certificate


def solve_svm(
    kernel: Product,
    signs: Floats,
    costs: Floats,
    rank: int,
    tol: float = 1e-4,
    *,
    watch: Watch | None = None,
) -> Machine:
    """Train to a certified relative gap; KeyboardInterrupt ends the run, labelled.

    Parameters
    ----------
    kernel
        Multiplies by the kernel matrix of the entries.
    signs
        -1 or 1 for each entry, both present.
    costs
        The largest weight of each entry, positive.
    rank
        What the certificate says of the mean's rank.
    """
    trace, dual = Trace(watch), _Dual(kernel, signs, costs)
    stopped = f"{_PRODUCTS} products did not reach tol = {tol:g}"
    try:
        for _ in _moves(dual):
            primal, value, _ = dual.gap()
            trace.note(rank, primal, (primal - value) / max(primal, 1e-300))
            if primal - value <= 0.5 * tol * primal:
                break
            if dual.products >= _PRODUCTS:
                break
        else:
            stopped = "rounding leaves no further progress"
    except KeyboardInterrupt:
        stopped, trace.watch = "interrupted", None
    dual.refresh()
    primal, value, bias = dual.gap()
    proof = certificate(primal, value, rank, 0.0, tol, trace, stopped)
    return Machine(dual.v, bias, proof)


class _Dual:
    """A feasible point, with ``K v`` beside it."""

    def __init__(self, kernel: Product, signs: Floats, costs: Floats) -> None:
        self._kernel, self._signs, self._costs = kernel, signs, costs
        self._low, self._high = np.minimum(signs * costs, 0), np.maximum(signs * costs, 0)
        self.v, self.image = np.zeros_like(signs), np.zeros_like(signs)
        self.products = 0

    def times(self, move: Floats) -> Floats:
        """Multiply by the kernel."""
        self.products += 1
        return self._kernel(move)

    def slope(self) -> Floats:
        """Return the gradient, less its mean over the free: no move that sums to zero sees it.

        Near the optimum nothing is left of it there, and its products keep their digits.
        """
        slope, free = self.image - self._signs, self.free()
        return np.asarray(slope - slope[free].mean()) if free.any() else slope

    def free(self) -> Flags:
        """Say which numbers are strictly between their bounds."""
        return np.asarray((self.v > self._low) & (self.v < self._high))

    def move(self, move: Floats, image: Floats, length: float = 1.0) -> None:
        """Go along a direction that stays feasible."""
        self.v = np.clip(self.v + length * move, self._low, self._high)
        self.image = self.image + length * image

    def room(self, move: Floats) -> float:
        """Return how far along a direction all bounds hold."""
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(move > 0, (self._high - self.v) / move, np.inf)
            down = np.where(move < 0, (self._low - self.v) / move, np.inf)
        return float(min(up.min(), down.min()))

    def projected(self, point: Floats) -> Floats:
        """Return the nearest feasible point: a common shift, found by bisection, and the bounds."""
        low, high = float((point - self._high).min()), float((point - self._low).max())
        for _ in range(60):
            shift = (low + high) / 2
            total = float(np.clip(point - shift, self._low, self._high).sum())
            low, high = (shift, high) if total > 0 else (low, shift)
        found = np.clip(point - (low + high) / 2, self._low, self._high)
        inside = (found > self._low) & (found < self._high)
        if inside.any():
            found[inside] -= found.sum() / np.sum(inside)
            found = np.clip(found, self._low, self._high)
        return np.asarray(found)

    def refresh(self) -> None:
        """Multiply anew: the sum of many small moves has drifted."""
        self.image = self.times(self.v)

    def gap(self) -> tuple[float, float, float]:
        """Return the primal value with the best bias, the dual value, and that bias."""
        square = float(self.v @ self.image)
        bias = best_bias(self._signs, self._costs, self.image)
        hinge = np.maximum(0.0, 1 - self._signs * (self.image + bias))
        primal = 0.5 * square + float(self._costs @ hinge)
        return primal, float(self._signs @ self.v) - 0.5 * square, bias


def best_bias(signs: Floats, costs: Floats, image: Floats) -> float:
    """Return the bias that minimises the hinge losses; the middle one, where many do.

    Each loss has its kink at ``s_i - f_i``, and the slope of their sum grows by ``c_i`` there.
    """
    kinks = signs - image
    order = np.argsort(kinks)
    slopes = np.cumsum(costs[order]) - float(costs[signs > 0].sum())
    flat = 1e-12 * float(costs.sum())
    first = int(np.searchsorted(slopes, -flat))
    last = min(first + 1, len(order) - 1) if slopes[first] <= flat else first
    return float(kinks[order[first]] + kinks[order[last]]) / 2


def _moves(dual: _Dual) -> Iterator[None]:
    """Move the dual, and stop for a look after each product; end when nothing moves it."""
    curvature, before = 1.0, dual.free()
    while True:
        slope = dual.slope()
        move = dual.projected(dual.v - slope / curvature) - dual.v
        fall = -float(slope @ move)
        if not fall > 0:
            return
        image = dual.times(move)
        bent = float(move @ image)
        dual.move(move, image, min(1.0, fall / bent) if bent > 0 else 1.0)
        curvature = max(bent / float(move @ move), 1e-12)
        yield
        free = dual.free()
        if np.array_equal(free, before) and np.sum(free) > 1:
            yield from _face(dual, free)
            free = dual.free()
        before = free


def _face(dual: _Dual, free: Flags) -> Iterator[None]:
    """Conjugate gradients over the free numbers, whose sum stays; end at a bound."""

    def inside(x: Floats) -> Floats:
        return np.where(free, x - x[free].mean(), 0.0)

    rest = inside(-dual.slope())
    ahead, size, first = rest, float(rest @ rest), 0.0
    for _ in range(_FACE_STEPS):
        image = dual.times(ahead)
        bent = float(ahead @ image)
        if not bent > 0 or not size > 0:
            return
        length, room = size / bent, dual.room(ahead)
        if length > room:
            _cut(dual, ahead, image, length, room)
            yield
            return
        dual.move(ahead, image, length)
        yield
        fall = 0.5 * length * size
        first = first or fall
        if fall <= _FACE_GAIN * first:
            return
        rest = inside(-dual.slope())
        size, old = float(rest @ rest), size
        ahead = rest + size / old * ahead


def _cut(dual: _Dual, ahead: Floats, image: Floats, length: float, room: float) -> None:
    """End a step that crosses bounds: at its projection if that is lower, else at the first."""
    move = dual.projected(dual.v + length * ahead) - dual.v
    moved, slope = dual.times(move), dual.slope()
    near = room * float(slope @ ahead) + 0.5 * room**2 * float(ahead @ image)
    far = float(slope @ move) + 0.5 * float(move @ moved)
    if far < near:
        dual.move(move, moved)
    else:
        dual.move(ahead, image, room)
