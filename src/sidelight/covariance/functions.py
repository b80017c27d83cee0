"""What every covariance that is a function of a graph's Laplacian shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Carried, Covariance, Cross, Index, Operator
from sidelight.covariance.chebyshev import coefficients
from sidelight.covariance.graph import Graph
from sidelight.covariance.inputs import columns, picked, vector

_BLOCK = 64  # items whose columns are worked out at a time
_ROUGH = 1e-9  # of the coefficients' sum may be left out where single precision is asked for


class Polynomial(Operator):
    """A function of a graph's Laplacian, by its Chebyshev coefficients in ``I - L``."""

    def __init__(self, graph: Graph, coefficients: Array) -> None:
        self.graph, self.coefficients, self.size = graph, coefficients, graph.size

    def apply(self, X: Array) -> Array:
        """Multiply by ``X``."""
        return self.graph.polynomial(self.coefficients, columns(X, self.size))

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the diagonal; each node asked costs half a polynomial."""
        nodes = np.arange(self.size) if index is None else picked(index, self.size)
        blocks = range(0, len(nodes), _BLOCK)
        found = [self.graph.diagonal(self.coefficients, nodes[i : i + _BLOCK]) for i in blocks]
        return np.concatenate([np.zeros(0), *found])

    def rows(self, index: Index) -> Array:
        """Return some rows, dense, one for each node asked."""
        return super().rows(picked(index, self.size))

    def rough_rows(self, index: Index) -> NDArray[np.float32]:
        """Return some rows in single precision; a node without links costs nothing."""
        nodes = picked(index, self.size)
        linked = np.flatnonzero(self.graph.degree[nodes] > 0)
        picks = np.zeros((self.size, len(linked)), dtype=np.float32)
        picks[nodes[linked], np.arange(len(linked))] = 1.0
        tail = np.cumsum(np.abs(self.coefficients[::-1]))[::-1]
        most = np.flatnonzero(tail > _ROUGH * tail[0])[-1] + 1
        out = np.zeros((len(nodes), self.size), dtype=np.float32)
        out[np.arange(len(nodes)), nodes] = _alone(self.coefficients)
        out[linked] = self.graph.polynomial(self.coefficients[:most], picks).T
        return out


def _alone(coefficients: Array) -> float:
    """Return the polynomial at 0, which is what an isolated node has."""
    return float(np.polynomial.chebyshev.chebval(0.0, coefficients))


class LaplacianFunction(Covariance):
    """``C = v(L)`` with ``L = I - D^-1/2 A D^-1/2``, by polynomials of the sparse ``A``.

    An isolated node has ``L = 1``. The root is the symmetric one. Both are exact to rounding, and
    no dense matrix is made at any size.
    """

    graph: Graph

    @abstractmethod
    def _variance(self, x: Array) -> Array:
        """Return ``v`` at eigenvalues of ``L``."""

    @abstractmethod
    def _passed(self, x: Array) -> Array:
        """Return ``(v(x) - v(1)) / (1 - x)``: what is passed on along a link."""

    def polynomial(self, function: Callable[[Array], Array]) -> Polynomial:
        """Return ``function(L)``, to rounding."""
        return Polynomial(self.graph, coefficients(lambda t: function(1.0 - t)))

    @cached_property
    def _whole(self) -> Polynomial:
        return self.polynomial(self._variance)

    @cached_property
    def _root(self) -> Polynomial:
        return self.polynomial(lambda x: np.sqrt(self._variance(x)))

    @cached_property
    def _between(self) -> Polynomial:
        return self.polynomial(self._passed)

    def apply(self, X: Array) -> Array:
        """Multiply ``C @ X``."""
        return self._whole.apply(X)

    def root(self, X: Array) -> Array:
        """Multiply by the symmetric square root of ``C``."""
        return self._root.apply(X)

    root_t = root

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the prior variances; each node asked costs half a polynomial."""
        return self._whole.diagonal(index)

    def rows(self, index: Index) -> Array:
        """Return ``C[index]``, dense, one row for each node asked."""
        return self._whole.rows(index)

    def rough_rows(self, index: Index) -> NDArray[np.float32]:
        """Return ``C[index]`` in single precision."""
        return self._whole.rough_rows(index)

    def carriers(self, item: int, weights: Array) -> Carried:
        """Say which neighbours carry ``(C @ weights)[item]`` to a node.

        ``C = v(1) I + N g(L)`` with ``N = I - L``, so that ``v(1)`` times its own weight is the
        node's own, and neighbour ``j`` passes on ``N_ij (g(L) weights)_j``: all that comes in
        through that link, from however far.
        """
        (node,), weights = picked([item], self.size), vector(weights, self.size)
        neighbours, links = self.graph.neighbours(int(node))
        own = self._variance(np.ones(1))[0] * weights[node]
        return Carried.by(own, neighbours, links * self._between.apply(weights)[neighbours])

    def _links(self) -> dict[str, NDArray[Any]]:
        """Return the graph's arrays, for the file."""
        graph = self.graph
        return {"data": graph.weights, "indices": graph.indices, "indptr": graph.indptr}

    def __repr__(self) -> str:
        graph = f"{self.size} nodes, {self.graph.links // 2} edges"
        return f"{type(self).__name__}({graph}, {self._settings()})"

    @abstractmethod
    def _settings(self) -> str:
        """Return the parameters as text."""


