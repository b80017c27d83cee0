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

    ``bounds`` says how far each score can be from that of the exact optimum; None where the model
    has no such bound.
    """

    row_id: str
    cols: NDArray[np.int64]
    ids: tuple[str, ...]
    names: tuple[str, ...] | None
    scores: Floats
    observed: NDArray[np.bool_]
    bounds: Floats | None

    def __len__(self) -> int:
        return len(self.cols)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each column: rank, id, name, score, observed, bound."""
        return [
            {
                "rank": i + 1,
                "id": self.ids[i],
                "name": None if self.names is None else self.names[i],
                "score": float(self.scores[i]),
                "observed": bool(self.observed[i]),
                "bound": None if self.bounds is None else float(self.bounds[i]),
            }
            for i in range(len(self))
        ]
