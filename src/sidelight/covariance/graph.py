"""Polynomials of a graph's normalised adjacency, without any dense matrix.

``N = D^-1/2 A D^-1/2``. In the scaled vectors ``D^-1/2 x`` it becomes ``D^-1 A``, whose links of an
unweighted graph need no stored weight.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Index
from sidelight.covariance.inputs import frozen, matrix, nonnegative, place
from sidelight.errors import InputError
from sidelight.parallel import share

_BYTES = 512  # of a row worked on at a time: wide rows make scattered reads pay


class Graph:
    """A checked, undirected, weighted graph.

    Parameters
    ----------
    adjacency
        Sparse matrix, dense 2-d array or networkx graph: square, symmetric, finite, nonnegative,
        without self-links.
    """

    def __init__(self, adjacency: Any) -> None:
        links = _symmetric(_square(sp.csr_array(matrix(_plain(adjacency), "adjacency"))))
        self.size = int(links.shape[0])
        self.indptr, self.indices = (frozen(a) for a in _short(links.indptr, links.indices))
        self.degree = frozen(np.asarray(links.sum(axis=1), dtype=np.float64).ravel())
        self.weights = frozen(_shared_weight(links.data))
        linked = self.degree > 0
        self._spread = frozen(np.divide(1.0, self.degree, where=linked, out=np.zeros(self.size)))
        self._scale = frozen(np.sqrt(np.where(linked, self._spread, 1.0)))

    @property
    def links(self) -> int:
        """Stored links: twice the number of edges."""
        return len(self.indices)

    def adjacency(self) -> sp.csr_array[Any]:
        """Return the links as a sparse matrix."""
        data = np.broadcast_to(self.weights, self.indices.shape).copy()
        return sp.csr_array((data, self.indices, self.indptr), shape=(self.size, self.size))

    def neighbours(self, node: int) -> tuple[Index, Array]:
        """Return the nodes that one is linked to, and its row of ``N`` at them."""
        here = np.s_[self.indptr[node] : self.indptr[node + 1]]
        found = self.indices[here].astype(np.intp)
        weights = self.weights if len(self.weights) == 1 else self.weights[here]
        return found, weights * self._scale[node] * self._scale[found]

    def polynomial(self, coefficients: Array, X: NDArray[Any]) -> NDArray[Any]:
        """Return ``sum_k coefficients[k] T_k(N) X`` in the precision of ``X``, by a few columns."""
        wide = X if X.ndim == 2 else X[:, None]
        out: Array = np.empty(wide.shape, X.dtype)
        scale = self._scale[:, None].astype(X.dtype)
        count = -(-wide.shape[1] * X.itemsize // _BYTES)
        bounds = np.linspace(0, wide.shape[1], count + 1).astype(np.intp)
        for start, stop in pairwise(bounds):
            block = np.s_[:, start:stop]
            out[block] = self._clenshaw(coefficients, wide[block] * scale)
        out /= scale
        return np.asarray(out.reshape(X.shape))

    def _clenshaw(self, coefficients: Array, block: Array) -> Array:
        """Clenshaw's recurrence ``b_k = c_k x + 2 N b_(k+1) - b_(k+2)``, in two buffers."""
        block = np.ascontiguousarray(block)
        latest: Array = block * coefficients[-1].astype(block.dtype)
        before = np.zeros_like(block)
        for k in range(len(coefficients) - 2, -1, -1):
            self.step(2.0 if k else 1.0, float(coefficients[k]), block, latest, before)
            latest, before = before, latest
        return latest

    def diagonal(self, coefficients: Array, index: Index) -> Array:
        """Return some diagonal entries of ``sum_k coefficients[k] T_k(N)``.

        ``T_2k = 2 T_k^2 - 1`` and ``T_(2k-1) = 2 T_k T_(k-1) - N``, whose own diagonal is zero,
        halve the degree.
        """
        half = len(coefficients) // 2
        odd, even = np.append(coefficients, 0.0)[1 : 2 * half + 1].reshape(half, 2).T
        latest, before = np.zeros((2, self.size, len(index)))
        latest[index, np.arange(len(index))] = self._scale[index]
        total = np.full(len(index), coefficients[0])
        for k in range(half):
            self.step(2.0 if k else 1.0, 0.0, latest, latest, before)
            latest, before = before, latest
            weighted = 2 * latest / self._scale[:, None] ** 2
            total += even[k] * (np.einsum("ij,ij->j", weighted, latest) - 1)
            total += odd[k] * np.einsum("ij,ij->j", weighted, before)
        return total

    def step(
        self, factor: float, coefficient: float, X: Array, source: Array, target: Array
    ) -> None:
        """Overwrite ``target`` by ``factor D^-1 A source + coefficient X - target``."""

        def kernel(start: int, stop: int) -> None:
            recur(
                start, stop, self.indptr, self.indices, self.weights, self._spread,
                factor, coefficient, X, source, target,
            )  # fmt: skip

        share(kernel, self.size, float(self.links + self.size) * X.shape[1])


