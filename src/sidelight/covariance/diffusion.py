"""Diffusion of heat over a graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Covariance, Cross, Index
from sidelight.covariance.chebyshev import coefficients
from sidelight.covariance.graph import Graph
from sidelight.covariance.inputs import amount, columns, matrix, nonnegative, picked

_BLOCK = 64  # items whose columns are worked out at a time


class Diffusion(Covariance):
    """Heat over a graph, ``C = exp(-a L) + b I`` with ``L = I - D^-1/2 A D^-1/2``.

    An isolated node has ``L = 1``. The root is the symmetric one. Both are polynomials of the
    sparse ``A``, exact to rounding, so that no dense matrix is made at any size.

    Parameters
    ----------
    adjacency
        The graph: a sparse matrix of any format, a dense array or a networkx graph; symmetric,
        nonnegative, without self-links. Or another diffusion's ``graph``, to share it.
    a
        How far heat spreads; 0 leaves every node on its own.
    b
        Variance that a node shares with no other.
    """

    def __init__(self, adjacency: Any, a: float = 1.0, b: float = 1.0) -> None:
        self.a, self.b = amount(a, "a"), amount(b, "b")
        self.graph = adjacency if isinstance(adjacency, Graph) else Graph(adjacency)
        self.size = self.root_size = self.graph.size

    def expansion(self, function: Callable[[Array], Array]) -> Array:
        """Return the Chebyshev coefficients of ``function`` of ``L`` in the matrix ``I - L``."""
        return coefficients(lambda t: function(1.0 - t))

    def _variance(self, x: Array) -> Array:
        return np.asarray(np.exp(-self.a * x) + self.b)

    @cached_property
    def _apply(self) -> Array:
        return self.expansion(self._variance)

    @cached_property
    def _root(self) -> Array:
        if self.b == 0:
            return self.expansion(lambda x: np.exp(-self.a / 2 * x))
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

    def cross(self, new: Any) -> Listeners:
        """Place new nodes by their links to the known ones.

        A new node listens to its neighbours, who do not listen back: the known nodes keep their
        covariance. Its row of the normalised adjacency is ``K_ij = w_ij / sqrt(d_i d_j)``, where
        ``d_i`` is the new node's total weight and ``d_j`` the known node's degree, or ``w_ij``
        where that is larger (a known node without links, say), so that no row of ``K`` is longer
        than 1.

        Parameters
        ----------
        new
            Weights of the links, new nodes by known nodes, sparse or dense, nonnegative.
        """
        return Listeners(self, nonnegative(matrix(new, "links", self.size), "links"))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return ``a``, ``b`` and the links."""
        settings = {"kind": "Diffusion", "a": self.a, "b": self.b}
        graph = self.graph
        return settings, {
            "data": graph.weights,
            "indices": graph.indices,
            "indptr": graph.indptr,
        }

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        size = len(arrays["indptr"]) - 1
        data = np.broadcast_to(arrays["data"], arrays["indices"].shape)
        links = sp.csr_array((data, arrays["indices"], arrays["indptr"]), shape=(size, size))
        return cls(links, settings["a"], settings["b"])

    def __repr__(self) -> str:
        graph = f"{self.size} nodes, {self.graph.links // 2} edges"
        return f"Diffusion({graph}, a={self.a:g}, b={self.b:g})"


class Listeners(Cross):
    """New nodes that listen to known ones, who do not listen back.

    With ``K`` the links of the new nodes, the directed normalised adjacency of all nodes is
    ``[[N, 0], [K, 0]]``. The heat ``exp(-a/2 L)`` of independent noise then gives a new node
    ``K f(L)`` of the known nodes' noise and ``exp(-a/2)`` of its own, where
    ``f(x) = (exp(-a x / 2) - exp(-a / 2)) / (1 - x)``.
    """

    def __init__(self, known: Diffusion, links: Any) -> None:
        self._diffusion, self._links = known, _normalised(links, known.graph.degree)
        self.size, self.known = links.shape[0], known.size

    def _noise(self, x: Array) -> Array:
        """Return ``f(x)``, stably on both sides of its removable pole."""
        half, t = self._diffusion.a / 2, 1.0 - x
        safe = np.where(t == 0, 1.0, t)
        slope = np.where(t == 0, half, -np.sign(t) * np.expm1(-half * np.abs(t)) / safe)
        return np.asarray(np.exp(-half * np.minimum(x, 1.0)) * slope)

    @cached_property
    def _listened(self) -> Array:
        """Coefficients of ``f(L) exp(-a L / 2)``."""
        half = self._diffusion.a / 2
        return self._diffusion.expansion(lambda x: self._noise(x) * np.exp(-half * x))

    @cached_property
    def _heard(self) -> Array:
        return self._diffusion.expansion(self._noise)

    @property
    def _alone(self) -> float:
        """Variance that a new node shares with no other."""
        return float(np.exp(-self._diffusion.a)) + self._diffusion.b

    def _loadings(self, start: int, stop: int) -> Array:
        """Return the columns of ``f(L) K'`` for some new nodes."""
        links = self._links[start:stop].T
        return self._diffusion.graph.polynomial(self._heard, links.toarray())

    def apply(self, X: Array) -> Array:
        """Multiply ``K f(L) exp(-a L / 2) @ X``."""
        X = columns(X, self.known)
        return np.asarray(self._links @ self._diffusion.graph.polynomial(self._listened, X))

    def block(self) -> Array:
        """Return ``K f(L)^2 K' + (exp(-a) + b) I``."""
        loadings = self._loadings(0, self.size)
        return np.asarray(loadings.T @ loadings + self._alone * np.eye(self.size))

    def diagonal(self) -> Array:
        """Return the prior variances of the new nodes."""
        blocks = range(0, self.size, _BLOCK)
        found = [(self._loadings(i, i + _BLOCK) ** 2).sum(axis=0) for i in blocks]
        return np.concatenate([np.zeros(0), *found]) + self._alone


def _normalised(links: Any, degree: Array) -> sp.csr_array[Any]:
    """Return ``w_ij / sqrt(d_i max(d_j, w_ij))`` for the links of new nodes."""
    links = sp.coo_array(links)
    row, column = links.coords
    total = np.asarray(links.sum(axis=1)).ravel()
    reach = np.maximum(degree[column], links.data)
    weights = links.data / np.sqrt(total[row] * reach)
    return sp.csr_array((weights, (row, column)), shape=links.shape)
