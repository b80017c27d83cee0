"""Few features: the entries' covariance by way of the features' weights."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance import Covariance, Sum
from sidelight.errors import InputError
from sidelight.posterior.entries import Entries, Query
from sidelight.posterior.systems import System, factor, solve_by
from sidelight.problem import Pattern

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ITEMS = 1000  # items of a dense covariance up to which its root is worked out to count features
_NUMBERS = 2**24  # numbers in passing
_LARGEST = 1e13  # of the precision beside the prior's, 1: beyond, rounding decides
_CHEAP = ("linear", "cosine")  # kernels whose root is at hand


def features(cov: Covariance) -> float:
    """Count the features of a covariance; infinity where that would take long."""
    if isinstance(cov, Sum):
        return sum(features(part) for part in cov.parts)
    at_hand = cov.size <= _ITEMS or getattr(cov, "kernel", None) in _CHEAP
    return cov.root_size if at_hand else np.inf


def _products(g: Floats, h: Floats) -> Floats:
    """Return ``g (x) h`` row by row."""
    return (g[:, :, None] * h[:, None, :]).reshape(len(g), -1)


class Weights(System):
    """``K^-1`` by way of the weights of features.

    With ``C_M = G G'`` and ``C_N = H H'``, an entry has the features ``f = g_m (x) h_n``, of which
    there are few. Their weights have the posterior precision ``A = I + sum_l f f' / d_l``, and what
    the entries explain of the pairs' features is ``I - A^-1``.
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._roots = [
            cov.root(np.eye(cov.root_size)) for cov in (entries.row_cov, entries.col_cov)
        ]
        G, H = self._roots
        A = np.eye(G.shape[1] * H.shape[1])
        step = max(_NUMBERS // len(A), 1)
        for at in range(0, len(entries), step):
            rows, cols = entries.pairs[at : at + step].T
            features = _products(G[rows], H[cols])
            features /= np.sqrt(entries.noise[at : at + step])[:, None]
            A += features.T @ features
        if A.diagonal().max() > _LARGEST:
            raise InputError(
                "the noise is too small beside the covariances: rounding would decide",
                remedy="give a larger sigma2, or smaller sample weights",
            )
        self._factor = factor(A)

    def _pairs(self) -> Ints:
        return self._entries.pairs

    def solve(self, right: Floats, scale: Floats) -> tuple[Floats, Floats]:
        """Return ``K^-1 right`` by Woodbury's identity; nothing is left."""
        scaled = right / self._entries.noise[:, None]
        inner = self._inverse(self._down(scaled))
        return scaled - self._up(inner) / self._entries.noise[:, None], np.zeros_like(right)

    def explained(self, query: Query) -> Floats:
        """Return ``k' K^-1 k``."""
        features = self._features(query)
        found = features @ features.T - features @ self._inverse(features.T)
        return np.asarray((found + found.T) / 2)

    def explained_variances(self, query: Query) -> Floats:
        """Return the diagonal of ``explained``, row by row."""
        g, h = query.rows.loadings(self._roots[0]), query.cols.loadings(self._roots[1])
        explained = np.eye(len(self._factor)) - self._whole_inverse
        a, b = g.shape[1], h.shape[1]
        table = explained.reshape(a, b, a, b)
        out = np.empty(len(query))
        for row in np.unique(query.pairs[:, 0]):
            here = np.flatnonzero(query.pairs[:, 0] == row)
            inner = np.tensordot(np.tensordot(g[row], table, (0, 0)), g[row], (1, 0))
            mine = h[query.pairs[here, 1]]
            out[here] = np.einsum("nb,nb->n", mine @ inner, mine)
        return out

    @cached_property
    def _whole_inverse(self) -> Floats:
        return self._inverse(np.eye(len(self._factor)))

    def _inverse(self, right: Floats) -> Floats:
        return solve_by(self._factor, right)

    def _features(self, query: Query) -> Floats:
        g, h = query.rows.loadings(self._roots[0]), query.cols.loadings(self._roots[1])
        rows, cols = query.pairs.T
        return _products(g[rows], h[cols])

    def _down(self, values: Floats) -> Floats:
        """Return the features' sums of values over the entries."""
        rows, cols = self._entries.pairs.T
        G, H = self._roots
        shape = len(G), len(H)
        sums = [
            G.T @ np.asarray(sp.csr_array((column, (rows, cols)), shape=shape) @ H)
            for column in values.T
        ]
        return np.stack([each.ravel() for each in sums], axis=1)

    def _up(self, weights: Floats) -> Floats:
        """Return the entries' sums of the features' weights."""
        G, H = self._roots
        pattern = Pattern(self._entries.pairs, (len(G), len(H)))
        out = np.empty((len(self._entries), weights.shape[1]))
        for k, column in enumerate(weights.T):
            spread = G @ column.reshape(G.shape[1], H.shape[1])
            out[pattern.order, k] = pattern.product(spread, H)
        return out