_compiled = numba.njit(nogil=True, fastmath=True, cache=True, boundscheck=False)


@_compiled
def recur(
    start: int,
    stop: int,
    indptr: NDArray[np.integer[Any]],
    indices: NDArray[np.integer[Any]],
    weights: Array,
    spread: Array,
    factor: float,
    coefficient: float,
    X: Array,
    source: Array,
    target: Array,
) -> None:
    """Work one fused step of the recurrence on the rows from ``start`` to ``stop``.

    ``weights`` holds one number for each link, or a single one that all links share.
    """
    total = np.empty(X.shape[1], X.dtype)
    own = total.dtype.type(coefficient)
    for i in range(start, stop):
        scale = factor * spread[i]
        if len(weights) == 1:
            _gather(indptr[i], indptr[i + 1], indices, source, total)
            scale *= weights[0]
        else:
            _gather_weighted(indptr[i], indptr[i + 1], indices, weights, source, total)
        spreading = total.dtype.type(scale)
        for c in range(len(total)):
            target[i, c] = spreading * total[c] + own * X[i, c] - target[i, c]


@_compiled
def _gather(
    first: int, last: int, indices: NDArray[np.integer[Any]], source: Array, total: Array
) -> None:
    """Add up the linked rows, four at a time: ``total`` is read and written less often."""
    total[:] = 0.0
    fours = last - (last - first) % 4
    for p in range(first, fours, 4):
        j, k, m, n = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
        for c in range(len(total)):
            total[c] += (source[j, c] + source[k, c]) + (source[m, c] + source[n, c])
    for p in range(fours, last):
        j = indices[p]
        for c in range(len(total)):
            total[c] += source[j, c]


@_compiled
def _gather_weighted(
    first: int,
    last: int,
    indices: NDArray[np.integer[Any]],
    weights: Array,
    source: Array,
    total: Array,
) -> None:
    """Add up the linked rows by weight, two at a time."""
    total[:] = 0.0
    twos = last - (last - first) % 2
    for p in range(first, twos, 2):
        j, k, v, w = indices[p], indices[p + 1], weights[p], weights[p + 1]
        for c in range(len(total)):
            total[c] += v * source[j, c] + w * source[k, c]
    if twos < last:
        j, v = indices[twos], weights[twos]
        for c in range(len(total)):
            total[c] += v * source[j, c]


def recur_plain(
    graph: Graph, factor: float, coefficient: float, X: Array, source: Array, target: Array
) -> None:
    """Work the step of ``recur`` on all rows, by scipy's sparse product."""
    inverse = np.divide(1.0, graph.degree, where=graph.degree > 0, out=np.zeros(graph.size))
    gathered = inverse[:, None] * (graph.adjacency() @ source)
    target[:] = factor * gathered + coefficient * X - target


def _plain(adjacency: Any) -> Any:
    """Turn a networkx graph into its sparse matrix, in the order of its nodes."""
    if hasattr(adjacency, "nodes") and hasattr(adjacency, "adj"):
        import networkx

        if len(adjacency) == 0:
            return sp.csr_array((0, 0))
        return networkx.to_scipy_sparse_array(adjacency, dtype=np.float64, format="csr")
    return adjacency


def _square(links: sp.csr_array[Any]) -> sp.csr_array[Any]:
    nonnegative(links, "adjacency")
    if links.shape[0] != links.shape[1]:
        raise InputError(
            f"adjacency: expected a square matrix, found shape {links.shape}",
            remedy="give one row and one column for each node",
        )
    loops = np.flatnonzero(links.diagonal())
    if loops.size:
        raise InputError(
            f"adjacency: node {loops[0]} is linked to itself", remedy="set the diagonal to zero"
        )
    return links


def _symmetric(links: sp.csr_array[Any]) -> sp.csr_array[Any]:
    difference = sp.csr_array(links - links.T)
    if difference.nnz == 0:
        return links
    worst = int(np.abs(difference.data).argmax())
    if abs(difference.data[worst]) > 1e-8 * links.data.max():
        row, column = place(difference, worst)
        raise InputError(
            f"adjacency: the link from node {row} to node {column} differs from the link back",
            remedy="make the graph undirected, for instance with (A + A.T) / 2",
        )
    return sp.csr_array((links + links.T) / 2)


def _short(*indices: NDArray[Any]) -> list[NDArray[Any]]:
    """Store indices in 32 bits when all of them fit."""
    fits = all(a.max(initial=0) <= np.iinfo(np.int32).max for a in indices)
    return [a.astype(np.int32 if fits else np.int64) for a in indices]


def _shared_weight(weights: Array) -> Array:
    """Keep a single number where all links weigh the same."""
    if len(weights) and (weights == weights[0]).all():
        return weights[:1].copy()
    return weights.copy()
