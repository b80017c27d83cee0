"""Diffusion of heat over a graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array
from sidelight.covariance.functions import LaplacianFunction, NewNodes, linked, normalised
from sidelight.covariance.graph import Graph
from sidelight.covariance.inputs import amount, columns, matrix, nonnegative


class Diffusion(LaplacianFunction):
    """Heat over a graph, ``C = exp(-a L) + b I`` with ``L = I - D^-1/2 A D^-1/2``.

    An isolated node has ``L = 1``. ``C`` and its symmetric root are polynomials of the sparse
    ``A``, exact to rounding, so that no dense matrix is made at any size.

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

    def _variance(self, x: Array) -> Array:
        return np.asarray(np.exp(-self.a * x) + self.b)

    @cached_property
    def _root(self) -> Array:
        if self.b == 0:
            return self.expansion(lambda x: np.exp(-self.a / 2 * x))
        return super()._root

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
        return {"kind": "Diffusion", "a": self.a, "b": self.b}, self._links()

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        return cls(linked(arrays), settings["a"], settings["b"])

    def _settings(self) -> str:
        return f"a={self.a:g}, b={self.b:g}"


class Listeners(NewNodes):
    """New nodes that listen to known ones, who do not listen back.

    With ``K`` the links of the new nodes, the directed normalised adjacency of all nodes is
    ``[[N, 0], [K, 0]]``. The heat ``exp(-a/2 L)`` of independent noise then gives a new node
    ``K f(L)`` of the known nodes' noise and ``exp(-a/2)`` of its own, where
    ``f(x) = (exp(-a x / 2) - exp(-a / 2)) / (1 - x)``. Among them the covariance is
    ``K f(L)^2 K' + (exp(-a) + b) I``.
    """

    def __init__(self, known: Diffusion, links: Any) -> None:
        self._diffusion, self._links = known, normalised(links, known.graph.degree)
        self.size, self.known = links.shape[0], known.size
        self._alone = float(np.exp(-known.a)) + known.b

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

    def _loadings(self, start: int, stop: int) -> Array:
        """Return the columns of ``f(L) K'`` for some new nodes."""
        links = self._links[start:stop].T
        return self._diffusion.graph.polynomial(self._heard, links.toarray())

    def apply(self, X: Array) -> Array:
        """Multiply ``K f(L) exp(-a L / 2) @ X``."""
        X = columns(X, self.known)
        return np.asarray(self._links @ self._diffusion.graph.polynomial(self._listened, X))
