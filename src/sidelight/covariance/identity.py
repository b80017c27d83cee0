"""No side information: every item on its own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Covariance, Cross, Index
from sidelight.covariance.inputs import columns, picked, whole


class Identity(Covariance):
    """Independent items of unit variance, ``C = I``.

    Parameters
    ----------
    size
        Number of items.
    """

    def __init__(self, size: int) -> None:
        self.size = self.root_size = whole(size, "size")

    def apply(self, X: Array) -> Array:
        """Return a copy of ``X``."""
        return columns(X, self.size).copy()

    root = apply
    root_t = apply

    def diagonal(self, index: Index | None = None) -> Array:
        """Return ones."""
        return np.ones(self.size if index is None else len(picked(index, self.size)))

    def rows(self, index: Index) -> Array:
        """Return the rows asked of the identity."""
        index = picked(index, self.size)
        rows = np.zeros((len(index), self.size))
        rows[np.arange(len(index)), index] = 1.0
        return rows

    def between(self, left: Index, right: Index) -> Array:
        """Return 1 for an item and itself."""
        return np.equal.outer(np.asarray(left), np.asarray(right)).astype(np.float64)

    def cross(self, new: int) -> Independent:
        """Place ``new`` items, independent of all others."""
        return Independent(whole(new, "new"), self.size)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the size."""
        return {"kind": "Identity", "size": self.size}, {}

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        return cls(settings["size"])

    def __repr__(self) -> str:
        return f"Identity({self.size})"


class Independent(Cross):
    """New items without any relation to the known ones."""

    def __init__(self, size: int, known: int) -> None:
        self.size, self.known = size, known

    def apply(self, X: Array) -> Array:
        """Return zeros."""
        return np.zeros((self.size, *columns(X, self.known).shape[1:]))

    def rows(self, index: Index) -> Array:
        """Return zeros."""
        return np.zeros((len(picked(index, self.size)), self.known))

    def block(self) -> Array:
        """Return the identity."""
        return np.eye(self.size)

    def loadings(self) -> tuple[Array, Array]:
        """Return no loadings, and all variance as the items' own."""
        return np.zeros((self.size, self.known)), np.eye(self.size)

    def diagonal(self) -> Array:
        """Return ones."""
        return np.ones(self.size)
