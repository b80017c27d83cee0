"""Weighted sums of covariances, and covariances made from what was saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Covariance, Cross, Index
from sidelight.covariance.dense import Dense
from sidelight.covariance.diffusion import Diffusion
from sidelight.covariance.features import Features
from sidelight.covariance.identity import Identity
from sidelight.covariance.inputs import amount, columns, picked
from sidelight.covariance.shared import SharedEntries
from sidelight.covariance.walk import RandomWalk
from sidelight.errors import InputError


class Sum(Covariance):
    """A weighted sum of covariances of the same items.

    The root is the parts' roots side by side. A sum inside a sum is opened: its parts become
    parts of this one.

    Parameters
    ----------
    parts
        The covariances.
    weights
        One for each part, nonnegative; ones when not given.
    """

    def __init__(self, parts: Sequence[Covariance], weights: Sequence[float] | None = None) -> None:
        parts = tuple(parts)
        weights = [1.0] * len(parts) if weights is None else [amount(w, "weight") for w in weights]
        _same_sizes(parts, weights)
        opened = [pair for part, w in zip(parts, weights, strict=True) for pair in _open(part, w)]
        self.parts = tuple(part for part, _ in opened)
        self.weights = tuple(weight for _, weight in opened)
        self.size = parts[0].size

    @property
    def root_size(self) -> int:  # type: ignore[override]
        """Columns of all roots together."""
        return sum(part.root_size for part in self.parts)

    def _total(self, each: Callable[[Covariance], Array]) -> Array:
        return _weighted(self.weights, [each(part) for part in self.parts])

    def apply(self, X: Array) -> Array:
        """Multiply ``C @ X``."""
        return self._total(lambda part: part.apply(X))

    def root(self, X: Array) -> Array:
        """Multiply ``[sqrt(w_1) G_1, sqrt(w_2) G_2, ...] @ X``."""
        X = columns(X, self.root_size)
        starts = np.cumsum([part.root_size for part in self.parts])[:-1]
        pieces = np.split(X, starts)
        rooted = [part.root(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return _weighted(np.sqrt(self.weights), rooted)

    def root_t(self, X: Array) -> Array:
        """Multiply by the parts' transposed roots, one under the other."""
        pairs = zip(np.sqrt(self.weights), self.parts, strict=True)
        return np.concatenate([weight * part.root_t(X) for weight, part in pairs])

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent draws of ``N(0, C)``, one in each column."""
        return _weighted(np.sqrt(self.weights), [part.draw(count, rng) for part in self.parts])

    def diagonal(self, index: Index | None = None) -> Array:
        """Return the prior variances."""
        return self._total(lambda part: part.diagonal(index))

    def rows(self, index: Index) -> Array:
        """Return ``C[index]``."""
        index = picked(index, self.size)
        return self._total(lambda part: part.rows(index))

    def cross(self, new: Sequence[Any]) -> SumCross:
        """Place new items.

        Parameters
        ----------
        new
            What describes the new items, one for each part, in the order of ``parts``.
        """
        if not isinstance(new, list | tuple) or len(new) != len(self.parts):
            found = f"{len(new)}" if isinstance(new, list | tuple) else type(new).__name__
            raise InputError(
                f"expected a list of {len(self.parts)} descriptions, found {found}",
                remedy="describe the new items once for each part of the sum",
            )
        described = zip(self.parts, new, strict=True)
        return SumCross([part.cross(each) for part, each in described], self.weights)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the parts' states, arrays under ``"0."``, ``"1."``, and so on."""
        states = [part.state() for part in self.parts]
        settings = {
            "kind": "Sum",
            "weights": list(self.weights),
            "parts": [settings for settings, _ in states],
        }
        named = [(f"{i}.{k}", v) for i, (_, arrays) in enumerate(states) for k, v in arrays.items()]
        return settings, dict(named)

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the operator that ``state`` described."""
        parts = [
            covariance_from_state(part, _under(f"{i}.", arrays))
            for i, part in enumerate(settings["parts"])
        ]
        return cls(parts, settings["weights"])

    def __repr__(self) -> str:
        pairs = zip(self.weights, self.parts, strict=True)
        return " + ".join(f"{weight:g} * {part!r}" for weight, part in pairs)


class SumCross(Cross):
    """New items, described once for each part of a sum."""

    def __init__(self, parts: Sequence[Cross], weights: Sequence[float]) -> None:
        self._parts, self._weights = parts, weights
        self.size, self.known = parts[0].size, parts[0].known
        for i, part in enumerate(parts):
            if part.size != self.size:
                raise InputError(
                    f"part {i} describes {part.size} new items, part 0 describes {self.size}",
                    remedy="describe the same new items for each part of the sum",
                )

    def _total(self, each: Callable[[Cross], Array]) -> Array:
        return _weighted(self._weights, [each(part) for part in self._parts])

    def apply(self, X: Array) -> Array:
        """Multiply ``C(new, known) @ X``."""
        return self._total(lambda part: part.apply(X))

    def block(self) -> Array:
        """Return ``C(new, new)``."""
        return self._total(lambda part: part.block())

    def diagonal(self) -> Array:
        """Return the prior variances of the new items."""
        return self._total(lambda part: part.diagonal())


_KINDS: dict[str, type[Covariance]] = {
    "Identity": Identity,
    "Diffusion": Diffusion,
    "RandomWalk": RandomWalk,
    "Dense": Dense,
    "Features": Features,
    "SharedEntries": SharedEntries,
    "Sum": Sum,
}


def covariance_from_state(settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Covariance:
    """Make the covariance whose ``state`` this is."""
    kind = settings.get("kind")
    if kind not in _KINDS:
        raise InputError(
            f"covariance kind {kind!r} is unknown", remedy=f"use one of {', '.join(_KINDS)}"
        )
    return _KINDS[kind].from_state(settings, arrays)


def _weighted(weights: Any, pieces: list[Array]) -> Array:
    total = np.asarray(weights[0] * pieces[0])
    for weight, piece in zip(weights[1:], pieces[1:], strict=True):
        total += weight * piece
    return total


def _open(part: Covariance, weight: float) -> list[tuple[Covariance, float]]:
    if not isinstance(part, Sum):
        return [(part, weight)]
    return [(inner, weight * own) for inner, own in zip(part.parts, part.weights, strict=True)]


def _same_sizes(parts: Sequence[Covariance], weights: Sequence[float]) -> None:
    if not parts or len(parts) != len(weights):
        raise InputError(
            f"{len(parts)} parts with {len(weights)} weights",
            remedy="give at least one part, and one weight for each",
        )
    for i, part in enumerate(parts):
        if part.size != parts[0].size:
            raise InputError(
                f"part {i} has {part.size} items, part 0 has {parts[0].size}",
                remedy="sum covariances of the same items",
            )


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
