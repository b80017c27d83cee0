"""What a solver returns: the fit, its proof, and how it went."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Progress:
    """One line of a solver's trace; the gap is the solver's own estimate until the last line."""

    seconds: float
    rank: int
    objective: float
    relative_gap: float


Watch = Callable[[Progress], None]


@dataclass
class Trace:
    """A solver's clock, what it noted, and who watches it."""

    watch: Watch | None = None
    started: float = field(default_factory=time.perf_counter)
    lines: list[Progress] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def note(self, rank: int, objective: float, relative_gap: float) -> None:
        """Add a line and show it."""
        self.lines.append(Progress(self.seconds, rank, objective, relative_gap))
        if self.watch is not None:
            self.watch(self.lines[-1])


@dataclass(frozen=True)
class Certificate:
    """The proof of a fit.

    ``status`` is "certified" when ``relative_gap <= tol``, else "stopped"; ``reason`` says why.
    ``bound`` is ``sqrt(2 gap / h)``: no prediction is farther from the exact one than
    ``bound * sqrt(C_M(m, m) C_N(n, n))``; None for h = 0, where no such bound exists.
    """

    status: str
    reason: str
    objective: float
    dual: float
    relative_gap: float
    rank: int
    bound: float | None
    seconds: float
    trace: tuple[Progress, ...] = field(repr=False, default=())


def certificate(
    primal: float, dual: float, rank: int, h: float, tol: float, trace: Trace, stopped: str = ""
) -> Certificate:
    """Draw up the certificate of a fit; ``stopped`` says why the solver went no further."""
    gap = max(primal - dual, 0.0)
    relative = gap / primal if primal > 0 else gap
    trace.note(rank, primal, relative)
    certified = relative <= tol
    return Certificate(
        status="certified" if certified else "stopped",
        reason=f"the relative gap is at most tol = {tol:g}" if certified else stopped,
        objective=primal,
        dual=dual,
        relative_gap=relative,
        rank=rank,
        bound=float(np.sqrt(2 * gap / h)) if h > 0 else None,
        seconds=trace.seconds,
        trace=tuple(trace.lines),
    )


@dataclass(frozen=True)
class Solution:
    """A certified mean in factor form, and the dual point that proves it.

    ``factors`` are balanced, ``singular_values`` are those of ``B``; ``alpha`` is in the order of
    the problem's pattern.
    """

    factors: Factors
    singular_values: Floats
    alpha: Floats
    certificate: Certificate


@dataclass(frozen=True)
class LinearSolution:
    """The mean without the nuclear norm: ``Psi = C_M [alpha] C_N`` on the pattern."""

    alpha: Floats
    certificate: Certificate
