"""What every covariance on one axis answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.inputs import vector
from sidelight.errors import InputError

if TYPE_CHECKING:
    from sidelight.covariance.sums import Sum

Array = NDArray[np.float64]
Index = NDArray[np.integer[Any]]

_RANGE = (1e-6, 1e6)


_STRIP = 512  # items whose rows are held at a time


@dataclass(frozen=True, eq=False)
class Carried:
    """What other items carry to one item: the terms of ``(C @ weights)[item]``.

    Attributes
    ----------
    own
        What the item's own weight brings; 0 for a new item.
    items
        The known items that carry something, each once, in ascending order.
    amounts
        What each of them carries, never 0; with ``own`` they add up to the whole.
    """

    own: float
    items: Index
    amounts: Array

    @classmethod
    def by(cls, own: float, items: Index, amounts: Array) -> Carried:
        """Leave out the items that carry nothing."""
        some = amounts != 0
        return cls(float(own), items[some], amounts[some])


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
    def rows(self, index: Index) -> Array:
        """Return ``C(new, known)[index]``, dense, one row for each new item asked."""

    @abstractmethod
    def block(self) -> Array:
        """Return ``C(new, new)``, dense; there are few new items at a time."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the prior variances of the new items."""

    @abstractmethod
    def loadings(self) -> tuple[Array, Array]:
        """Return ``T`` and ``rest``, by which new and known items are drawn together.

        With ``G`` the known covariance's root, ``C(new, known) = T G'`` and
        ``C(new, new) = T T' + rest``. So ``G e`` and ``T e + noise`` are one joint draw, where
        ``e`` is standard normal and ``noise`` has the covariance ``rest``. ``T`` is dense, new
        items by ``root_size``; ``rest`` is positive semidefinite.
        """

    def carriers(self, item: int, weights: Array) -> Carried:
        """Say who carries ``(C(new, known) @ weights)[item]`` to a new item.

        Parameters
        ----------
        item
            The new item, from 0.
        weights
            One for each known item.
        """
        amounts = self.rows(np.array([item]))[0] * vector(weights, self.known)
        return Carried.by(0.0, np.arange(self.known), amounts)


class Operator(ABC):
    """A symmetric operator over the items of one axis."""

    size: int

    @abstractmethod
    def apply(self, X: Array) -> Array:
        """Multiply by ``X``: a vector or a matrix of columns, never written to."""

    @abstractmethod
    def diagonal(self, index: Index | None = None) -> Array:
        """Return the diagonal, of all items or of those asked."""

    def rows(self, index: Index) -> Array:
        """Return the rows of some items, dense, one for each item asked."""
        picks = np.zeros((self.size, len(index)))
        picks[np.asarray(index), np.arange(len(index))] = 1.0
        return np.ascontiguousarray(self.apply(picks).T)

    def between(self, left: Index, right: Index) -> Array:
        """Return the entries between some items and others, dense, a strip of rows at a time."""
        if len(right) < len(left):
            return np.ascontiguousarray(self.between(right, left).T)
        out = np.empty((len(left), len(right)))
        for at in range(0, len(left), _STRIP):
            strip = slice(at, at + _STRIP)
            out[strip] = self.rows(left[strip])[:, right]
        return out


class Covariance(Operator):
    """A positive semidefinite operator ``C = G G'`` over the items of one axis.

    Immutable: arrays given at construction are copied or made read-only, so a covariance can be
    shared between models, and scikit-learn's ``clone`` returns the same object.
    """

    root_size: int

    @abstractmethod
    def root(self, X: Array) -> Array:
        """Multiply ``G @ X`` with ``root_size`` rows in and ``size`` rows out."""

    @abstractmethod
    def root_t(self, X: Array) -> Array:
        """Multiply ``G' @ X`` with ``size`` rows in and ``root_size`` rows out."""

    def rough_rows(self, index: Index) -> NDArray[np.float32]:
        """Return ``C[index]`` in single precision, where that is cheaper; right to about 1e-7."""
        return self.rows(index).astype(np.float32)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent draws of ``N(0, C)``, one in each column."""
        return self.root(rng.standard_normal((self.root_size, count)))

    @abstractmethod
    def cross(self, new: Any) -> Cross:
        """Place new items beside the known ones; each class says what describes them."""

    def parameters(self) -> dict[str, float]:
        """Return the numbers that can be learnt, by name."""
        return {}

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the open interval in which each parameter may be learnt."""
        return dict.fromkeys(self.parameters(), _RANGE)

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same covariance with some parameters changed, sharing all large arrays."""
        present = self.parameters()
        for name in values:
            self._refuse_unknown(name)
        changed = {name: value for name, value in values.items() if value != present[name]}
        return self._changed(changed) if changed else self

    def slope(self, name: str) -> Operator:
        """Return ``dC / d(parameter)``: symmetric, but not positive semidefinite."""
        self._refuse_unknown(name)
        return self._slope(name)

    def _changed(self, values: dict[str, float]) -> Self:
        """Set parameters, known by name, that differ from the present ones."""
        raise NotImplementedError

    def _slope(self, name: str) -> Operator:
        """Differentiate by a parameter that there is."""
        raise NotImplementedError

    def _refuse_unknown(self, name: str) -> None:
        names = list(self.parameters())
        if name not in names:
            raise InputError(
                f"{type(self).__name__} has no parameter {name!r}",
                remedy=f"use one of {', '.join(names)}" if names else "it has none that are learnt",
            )

    def carriers(self, item: int, weights: Array) -> Carried:
        """Say who carries ``(C @ weights)[item]`` to an item.

        By default every item that it varies with; in a graph its neighbours, who pass on what
        comes from farther away.

        Parameters
        ----------
        item
            The item.
        weights
            One for each item.
        """
        amounts = self.rows(np.array([item]))[0] * vector(weights, self.size)
        own, amounts[item] = float(amounts[item]), 0.0
        return Carried.by(own, np.arange(self.size), amounts)

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return plain settings (JSON) and arrays, enough for ``from_state``."""

    @classmethod
    @abstractmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""

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
