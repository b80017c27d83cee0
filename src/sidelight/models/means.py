"""Mean functions: what a model takes from the values before it explains the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import InputError
from sidelight.models.axes import Axis

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

MEANS = ("zero", "global")


@dataclass(frozen=True, eq=False)
class MeanFunction:
    """``Phi``: a constant."""

    constant: float = 0.0

    def at(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        """Return it for pairs, whose items may be new."""
        return np.full(len(pairs), self.constant)

    def table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        """Return it for whole rows."""
        return np.full((len(index), cols.size), self.constant)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learnt, for the file."""
        return {"constant": np.array([self.constant])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> MeanFunction:
        """Take back what ``arrays`` gave."""
        return cls(float(arrays["constant"][0]))


def check_mean(kind: str) -> None:
    """Refuse a mean function that there is not."""
    if kind not in MEANS:
        raise InputError(f"mean is {kind!r}", remedy=f"choose one of {', '.join(map(repr, MEANS))}")


def fit_mean(
    kind: str, pairs: Pairs, values: Floats, weights: Floats, rows: Axis, cols: Axis
) -> MeanFunction:
    """Fit the mean function to the entries."""
    return MeanFunction(float(np.average(values, weights=weights)) if kind == "global" else 0.0)
