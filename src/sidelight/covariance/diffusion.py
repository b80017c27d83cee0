"""Diffusion of heat over a graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Operator
from sidelight.covariance.functions import (
    LaplacianFunction,
    NewNodes,
    Polynomial,
    linked,
    normalised,
)
from sidelight.covariance.graph import Graph
from sidelight.covariance.identity import Identity
from sidelight.covariance.inputs import amount, matrix, nonnegative


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

    def _passed(self, x: Array) -> Array:
        return _rise(self.a, x)

    @cached_property
    def _root(self) -> Polynomial:
        if self.b == 0:
            return self.polynomial(lambda x: np.exp(-self.a / 2 * x))
        return super()._root

    def parameters(self) -> dict[str, float]:
        """Return ``a`` and ``b``."""
        return {"a": self.a, "b": self.b}

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Keep ``a`` where heat moves at all, and the polynomials stay short."""
        return super().ranges() | {"a": (1e-4, 50.0)}

    def _changed(self, values: dict[str, float]) -> Self:
        return type(self)(self.graph, **(self.parameters() | values))

    def _slope(self, name: str) -> Operator:
        if name == "b":
            return Identity(self.size)
        return self.polynomial(lambda x: -x * np.exp(-self.a * x))

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

    def _heat(self, x: Array) -> Array:
        """Return ``f(x)``."""
        return _rise(self._diffusion.a / 2, x)

    @cached_property
    def _listened(self) -> Polynomial:
        half = self._diffusion.a / 2
        return self._diffusion.polynomial(lambda x: self._heat(x) * np.exp(-half * x))

    @cached_property
    def _heard(self) -> Polynomial:
        return self._diffusion.polynomial(self._heat)

    def _noise(self, start: int, stop: int) -> Array:
        """Return the columns of ``f(L) K'`` for some new nodes."""
        return self._heard.apply(self._links[start:stop].T.toarray())

    def _gathered(self, X: Array) -> Array:
        """Multiply ``f(L) exp(-a L / 2) @ X``."""
        return self._listened.apply(X)

    def loadings(self) -> tuple[Array, Array]:
        """Return the loadings on what the known nodes vary by, and what is left.

        The known nodes' root mixes the noise that spread with that of the nugget ``b``. With
        ``v(x) = exp(-a x) + b``, ``T = K f(L) exp(-a L / 2) v(L)^(-1/2)`` is what it tells of a new
        node; ``b K f(L)^2 v(L)^(-1) K'`` and the new nodes' own noise are left.
        """
        b, v = self._diffusion.b, self._diffusion._variance
        if b == 0:
            return super().loadings()
        half, links = self._diffusion.a / 2, self._links.T.toarray()
        told = self._diffusion.polynomial(
            lambda x: self._heat(x) * np.exp(-half * x) / np.sqrt(v(x))
        )
        kept = self._diffusion.polynomial(lambda x: self._heat(x) * np.sqrt(b / v(x))).apply(links)
        rest = kept.T @ kept + self._alone * np.eye(self.size)
        return np.ascontiguousarray(told.apply(links).T), rest


def _rise(rate: float, x: Array) -> Array:
    """Return ``(exp(-rate x) - exp(-rate)) / (1 - x)``, stably beside its removable pole."""
    t = 1.0 - x
    safe = np.where(t == 0, 1.0, t)
    slope = np.where(t == 0, rate, -np.sign(t) * np.expm1(-rate * np.abs(t)) / safe)
    return np.asarray(np.exp(-rate * np.minimum(x, 1.0)) * slope)
