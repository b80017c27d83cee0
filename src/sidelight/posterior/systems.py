"""The entries' own covariance and noise, ``K = C_obs + D``, and what it explains of other pairs.

The posterior's covariance between pairs is the prior's less ``k' K^-1 k``, where ``k`` is the
covariance of the entries with the pairs. ``Factored`` is Cholesky's factor of ``K``, for few
entries; other rooms hold what there is for many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sidelight.covariance import Axis
from sidelight.errors import InputError
from sidelight.posterior.entries import Entries, Query

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 2048  # columns factored at a time


class System(ABC):
    """``K``, ready to be solved with.

    With ``X`` near ``K^-1 k`` and the residual ``R = k - K X``, the symmetric ``k'X + X'R`` misses
    ``k' K^-1 k`` by ``R' K^-1 R`` alone: by the square of the residual.
    """

    residual = 0.0  # the largest relative residual of all solutions so far
    error = 0.0  # a bound on the error of all variances so far

    @abstractmethod
    def solve(self, right: Floats, scale: Floats) -> tuple[Floats, Floats]:
        """Return ``K^-1 right`` for vectors over the entries, in columns, and the residual.

        ``scale`` is a variance for each column, beside which errors are small.
        """

    def explained(self, query: Query) -> Floats:
        """Return ``k' K^-1 k`` between the pairs."""
        cross = query.cross(self._pairs())
        found, left = self.solve(cross, query.variances())
        half = cross.T @ found + found.T @ left
        return np.asarray((half + half.T) / 2)

    def explained_variances(self, query: Query) -> Floats:
        """Return the diagonal of ``explained``."""
        cross = query.cross(self._pairs())
        found, left = self.solve(cross, query.variances())
        left += cross
        return np.asarray(np.einsum("lk,lk->k", left, found))

    @abstractmethod
    def _pairs(self) -> Ints:
        """Return the entries' pairs."""


class Factored(System):
    """Cholesky's factor of ``K``."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        pairs = entries.pairs
        K = Query(pairs, *_axes(entries)).covariance()
        K[np.diag_indices_from(K)] += entries.noise
        self._factor = factor(K)

    def _pairs(self) -> Ints:
        return self._entries.pairs

    def solve(self, right: Floats, scale: Floats) -> tuple[Floats, Floats]:
        """Return ``K^-1 right``; nothing is left."""
        found = solve_by(self._factor, right)
        return np.asarray(found), np.zeros_like(right)

    def explained(self, query: Query) -> Floats:
        """Return ``k' K^-1 k``, positive semidefinite by its form."""
        half = self._half(query)
        return half.T @ half

    def explained_variances(self, query: Query) -> Floats:
        """Return the diagonal of ``explained``."""
        return np.asarray(np.sum(self._half(query) ** 2, axis=0))

    def _half(self, query: Query) -> Floats:
        cross = query.cross(self._entries.pairs)
        return np.asarray(
            sl.solve_triangular(
                self._factor.T, cross, trans="T", overwrite_b=True, check_finite=False
            )
        )

    @property
    def logdet(self) -> float:
        """Return ``log |K|``."""
        return 2 * float(np.sum(np.log(self._factor.diagonal())))


def factor(K: Floats) -> Floats:
    """Turn a matrix into its lower factor, block by block; above the diagonal is left as it is.

    A block is factored in one thread: OpenBLAS can crash in several. Products take all.
    """
    size = len(K)
    for at in range(0, size, _BLOCK):
        stop = min(at + _BLOCK, size)
        K[at:stop, at:stop] = _small_factor(K[at:stop, at:stop])
        below = sl.solve_triangular(
            K[at:stop, at:stop], K[stop:, at:stop].T, lower=True, check_finite=False
        ).T
        K[stop:, at:stop] = below
        for j in range(stop, size, _BLOCK):
            K[j:, j : j + _BLOCK] -= below[j - stop :] @ below[j - stop : j - stop + _BLOCK].T
    return K


def solve_by(lower: Floats, right: Floats) -> Floats:
    """Solve with a factor; turned over, its memory is in the order that spares a copy."""
    return np.asarray(sl.cho_solve((lower.T, False), right, check_finite=False))


def _small_factor(K: Floats) -> Floats:
    try:
        with threadpool_limits(1):
            return np.asarray(sl.cholesky(K, lower=True, check_finite=False))
    except sl.LinAlgError:
        raise InputError(
            "the noise is too small beside the covariances: rounding makes the system singular",
            remedy="give a larger sigma2, or smaller sample weights",
        ) from None


def _axes(entries: Entries) -> tuple[Axis, Axis]:
    return Axis("row", entries.row_cov), Axis("column", entries.col_cov)
