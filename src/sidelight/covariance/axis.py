"""One axis of a fitted table: the known items, then the new ones of a call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Carried, Covariance, Cross
from sidelight.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """The items of one axis: the known ones, then the new ones of this call."""

    what: str
    cov: Covariance
    new: Cross | None = None

    @classmethod
    def place(cls, what: str, cov: Covariance, new: Any) -> Axis:
        """Put new items, described as the covariance asks, behind the known ones."""
        return cls(what, cov, None if new is None else cov.cross(new))

    @property
    def size(self) -> int:
        """Count known and new items."""
        return self.cov.size + (0 if self.new is None else self.new.size)

    def check(self, index: NDArray[np.int64]) -> None:
        """Refuse an index beyond the items there are."""
        wrong = np.flatnonzero((index < 0) | (index >= self.size))
        if wrong.size:
            raise InputError(
                f"{self.what} {index[wrong[0]]} at position {wrong[0]} is not in"
                f" 0..{self.size - 1}",
                remedy=f"use {self.what} numbers that the covariance knows, or describe new ones",
            )

    def split(self, index: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Say which items are new, and number the new ones from 0."""
        new = index >= self.cov.size
        return new, index[new] - self.cov.size

    def spread(self, weights: Floats, images: Floats, index: NDArray[np.int64]) -> Floats:
        """Return ``C(items, known) weights`` for the items asked.

        ``images`` is ``C weights`` for the known items, which need only be read off.
        """
        new, number = self.split(index)
        out = np.empty((len(index), weights.shape[1]))
        out[~new] = images[index[~new]]
        if new.any() and self.new is not None:
            out[new] = self.new.apply(weights)[number]
        return out

    def rows(self, index: NDArray[np.int64]) -> Floats:
        """Return ``C(items, known)`` for the items asked."""
        new, number = self.split(index)
        out = np.empty((len(index), self.cov.size))
        out[~new] = self.cov.rows(index[~new])
        if new.any() and self.new is not None:
            picks, place = np.unique(number, return_inverse=True)
            out[new] = self.new.rows(picks)[place]
        return out

    def between(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> Floats:
        """Return ``C(left, right)``, dense."""
        fresh_left, number = self.split(left)
        fresh_right, other = self.split(right)
        out = np.empty((len(left), len(right)))
        known, known_right = left[~fresh_left], right[~fresh_right]
        out[np.ix_(~fresh_left, ~fresh_right)] = self.cov.between(known, known_right)
        if self.new is None:
            return out
        if fresh_left.any():
            out[np.ix_(fresh_left, ~fresh_right)] = self.new.rows(number)[:, known_right]
        if fresh_right.any():
            out[np.ix_(~fresh_left, fresh_right)] = self.new.rows(other)[:, known].T
        if fresh_left.any() and fresh_right.any():
            out[np.ix_(fresh_left, fresh_right)] = self.new.block()[np.ix_(number, other)]
        return out

    def variances(self, index: NDArray[np.int64]) -> Floats:
        """Return the prior variances of the items asked."""
        new, number = self.split(index)
        out = np.empty(len(index))
        out[~new] = self.cov.diagonal(index[~new])
        if new.any() and self.new is not None:
            out[new] = self.new.diagonal()[number]
        return out

    def loadings(self, root: Floats) -> Floats:
        """Return the root's rows of all items; what new items have of their own is not in it."""
        return root if self.new is None else np.vstack([root, self._joint[0]])

    @property
    def root_size(self) -> int:
        """Count the columns of the joint root of known and new items."""
        return self.cov.root_size + (0 if self.new is None else self.new.size)

    def root(self, X: Floats) -> Floats:
        """Multiply by the joint root: draws of all items from ``root_size`` independent numbers."""
        known = self.cov.root(X[: self.cov.root_size])
        if self.new is None:
            return known
        loadings, own = self._joint
        fresh = loadings @ X[: self.cov.root_size] + own @ X[self.cov.root_size :]
        return np.vstack([known, fresh])

    @cached_property
    def _joint(self) -> tuple[Floats, Floats]:
        """The rows of the joint root that belong to new items."""
        assert self.new is not None
        loadings, rest = self.new.loadings()
        return loadings, psd_root(rest)

    def carriers(self, item: int, weights: Floats) -> Carried:
        """Say which known items carry ``(C(items, known) @ weights)[item]`` to an item."""
        self.check(np.array([item]))
        if self.new is not None and item >= self.cov.size:
            return self.new.carriers(item - self.cov.size, weights)
        return self.cov.carriers(item, weights)


def psd_root(C: Floats) -> Floats:
    """Return a square root of a positive semidefinite matrix, to rounding."""
    values, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
