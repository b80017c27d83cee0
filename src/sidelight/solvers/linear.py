"""The model without the nuclear norm: conjugate gradients on one number per observed entry.

``(C_obs + 1/w) alpha = y`` with ``C_obs v = (C_M [v] C_N)`` at the observed places. Neither an
L x L nor an M x N matrix is formed. Conjugate gradients stop on the duality gap, which here is a
norm of their residual.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Problem, gram_product
from sidelight.solvers.solution import LinearSolution, Trace, Watch, certificate

Floats = NDArray[np.float64]

_STEPS = 20_000


def solve_linear(
    problem: Problem, tol: float = 1e-4, *, watch: Watch | None = None
) -> LinearSolution:
    """Solve for the mean to a certified relative gap; KeyboardInterrupt ends the run, labelled."""
    trace, steps = Trace(watch), _Steps(problem)
    stopped = f"{_STEPS} steps did not reach tol = {tol:g}"
    try:
        for _ in range(_STEPS):
            primal, gap = steps.values()
            trace.note(min(problem.shape), primal, gap / max(primal, 1e-300))
            if gap <= 0.5 * tol * primal:
                break
            if not steps.advance():
                stopped = "rounding leaves no further progress"
                break
    except KeyboardInterrupt:
        stopped, trace.watch = "interrupted", None
    alpha, primal, dual = steps.finish()
    rank = min(problem.shape)
    return LinearSolution(alpha, certificate(primal, dual, rank, 1.0, tol, trace, stopped))


class _Steps:
    """Conjugate gradients in ``beta = alpha / sqrt(w)``: ``(I + sqrt(w) C sqrt(w)) beta = ...``."""

    def __init__(self, problem: Problem) -> None:
        self._root, self._y = np.sqrt(problem.weights), problem.y
        self._covary = gram_product(problem.pattern, problem.row_cov, problem.col_cov)
        self._rest = self._root * self._y
        self._beta, self._ahead = np.zeros_like(self._rest), self._rest.copy()
        self._square = float(self._rest @ self._rest)

    def _times(self, beta: Floats) -> Floats:
        return np.asarray(beta + self._root * self._covary(self._root * beta))

    def values(self) -> tuple[float, float]:
        """Return the primal value and the gap, ``|rest|^2 / 2``, at the present point."""
        fitted = self._root * self._y - self._rest - self._beta  # sqrt(w) psi
        misfit = self._rest + self._beta  # sqrt(w) (y - psi)
        return 0.5 * float(misfit @ misfit + self._beta @ fitted), 0.5 * self._square

    def advance(self) -> bool:
        """Take one step; say whether there was one to take."""
        bent = self._times(self._ahead)
        curvature = float(self._ahead @ bent)
        if curvature <= 0 or self._square == 0:
            return False
        length = self._square / curvature
        self._beta += length * self._ahead
        self._rest -= length * bent
        square = float(self._rest @ self._rest)
        self._ahead = self._rest + (square / self._square) * self._ahead
        self._square = square
        return True

    def finish(self) -> tuple[Floats, float, float]:
        """Return ``alpha`` with its primal and dual value, from a residual computed anew."""
        self._rest = self._root * self._y - self._times(self._beta)
        self._square = float(self._rest @ self._rest)
        primal, gap = self.values()
        return self._root * self._beta, primal, primal - gap
