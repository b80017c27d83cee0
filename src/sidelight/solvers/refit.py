"""A second look at a certified mean: its rank and subspaces kept, its shrinkage taken back.

The nuclear norm finds the rank by shrinking every singular value alike, those that it keeps as
well. Here the factors it found start a fit of fixed rank with a light ridge on both sides. The
rank (all factors, or those before the widest gap of the spectrum) and the ridge are those that
predict a tenth of the entries best, from the other nine; then all entries are fitted.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors, Problem
from sidelight.solvers.newton import Effort, newton_last
from sidelight.solvers.solution import Solution

Floats = NDArray[np.float64]

_HELD_OUT = 0.1
_HALVINGS = 14  # of the ridge, from lam downwards
_CUSHION = 0.05  # of the largest singular value: gaps among the smallest are noise
_GAP = 2.0  # ratio of neighbouring singular values from which on there is a gap
_TRIAL, _FINAL = Effort(outer=30, inner=40, least=1e-5), Effort(outer=100, inner=60, least=1e-10)


@dataclass(frozen=True)
class Refit:
    """The second stage of a fit.

    ``certified_rank`` and ``certified_values`` are the first stage's, whose certificate speaks of
    them alone; ``rank``, ``ridge`` and ``objective`` are the second stage's, where the objective
    is the loss (that of unobserved cells included) and ``ridge/2 (|U|^2 + |V|^2)``. ``held_out`` is
    the root mean squared error on the entries that chose rank and ridge, which unobserved cells'
    weight, if there is one, took for zeros; None where there were too few to choose.
    """

    certified_rank: int
    certified_values: tuple[float, ...]
    rank: int
    ridge: float
    objective: float
    held_out: float | None
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_record(cls, made: dict[str, Any]) -> Self:
        """Take back what ``record`` gave, also after a passage through JSON."""
        return cls(**(made | {"certified_values": tuple(made["certified_values"])}))


def refit(
    problem: Problem, first: Solution, lam: float, rng: np.random.Generator
) -> tuple[Factors, Floats, Refit]:
    """Return the factors fitted anew, their singular values, and how they were found."""
    started = time.perf_counter()
    plain = problem.part(np.ones(len(problem.y), dtype=bool), h=0.0)  # ridge on the factors
    values, count = first.singular_values, len(problem.y)
    start, ridge, error = first.factors, lam, None
    if len(values) and count > 1:
        test = np.zeros(count, dtype=bool)
        test[rng.permutation(count)[: max(round(_HELD_OUT * count), 1)]] = True
        train, held = plain.part(~test), plain.part(test)
        starts = [first.factors.leading(rank) for rank in _ranks(values)]
        tried = [(*_best_ridge(train, held, each, lam), each) for each in starts]
        error, ridge, start = min(tried, key=lambda found: found[0])
    factors, objective = newton_last(plain, start, ridge, _FINAL)
    factors, s = factors.balanced()
    seconds = time.perf_counter() - started
    certified = tuple(map(float, values))
    return factors, s, Refit(len(values), certified, len(s), ridge, objective, error, seconds)


def _ranks(values: Floats) -> list[int]:
    """Return the ranks worth trying: all factors, and those before the widest gap."""
    cushioned = values + _CUSHION * values[0]
    ratios = cushioned[:-1] / cushioned[1:]
    widest = int(np.argmax(ratios)) + 1 if len(ratios) else 0
    gap = len(ratios) and ratios[widest - 1] >= _GAP
    return [widest, len(values)] if gap else [len(values)]


def _best_ridge(train: Problem, held: Problem, factors: Factors, lam: float) -> tuple[float, float]:
    """Return the least error and its ridge, halved until held-out entries are predicted worse."""
    ridges: list[float] = []
    errors: list[float] = []
    for step in range(_HALVINGS):
        ridges.append(lam / 2**step)
        factors, _ = newton_last(train, factors, ridges[-1], _TRIAL)
        errors.append(_error(held, factors))
        if step >= 2 and errors[-1] > errors[-2] > errors[-3]:
            break
    best = int(np.argmin(errors))
    return errors[best], ridges[best] * 2 ** _vertex(errors, best)


def _error(held: Problem, factors: Factors) -> float:
    off = held.residual(factors) / held.weights
    return float(np.sqrt(np.average(off**2, weights=held.weights)))


def _vertex(errors: list[float], best: int) -> float:
    """Return how far towards its left neighbour the parabola through the best has its vertex."""
    if not 0 < best < len(errors) - 1:
        return 0.0
    left, here, right = errors[best - 1 : best + 2]
    return 0.5 * (right - left) / (left - 2 * here + right)