class NewNodes(Cross):
    """New nodes: loadings on the known nodes' noise, and independent noise of their own."""

    _alone: float  # variance that a new node shares with no other
    _links: sp.csr_array[Any]  # the normalised links K

    @abstractmethod
    def _gathered(self, X: Array) -> Array:
        """Multiply the symmetric operator of which ``C(new, known)`` is ``K`` times."""

    @abstractmethod
    def _noise(self, start: int, stop: int) -> Array:
        """Return the loadings of some new nodes on known noise, one column for each."""

    def apply(self, X: Array) -> Array:
        """Multiply ``C(new, known) @ X``."""
        return np.asarray(self._links @ self._gathered(columns(X, self.known)))

    def rows(self, index: Index) -> Array:
        """Return ``C(new, known)[index]``, dense."""
        links = self._links[picked(index, self.size)]
        return np.ascontiguousarray(self._gathered(links.T.toarray()).T)

    def carriers(self, item: int, weights: Array) -> Carried:
        """Say which links carry ``(C(new, known) @ weights)[item]`` to a new node."""
        (node,), gathered = picked([item], self.size), self._gathered(vector(weights, self.known))
        here = np.s_[self._links.indptr[node] : self._links.indptr[node + 1]]
        items = self._links.indices[here].astype(np.intp)
        return Carried.by(0.0, items, self._links.data[here] * gathered[items])

    def loadings(self) -> tuple[Array, Array]:
        """Return the loadings on the known nodes' noise; what is left is each node's own."""
        return np.ascontiguousarray(self._noise(0, self.size).T), self._alone * np.eye(self.size)

    def block(self) -> Array:
        """Return ``C(new, new)``."""
        loadings = self._noise(0, self.size)
        return np.asarray(loadings.T @ loadings + self._alone * np.eye(self.size))

    def diagonal(self) -> Array:
        """Return the prior variances of the new nodes."""
        blocks = range(0, self.size, _BLOCK)
        found = [(self._noise(i, i + _BLOCK) ** 2).sum(axis=0) for i in blocks]
        return np.concatenate([np.zeros(0), *found]) + self._alone


def linked(arrays: dict[str, NDArray[Any]]) -> sp.csr_array[Any]:
    """Return the adjacency whose arrays were saved."""
    size = len(arrays["indptr"]) - 1
    data = np.broadcast_to(arrays["data"], arrays["indices"].shape)
    return sp.csr_array((data, arrays["indices"], arrays["indptr"]), shape=(size, size))


def normalised(links: Any, degree: Array) -> sp.csr_array[Any]:
    """Return ``w_ij / sqrt(d_i max(d_j, w_ij))`` for the links of new nodes."""
    links = sp.coo_array(links)
    row, column = links.coords
    total = np.asarray(links.sum(axis=1)).ravel()
    reach = np.maximum(degree[column], links.data)
    weights = links.data / np.sqrt(total[row] * reach)
    return sp.csr_array((weights, (row, column)), shape=links.shape)
