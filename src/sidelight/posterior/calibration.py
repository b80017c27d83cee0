"""A model's conformal intervals: its groups of rows with the scores of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.posterior.conformal import Conformal, RowGroups

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Groups of rows, and the residuals of the calibration entries in each."""

    groups: RowGroups
    conformal: Conformal

    @classmethod
    def of(
        cls,
        residuals: Floats,
        rows: Ints,
        fitted: Ints,
        labels: Iterable[Hashable] | None,
        count: int,
    ) -> Calibration:
        """Group the rows, by their number of fitted entries or by labels, and keep the residuals.

        Parameters
        ----------
        residuals
            What the model missed of each calibration entry.
        rows
            The row of each calibration entry.
        fitted
            The number of fitted entries of each known row.
        labels
            The group of each known row; None groups them by ``fitted``.
        count
            The number of groups by ``fitted``, at most.
        """
        if labels is None:
            groups = RowGroups.by_activity(fitted, rows, count)
        else:
            groups = RowGroups.given(labels)
        return cls(groups, Conformal.calibrate(np.abs(residuals), groups.of(rows), groups.count))

    def interval(
        self, mean: Floats, rows: Ints, level: float, new: Iterable[Hashable] | None = None
    ) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of entries in some rows; ``new`` labels new rows."""
        return self.conformal.interval(mean, self.groups.of(rows, new), level)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learnt, for the file."""
        groups = {f"groups.{name}": array for name, array in self.groups.arrays().items()}
        return groups | self.conformal.arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Calibration | None:
        """Take back what ``arrays`` gave; None if there is nothing."""
        if not arrays:
            return None
        groups = {
            name.removeprefix("groups."): array
            for name, array in arrays.items()
            if name.startswith("groups.")
        }
        return cls(RowGroups.from_arrays(groups), Conformal.from_arrays(arrays))
