"""A few pivots of Cholesky's factor, turned into a split preconditioner.

``I + K`` with the first columns ``F`` of a pivoted factor of ``K`` is close to ``I + F F'``, whose
inverse square root is the identity but for the range of ``F``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST, _LOOK = 400, 16  # pivots at most; pivots after which their worth is looked at
_SMALL = 0.1  # what is left on the diagonal, beside the noise, when there is nothing to gain
_WORTH = 4.0  # entries that a pivot must stand for, or the spectrum is flat


def pivots(column: Callable[[int], Floats], diagonal: Floats, most: int = _MOST) -> Floats:
    """Return ``F`` with ``F F'`` near ``K``, of few columns; of none where they would not help."""
    left = diagonal.astype(float).copy()
    factor = np.zeros((len(left), min(most, len(left))))
    before, at = float(left.sum()), 0
    for at in range(factor.shape[1]):
        pivot = int(np.argmax(left))
        if left[pivot] <= _SMALL:
            return factor[:, :at]
        if at and at % _LOOK == 0:
            total = float(left.sum())
            if before - total < _LOOK * _WORTH * left[pivot]:
                return factor[:, :at] if at > _LOOK else factor[:, :0]
            before = total
        found = column(pivot) - factor[:, :at] @ factor[pivot, :at]
        factor[:, at] = found / np.sqrt(left[pivot])
        left -= factor[:, at] ** 2
        left[pivot] = 0.0
        np.maximum(left, 0.0, out=left)
    return factor


class Split:
    """``(I + F F')^-1/2`` as an operator."""

    def __init__(self, factor: Floats) -> None:
        values, vectors = np.linalg.eigh(factor.T @ factor)
        keep = values > 1e-12 * max(values[-1], 1e-300) if len(values) else np.zeros(0, bool)
        self.logdet = float(np.sum(np.log1p(values[keep])))  # of ``I + F F'``
        self._basis = (factor @ vectors[:, keep]) / np.sqrt(values[keep])
        self._shrink = (1 / np.sqrt(1 + values[keep]) - 1)[:, None]

    def __call__(self, X: Floats) -> Floats:
        """Multiply by it."""
        return np.asarray(X + self._basis @ (self._shrink * (self._basis.T @ X)))


def split(C: Floats, H: Floats, at: Ints, other: Ints, root: Floats) -> Split | None:
    """Precondition ``I + D^-1/2 C_obs D^-1/2`` by a few pivots, where they help.

    ``C`` and ``H`` are dense covariances of rows and columns, ``at`` and ``other`` the places of
    the entries in them, ``root`` the square root of ``D``.
    """

    def column(pivot: int) -> Floats:
        own = C[at, at[pivot]] * H[other, other[pivot]]
        return np.asarray(own / root / root[pivot])

    found = pivots(column, C.diagonal()[at] * H.diagonal()[other] / root**2)
    return Split(found) if found.shape[1] else None
