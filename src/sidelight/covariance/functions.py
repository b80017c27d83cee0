"""What every covariance that is a function of a graph's Laplacian shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Covariance, Cross, Index
from sidelight.covariance.chebyshev import coefficients
from sidelight.covariance.graph import Graph
from sidelight.covariance.inputs import columns, picked

_BLOCK = 64  # items whose columns are worked out at a time


class LaplacianFunction(Covariance):
    """``C = v(L)`` with ``L = I - D^-1/2 A D^-1/2``, by polynomials of the sparse ``A``.

    An isolated node has ``L = 1``. The root is the symmetric one. Both are exact to rounding, and
    no dense matrix is made at any size.
    """

    graph: Graph

    @abstractmethod
    def _variance(self, x: Array) -> Array:
        """Return ``v`` at eigenvalues of ``L``."""

    def expansion(self, function: Callable[[Array], Array]) -> Array:
        """Return the Chebyshev coefficients of ``function`` of ``L`` in the matrix ``I - L``."""
        return coefficients(lambda t: function(1.0 - t))

    @cached_property
    def _apply(self) -> Array:
        return self.expansion(self._variance)

    @cached_property
    def _root(self) -> Array:
        return self.expansion(lambda x: np.sqrt(self._variance(x)))

    def apply(self, X: Array) -> Array:
        """Multiply ``C @ X``."""
        return self.graph.polynomial(self._apply, columns(X, self.size))

    def root(self, X: Array) -> Array:
        """Multiply by the symmetric square root of ``C``."""
        return self.graph.polynomial(self._root, columns(X, self.size))

    root_t = root

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the prior variances; each node asked costs half a polynomial."""
        nodes = np.arange(self.size) if index is None else picked(index, self.size)
        blocks = range(0, len(nodes), _BLOCK)
        found = [self.graph.diagonal(self._apply, nodes[i : i + _BLOCK]) for i in blocks]
        return np.concatenate([np.zeros(0), *found])

    def rows(self, index: Index) -> Array:
        """Return ``C[index]``, dense, one row for each node asked."""
        return super().rows(picked(index, self.size))

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

    @abstractmethod
    def _loadings(self, start: int, stop: int) -> Array:
        """Return the loadings of some new nodes, one column for each."""

    def block(self) -> Array:
        """Return ``C(new, new)``."""
        loadings = self._loadings(0, self.size)
        return np.asarray(loadings.T @ loadings + self._alone * np.eye(self.size))

    def diagonal(self) -> Array:
        """Return the prior variances of the new nodes."""
        blocks = range(0, self.size, _BLOCK)
        found = [(self._loadings(i, i + _BLOCK) ** 2).sum(axis=0) for i in blocks]
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
