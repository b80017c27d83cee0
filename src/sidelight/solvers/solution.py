"""What a solver returns: the fit, its proof, and how it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Progress:
    """One line of a solver's trace."""

    seconds: float
    rank: int
    objective: float
    relative_gap: float | None = None


Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Certificate:
    """The proof of a fit.

    ``status`` is "certified" when ``relative_gap <= tol``, else "stopped", and ``reason`` says
    why. ``bound`` is ``sqrt(2 gap / h)``: no prediction is farther from the exact one than
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


@dataclass(frozen=True)
class Solution:
    """A certified mean in factor form: balanced factors and the singular values of ``B``."""

    factors: Factors
    singular_values: Floats
    certificate: Certificate


@dataclass(frozen=True)
class LinearSolution:
    """The mean of the unconstrained posterior: ``Psi = C_M [alpha] C_N`` on the pattern."""

    alpha: Floats
    certificate: Certificate


def bound_factor(gap: float, h: float) -> float | None:
    """Return ``sqrt(2 gap / h)``, the factor of the bound on every prediction."""
    return float(np.sqrt(2 * max(gap, 0.0) / h)) if h > 0 else None
