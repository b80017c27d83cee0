"""Weighted sums of covariances, and covariances made from what was saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance.base import Array, Carried, Covariance, Cross, Index, Operator
from sidelight.covariance.dense import Dense
from sidelight.covariance.diffusion import Diffusion
from sidelight.covariance.features import Features
from sidelight.covariance.identity import Identity
from sidelight.covariance.inputs import amount, columns, picked
from sidelight.covariance.shared import SharedEntries
from sidelight.covariance.slopes import Scaled
from sidelight.covariance.walk import RandomWalk
from sidelight.errors import InputError

_Value = TypeVar("_Value")


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

    def _total(self, each: Callable[[Covariance], NDArray[Any]]) -> Array:
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

    def parameters(self) -> dict[str, float]:
        """Return the parts' parameters and weights, under ``"0."``, ``"1."``, and so on."""
        own = [{**part.parameters(), "weight": weight} for part, weight in self._pairs()]
        return _numbered(own)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the parts' own, and the default for the weights."""
        return super().ranges() | _numbered([part.ranges() for part in self.parts])

    def _changed(self, values: dict[str, float]) -> Self:
        own = [_under(f"{i}.", values) for i in range(len(self.parts))]
        pairs = zip(own, self._pairs(), strict=True)
        weights = [each.pop("weight", weight) for each, (_, weight) in pairs]
        parts = zip(self.parts, own, strict=True)
        return type(self)([part.with_parameters(each) for part, each in parts], weights)

    def _slope(self, name: str) -> Operator:
        number, inner = name.split(".", 1)
        part, weight = self._pairs()[int(number)]
        return part if inner == "weight" else Scaled(weight, part.slope(inner))

    def _pairs(self) -> list[tuple[Covariance, float]]:
        return list(zip(self.parts, self.weights, strict=True))

    def carriers(self, item: int, weights: Array) -> Carried:
        """Say who carries ``(C @ weights)[item]``, by whatever part."""
        return _merged(self.weights, [part.carriers(item, weights) for part in self.parts])

    def between(self, left: Index, right: Index) -> Array:
        """Return the covariances between some items and others."""
        return self._total(lambda part: part.between(left, right))

    def rough_rows(self, index: Index) -> NDArray[np.float32]:
        """Return ``C[index]`` in single precision."""
        index = picked(index, self.size)
        return np.asarray(self._total(lambda part: part.rough_rows(index)), dtype=np.float32)

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
        return settings, _numbered([arrays for _, arrays in states])

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

    def rows(self, index: Index) -> Array:
        """Return ``C(new, known)[index]``."""
        return self._total(lambda part: part.rows(index))

    def block(self) -> Array:
        """Return ``C(new, new)``."""
        return self._total(lambda part: part.block())

    def loadings(self) -> tuple[Array, Array]:
        """Return the parts' loadings side by side, as their roots are, and the rests' sum."""
        found = [part.loadings() for part in self._parts]
        scaled = [w * T for w, (T, _) in zip(np.sqrt(self._weights), found, strict=True)]
        return np.hstack(scaled), _weighted(self._weights, [rest for _, rest in found])

    def carriers(self, item: int, weights: Array) -> Carried:
        """Say who carries ``(C(new, known) @ weights)[item]``, by whatever part."""
        return _merged(self._weights, [part.carriers(item, weights) for part in self._parts])

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


def _weighted(weights: Any, pieces: list[NDArray[Any]]) -> Array:
    total = np.asarray(weights[0] * pieces[0])
    for weight, piece in zip(weights[1:], pieces[1:], strict=True):
        total += weight * piece
    return total


def _merged(weights: Sequence[float], found: list[Carried]) -> Carried:
    """Add up what each item carries in all parts."""
    pairs = list(zip(weights, found, strict=True))
    items, place = np.unique(np.concatenate([each.items for each in found]), return_inverse=True)
    scaled = np.concatenate([weight * each.amounts for weight, each in pairs])
    amounts = np.bincount(place, scaled, len(items)).astype(np.float64)
    return Carried.by(sum(weight * each.own for weight, each in pairs), items, amounts)


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


def _numbered(own: Sequence[Mapping[str, _Value]]) -> dict[str, _Value]:
    return {f"{i}.{name}": value for i, each in enumerate(own) for name, value in each.items()}


def _under(prefix: str, named: Mapping[str, _Value]) -> dict[str, _Value]:
    return {k.removeprefix(prefix): v for k, v in named.items() if k.startswith(prefix)}
