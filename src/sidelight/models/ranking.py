"""A ranked list of columns for one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best columns of a row, best first.

    ``stds`` are of the latent values; ``low`` and ``high`` end an interval for an observation.
    ``ties`` counts the other columns with the same mean. ``bounds`` says how far each mean can be
    from that of the exact optimum. None stands for what the model does not have.
    """

    row_id: str
    cols: NDArray[np.int64]
    ids: tuple[str, ...]
    names: tuple[str, ...] | None
    means: Floats
    stds: Floats | None
    low: Floats | None
    high: Floats | None
    observed: NDArray[np.bool_]
    ties: NDArray[np.int64]
    bounds: Floats | None

    def __len__(self) -> int:
        return len(self.cols)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each column.

        Its keys: rank, id, name, mean, std, low, high, observed, ties, bound.
        """
        return [
            {
                "rank": i + 1,
                "id": self.ids[i],
                "name": None if self.names is None else self.names[i],
                "mean": float(self.means[i]),
                "std": _number(self.stds, i),
                "low": _number(self.low, i),
                "high": _number(self.high, i),
                "observed": bool(self.observed[i]),
                "ties": int(self.ties[i]),
                "bound": _number(self.bounds, i),
            }
            for i in range(len(self))
        ]


def _number(values: Floats | None, i: int) -> float | None:
    return None if values is None else float(values[i])
