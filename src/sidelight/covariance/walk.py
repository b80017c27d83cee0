"""A random walk with restarts over a graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Cross
from sidelight.covariance.functions import LaplacianFunction, linked, normalised
from sidelight.covariance.graph import Graph
from sidelight.covariance.inputs import amount, columns, matrix, nonnegative
from sidelight.errors import InputError

_BLOCK = 64  # items whose columns are worked out at a time


class RandomWalk(LaplacianFunction):
    """Where walks with restarts end, ``C = (1 - alpha) (I - alpha D^-1/2 A D^-1/2)^-1``.

    What network propagation spreads labels by; as a covariance it reaches farther than a
    Diffusion.

    Parameters
    ----------
    adjacency
        The graph, as for Diffusion.
    alpha
        How likely each step goes on, from 0 (every node on its own) to 0.999.
    """

    def __init__(self, adjacency: Any, alpha: float = 0.8) -> None:
        if amount(alpha, "alpha") > 0.999:
            raise InputError(f"alpha is {alpha!r}", remedy="choose 0 <= alpha <= 0.999")
        self.alpha: float = float(alpha)
        self.graph = adjacency if isinstance(adjacency, Graph) else Graph(adjacency)
        self.size = self.root_size = self.graph.size

    def _variance(self, x: Array) -> Array:
        return np.asarray((1 - self.alpha) / (1 - self.alpha + self.alpha * x))

    def cross(self, new: Any) -> Followers:
        """Place new nodes by their links to the known ones; see Diffusion.

        Parameters
        ----------
        new
            Weights of the links, new nodes by known nodes, sparse or dense, nonnegative.
        """
        return Followers(self, nonnegative(matrix(new, "links", self.size), "links"))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return ``alpha`` and the links."""
        return {"kind": "RandomWalk", "alpha": self.alpha}, self._links()

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        return cls(linked(arrays), settings["alpha"])

    def _settings(self) -> str:
        return f"alpha={self.alpha:g}"


class Followers(Cross):
    """New nodes whose walks step to known ones, which never step back.

    With ``K`` the normalised links, a new node is ``alpha K`` of the known nodes plus noise of
    variance ``1 - alpha`` of its own.
    """

    def __init__(self, known: RandomWalk, links: Any) -> None:
        self._walk, self._links = known, normalised(links, known.graph.degree)
        self.size, self.known = links.shape[0], known.size

    def apply(self, X: Array) -> Array:
        """Multiply ``alpha K C @ X``."""
        return np.asarray(self._walk.alpha * (self._links @ self._walk.apply(X)))

    def _loadings(self, start: int, stop: int) -> Array:
        """Return the columns of ``alpha G K'`` for some new nodes."""
        links = self._walk.alpha * self._links[start:stop].T
        return self._walk.root(columns(links.toarray(), self.known))

    def block(self) -> Array:
        """Return ``alpha^2 K C K' + (1 - alpha) I``."""
        loadings = self._loadings(0, self.size)
        return np.asarray(loadings.T @ loadings + (1 - self._walk.alpha) * np.eye(self.size))

    def diagonal(self) -> Array:
        """Return the prior variances of the new nodes."""
        blocks = range(0, self.size, _BLOCK)
        found = [(self._loadings(i, i + _BLOCK) ** 2).sum(axis=0) for i in blocks]
        return np.concatenate([np.zeros(0), *found]) + (1 - self._walk.alpha)
