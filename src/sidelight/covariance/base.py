"""What every covariance on one axis answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sidelight.covariance.sums import Sum

Array = NDArray[np.float64]
Index = NDArray[np.integer[Any]]


class Cross(ABC):
    """The covariance of items that were not there at fit time with those that were.

    ``size`` new items are described against ``known`` old ones.
    """

    size: int
    known: int

    @abstractmethod
    def apply(self, X: Array) -> Array:
        """Multiply ``C(new, known) @ X``: a vector or a matrix of columns."""

    @abstractmethod
    def block(self) -> Array:
        """Return ``C(new, new)``, dense; there are few new items at a time."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the prior variances of the new items."""


class Covariance(ABC):
    """A positive semidefinite operator ``C = G G'`` over the items of one axis.

    Immutable: arrays given at construction are copied or made read-only, so a covariance can be
    shared between models, and scikit-learn's ``clone`` returns the same object.
    """

    size: int
    root_size: int

    @abstractmethod
    def apply(self, X: Array) -> Array:
        """Multiply ``C @ X``: a vector or a matrix of columns, never written to."""

    @abstractmethod
    def root(self, X: Array) -> Array:
        """Multiply ``G @ X`` with ``root_size`` rows in and ``size`` rows out."""

    @abstractmethod
    def root_t(self, X: Array) -> Array:
        """Multiply ``G' @ X`` with ``size`` rows in and ``root_size`` rows out."""

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent draws of ``N(0, C)``, one in each column."""
        return self.root(rng.standard_normal((self.root_size, count)))

    @abstractmethod
    def diagonal(self, index: Index | None = None) -> Array:
        """Return the prior variances, of all items or of those asked."""

    @abstractmethod
    def cross(self, new: Any) -> Cross:
        """Place new items beside the known ones; each class says what describes them."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain settings (JSON) and arrays, enough for ``from_state``."""

    @classmethod
    @abstractmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""

    def rows(self, index: Index) -> Array:
        """Return ``C[index]``, dense, one row for each item asked."""
        picks = np.zeros((self.size, len(index)))
        picks[np.asarray(index), np.arange(len(index))] = 1.0
        return np.ascontiguousarray(self.apply(picks).T)

    def dense(self) -> Array:
        """Return the whole matrix: for tests and small sizes."""
        return self.apply(np.eye(self.size))

    def __add__(self, other: Covariance) -> Sum:
        from sidelight.covariance.sums import Sum

        return Sum([self, other]) if isinstance(other, Covariance) else NotImplemented

    def __mul__(self, weight: float) -> Sum:
        from sidelight.covariance.sums import Sum

        return Sum([self], [weight])

    __rmul__ = __mul__

    # np.float64(2.0) * covariance must come here, not make an object array
    __array_ufunc__ = None

    def __sklearn_clone__(self) -> Self:
        return self
