"""What the derivatives of covariances are made of: symmetric operators."""

from __future__ import annotations

import numpy as np

from sidelight.covariance.base import Array, Index, Operator
from sidelight.covariance.inputs import columns, picked


class Entries(Operator):
    """A symmetric matrix, given by its entries."""

    def __init__(self, matrix: Array) -> None:
        self._matrix, self.size = matrix, len(matrix)

    def apply(self, X: Array) -> Array:
        """Multiply by ``X``."""
        return np.asarray(self._matrix @ columns(X, self.size))

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the diagonal."""
        found = self._matrix.diagonal()
        return found.copy() if index is None else found[picked(index, self.size)]

    def rows(self, index: Index) -> Array:
        """Return some rows."""
        return self._matrix[picked(index, self.size)]


class Product(Operator):
    """``P Q' + Q P'``, never multiplied out."""

    def __init__(self, P: Array, Q: Array) -> None:
        self._P, self._Q, self.size = P, Q, len(P)

    def apply(self, X: Array) -> Array:
        """Multiply by ``X``."""
        X = columns(X, self.size)
        return np.asarray(self._P @ (self._Q.T @ X) + self._Q @ (self._P.T @ X))

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the diagonal."""
        index = np.arange(self.size) if index is None else picked(index, self.size)
        return np.asarray(2 * np.einsum("ij,ij->i", self._P[index], self._Q[index]))

    def rows(self, index: Index) -> Array:
        """Return some rows."""
        index = picked(index, self.size)
        return np.asarray(self._P[index] @ self._Q.T + self._Q[index] @ self._P.T)


class Scaled(Operator):
    """A multiple of another operator."""

    def __init__(self, factor: float, operator: Operator) -> None:
        self._factor, self._operator, self.size = factor, operator, operator.size

    def apply(self, X: Array) -> Array:
        """Multiply by ``X``."""
        return self._factor * self._operator.apply(X)

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the diagonal."""
        return self._factor * self._operator.diagonal(index)

    def rows(self, index: Index) -> Array:
        """Return some rows."""
        return self._factor * self._operator.rows(index)
