"""A point of the dual: one number for every cell of the table, never written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sidelight.problem.factors import Factors
    from sidelight.problem.objective import Problem

Floats = NDArray[np.float64]


class DualPoint:
    """``alpha``: given on the observed entries, ``-w0 psi`` on all other cells.

    As a table it is sparse plus low rank: ``[alpha] = E - w0 P Q'``, where E makes up for the
    observed cells. Without a weight on the unobserved cells it is sparse alone.

    Parameters
    ----------
    problem
        Whose table it is.
    alpha
        On the pattern.
    mean
        The factors of ``psi``; None is zero.
    psi
        On the pattern, where it is known already.
    """

    def __init__(
        self,
        problem: Problem,
        alpha: Floats,
        mean: Factors | None = None,
        psi: Floats | None = None,
    ) -> None:
        self._pattern = problem.pattern
        self._values, self._low = alpha, None
        self.linear = float(alpha @ problem.y)
        self.square = float(np.sum(alpha**2 / problem.weights))
        if problem.w0 > 0 and mean is not None and mean.rank:
            psi = problem.pattern.product(mean.p, mean.q) if psi is None else psi
            self._values = alpha + problem.cells * psi
            self._low = (problem.w0 * mean.p, np.asarray(mean.q))
            self.square += problem.elsewhere(psi, mean)

    def times(self, Q: Floats) -> Floats:
        """Return ``[alpha] Q``."""
        out = self._pattern.times(self._values, Q)
        if self._low is not None:
            out -= self._low[0] @ (self._low[1].T @ Q)
        return out

    def times_t(self, P: Floats) -> Floats:
        """Return ``[alpha]' P``."""
        out = self._pattern.times_t(self._values, P)
        if self._low is not None:
            out -= self._low[1] @ (self._low[0].T @ P)
        return out
