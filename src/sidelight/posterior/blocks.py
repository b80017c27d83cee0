"""Conjugate gradients on several right sides at once.

The block method of O'Leary in Dubrulle's form: the residuals are kept as ``Q rho`` with orthonormal
``Q``, so that right sides that depend on each other, or are solved sooner than others, do no harm.
All share one Krylov space, which needs fewer products than each on its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Times = Callable[[Floats, Floats], Floats]


def block_cg(times: Times, right: Floats, goal: float, most: int = 2000) -> tuple[Floats, int]:
    """Solve a positive definite system to a residual of length ``goal`` in every column.

    ``times(X, scale)`` may leave out of the product what is small in ``X @ scale``, the size that
    it has in the residual. Returns the solution and the number of products; the residual is the
    method's own, which rounding parts from the true one: measure that.
    """
    basis, rho = np.linalg.qr(right)
    out, ahead = np.zeros_like(right), basis
    for step in range(most):
        if (np.linalg.norm(rho, axis=0) <= goal).all():
            return out, step
        bent = times(ahead, rho)
        length = _inverse(ahead.T @ bent)
        out += ahead @ (length @ rho)
        basis, turn = np.linalg.qr(basis - bent @ length)
        rho, ahead = turn @ rho, basis + ahead @ turn.T
    return out, most


def _inverse(square: Floats) -> Floats:
    return np.asarray(np.linalg.inv((square + square.T) / 2))
