"""Mean functions: what a model takes from the values before it explains the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Axis, Identity
from sidelight.errors import InputError
from sidelight.solvers import Side, fit_biases

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

MEANS = ("zero", "global", "biases", "graph-biases")
_SEED = 0  # of the random signs that estimate degrees of freedom


@dataclass(frozen=True, eq=False)
class MeanFunction:
    """``Phi``: a constant, and perhaps a bias for each row and each column.

    A new item has the bias that its covariance with the known ones gives it when the biases are
    ``smooth``, and none otherwise.
    """

    constant: float = 0.0
    rows: Side | None = None
    cols: Side | None = None
    smooth: bool = False

    def at(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        """Return it for pairs, whose items may be new."""
        out = np.full(len(pairs), self.constant)
        for k, (side, axis) in enumerate(((self.rows, rows), (self.cols, cols))):
            if side is not None:
                items, place = np.unique(pairs[:, k], return_inverse=True)
                out += self._of(side, axis, items)[place]
        return out

    def parts(self, row: int, col: int, rows: Axis, cols: Axis) -> dict[str, float]:
        """Return what it is made of at one cell, by name."""
        found = {"constant": self.constant} if self.constant else {}
        for name, side, axis, item in (
            ("row bias", self.rows, rows, row),
            ("column bias", self.cols, cols, col),
        ):
            if side is not None:
                found[name] = float(self._of(side, axis, np.array([item]))[0])
        return found

    def table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        """Return it for whole rows."""
        out = np.full((len(index), cols.size), self.constant)
        if self.rows is not None:
            out += self._of(self.rows, rows, index)[:, None]
        if self.cols is not None:
            out += self._of(self.cols, cols, np.arange(cols.size))
        return out

    def _of(self, side: Side, axis: Axis, items: NDArray[np.int64]) -> Floats:
        """Return the biases of some items."""
        if self.smooth:
            return axis.spread(side.weights[:, None], side.images[:, None], items)[:, 0]
        new, _ = axis.split(items)
        out = np.zeros(len(items))
        out[~new] = side.images[items[~new]]
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learnt, for the file."""
        found = {"constant": np.array([self.constant]), "smooth": np.array([self.smooth])}
        for name, side in (("rows", self.rows), ("cols", self.cols)):
            if side is not None:
                found |= {
                    f"{name}.weights": side.weights,
                    f"{name}.images": side.images,
                    f"{name}.variance": np.array([side.variance]),
                }
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> MeanFunction:
        """Take back what ``arrays`` gave."""
        sides = (
            Side(
                arrays[f"{name}.weights"],
                arrays[f"{name}.images"],
                float(arrays[f"{name}.variance"][0]),
            )
            if f"{name}.weights" in arrays
            else None
            for name in ("rows", "cols")
        )
        rows, cols = sides
        return cls(float(arrays["constant"][0]), rows, cols, bool(arrays["smooth"][0]))


def check_mean(kind: str) -> None:
    """Refuse a mean function that there is not."""
    if kind not in MEANS:
        raise InputError(f"mean is {kind!r}", remedy=f"choose one of {', '.join(map(repr, MEANS))}")


def fit_mean(
    kind: str, pairs: Pairs, values: Floats, weights: Floats, rows: Axis, cols: Axis
) -> MeanFunction:
    """Fit the mean function to the entries."""
    if kind == "zero":
        return MeanFunction()
    if kind == "global":
        return MeanFunction(float(np.average(values, weights=weights)))
    smooth = kind == "graph-biases"
    row_cov, col_cov = (a.cov if smooth else Identity(a.cov.size) for a in (rows, cols))
    rng = np.random.default_rng(_SEED)
    found = fit_biases(pairs, values, weights, row_cov, col_cov, rng)
    return MeanFunction(found.constant, found.rows, found.cols, smooth)
