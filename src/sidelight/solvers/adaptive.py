"""The adaptive-rank solver: grow, lower, certify.

The rank of the optimum is unknown. Start from nothing; look for singular directions of S above
``lam`` outside the present subspaces; append them; lower the objective over factors of that rank;
leave out what vanished; stop when the duality gap is small enough.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors, Gap, Problem, Triplets, duality_gap
from sidelight.solvers.newton import Effort, newton
from sidelight.solvers.solution import Certificate, Progress, Solution, Watch, bound_factor

Floats = NDArray[np.floating[Any]]

_ROUNDS = 200
_FIRST_ROOM = 32  # directions appended at most while the rank is small


@dataclass(frozen=True)
class Limits:
    """When to stop: the relative gap, the largest rank allowed, the seconds allowed."""

    tol: float = 1e-4
    max_rank: int | None = None
    max_seconds: float | None = None


@dataclass
class _Run:
    """One solver run: its clock, its trace and who watches it."""

    watch: Watch | None
    started: float = field(default_factory=time.perf_counter)
    trace: list[Progress] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def note(self, rank: int, gap: Gap) -> None:
        self.trace.append(Progress(self.seconds, rank, gap.primal, gap.relative))
        if self.watch is not None:
            self.watch(self.trace[-1])


def solve(
    problem: Problem,
    lam: float,
    limits: Limits = Limits(),  # noqa: B008 -- frozen
    *,
    start: Factors | None = None,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> Solution:
    """Minimise the objective to a certified relative gap.

    ``start`` warm-starts from the factors of another ``lam``. KeyboardInterrupt ends the run with
    the last fit, labelled "stopped".
    """
    rng = np.random.default_rng(0) if rng is None else rng
    run = _Run(watch)
    factors, s = (start or Factors.empty(problem.shape)).balanced()
    gap = _certify(problem, factors, s, lam, limits, rng, run)
    reason, level = "", 0
    for _ in range(_ROUNDS):
        reason = _finished(gap, factors.rank, limits, run)
        if reason:
            break
        try:
            grown = _grow(problem, factors, gap, lam, limits)
            level = 0 if grown.rank > factors.rank else level + 1
            effort = _effort(level, gap.relative, limits.tol)
            factors, s = _settled(*newton(problem, grown, lam, effort), gap, lam, limits.tol)
            gap = _certify(problem, factors, s, lam, limits, rng, run)
        except KeyboardInterrupt:
            reason = "interrupted"
            break
    return Solution(factors, s, _proof(gap, factors.rank, problem.h, limits, reason, run))


def _certify(
    problem: Problem, factors: Factors, s: Floats, lam: float, limits: Limits,
    rng: np.random.Generator, run: _Run,
) -> Gap:  # fmt: skip
    gap = duality_gap(problem, factors, s, lam, limits.tol, rng)
    run.note(factors.rank, gap)
    return gap


def _finished(gap: Gap, rank: int, limits: Limits, run: _Run) -> str:
    if gap.relative <= limits.tol:
        return "the relative gap is at most tol"
    if limits.max_seconds is not None and run.seconds > limits.max_seconds:
        return f"max_seconds={limits.max_seconds:g} passed"
    return ""


def _grow(problem: Problem, factors: Factors, gap: Gap, lam: float, limits: Limits) -> Factors:
    """Append the directions found above ``lam``, each as long as is best for it alone."""
    found = gap.outside
    room = max(_FIRST_ROOM, factors.rank)
    if limits.max_rank is not None:
        room = min(room, limits.max_rank - factors.rank)
    count = min(int(np.sum(found.values > lam * (1 + gap.slack))), room)
    if count <= 0:
        return factors
    length = _lengths(problem, found, count, lam)
    fresh = found.vectors.leading(count).scaled(np.sqrt(length))
    value = problem.value(factors, lam)
    while problem.value(factors.beside(fresh), lam) > value:
        fresh = fresh.scaled(np.full(count, np.sqrt(0.25)))
    return factors.beside(fresh)


def _lengths(problem: Problem, found: Triplets, count: int, lam: float) -> Floats:
    fresh = found.vectors.leading(count)
    bend = np.sum(fresh.p**2 * problem.pattern.times(problem.weights, fresh.q**2), axis=0)
    return (found.values[:count] - lam) / (bend + problem.h)


def _effort(level: int, relative_gap: float, tol: float) -> Effort:
    """Try little while the rank still grows, hard when it has been found."""
    if level == 0:
        near = relative_gap < 100 * tol
        return Effort(outer=2, inner=25 if near else 12, reduction=0.1)
    return Effort(outer=1 + level, inner=20 + 20 * level, reduction=max(0.1**level, 1e-4))


def _settled(
    factors: Factors, s: Floats, gap: Gap, lam: float, tol: float
) -> tuple[Factors, Floats]:
    """Leave out the factors whose whole share of the objective is far below the tolerance."""
    share = lam * np.cumsum(s[::-1])[::-1]
    kept = int(np.sum(share > 1e-4 * tol * gap.primal))
    return factors.leading(kept), s[:kept]


def _proof(gap: Gap, rank: int, h: float, limits: Limits, reason: str, run: _Run) -> Certificate:
    certified = gap.relative <= limits.tol
    return Certificate(
        status="certified" if certified else "stopped",
        reason=reason or f"no progress after {len(run.trace)} rounds",
        objective=gap.primal,
        dual=gap.dual,
        relative_gap=gap.relative,
        rank=rank,
        bound=bound_factor(gap.primal - gap.dual, h),
        seconds=run.seconds,
        trace=tuple(run.trace),
    )
