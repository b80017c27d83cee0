"""A path of solutions over ``lam``, each starting from the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Problem
from sidelight.solvers.search import Limits
from sidelight.solvers.solution import Solution, Watch
from sidelight.solvers.spectral import solve


def path(
    problem: Problem,
    lams: Iterable[float],
    limits: Limits = Limits(),  # noqa: B008 -- frozen
    *,
    rng: np.random.Generator | None = None,
    watch: Watch | None = None,
) -> Iterator[tuple[float, Solution]]:
    """Yield ``lam`` and its solution, from the largest ``lam`` downwards."""
    rng = np.random.default_rng(rng)
    last: Solution | None = None
    for lam in sorted(lams, reverse=True):
        last = solve(problem, lam, limits, start=last, rng=rng, watch=watch)
        yield lam, last


def grid(top: float, count: int = 10, ratio: float = 0.01) -> NDArray[np.floating[Any]]:
    """Return ``count`` values of ``lam``, log-spaced from ``top`` down to ``ratio * top``."""
    return np.geomspace(top, ratio * top, count)
