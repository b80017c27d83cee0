"""A random walk with restarts over a graph."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Operator
from sidelight.covariance.functions import LaplacianFunction, NewNodes, linked, normalised
from sidelight.covariance.graph import Graph
from sidelight.covariance.inputs import amount, matrix, nonnegative
from sidelight.errors import InputError


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

    def _passed(self, x: Array) -> Array:
        return self.alpha * self._variance(x)

    def parameters(self) -> dict[str, float]:
        """Return ``alpha``."""
        return {"alpha": self.alpha}

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Keep ``alpha`` off both ends: nodes on their own, and walks that never end."""
        return {"alpha": (1e-3, 0.999)}

    def _changed(self, values: dict[str, float]) -> Self:
        return type(self)(self.graph, **values)

    def _slope(self, name: str) -> Operator:
        return self.polynomial(lambda x: -x / (1 - self.alpha + self.alpha * x) ** 2)

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


class Followers(NewNodes):
    """New nodes whose walks step to known ones, which never step back.

    With ``K`` the normalised links, a new node is ``alpha K`` of the known nodes plus noise of
    variance ``1 - alpha`` of its own: ``alpha^2 K C K' + (1 - alpha) I`` among them.
    """

    def __init__(self, known: RandomWalk, links: Any) -> None:
        self._walk, self._links = known, normalised(links, known.graph.degree)
        self.size, self.known = links.shape[0], known.size
        self._alone = 1 - known.alpha

    def _gathered(self, X: Array) -> Array:
        """Multiply ``alpha C @ X``."""
        return self._walk.alpha * self._walk.apply(X)

    def _noise(self, start: int, stop: int) -> Array:
        """Return the columns of ``alpha G K'`` for some new nodes."""
        return self._walk.alpha * self._walk.root(self._links[start:stop].T.toarray())
