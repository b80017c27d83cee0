"""Unknown cells that stand in for negatives where only positives are known."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import InputError

Index = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Negatives:
    """Which unknown cells count as negatives: how many, with what value, and drawn by what seed.

    The same seed and number draw the same cells for the same positives, whatever model they are
    for.

    Parameters
    ----------
    ratio
        Cells to draw for each known positive.
    value
        Their value.
    seed
        Decides which cells.
    """

    ratio: float = 1.0
    value: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.ratio, Real) and 0 <= self.ratio < np.inf):
            raise InputError(f"ratio is {self.ratio!r}", remedy="use a number >= 0 for ratio")
        if not (isinstance(self.value, Real) and np.isfinite(self.value)):
            raise InputError(f"value is {self.value!r}", remedy="use a finite number for value")
        if not (isinstance(self.seed, (int, np.integer)) and self.seed >= 0):
            raise InputError(f"seed is {self.seed!r}", remedy="use a whole number >= 0 for seed")

    def draw(self, pairs: Index, shape: tuple[int, int], number: int = 0) -> Index:
        """Draw sample ``number``: distinct cells of a table that are not among ``pairs``."""
        count = round(self.ratio * len(pairs))
        unknown = shape[0] * shape[1] - len(_cells(pairs, shape[1]))
        if count > unknown:
            most = np.floor(1000 * unknown / len(pairs)) / 1000
            raise InputError(
                f"{count:,} negatives cannot be drawn from {unknown:,} unknown cells",
                remedy=f"draw {most:g} or less for each positive",
            )
        seed = self.seed if number == 0 else (self.seed, number)
        return sample_unknown(pairs, shape, count, seed)


def sample_unknown(
    pairs: Index, shape: tuple[int, int], count: int, seed: int | tuple[int, int]
) -> Index:
    """Draw distinct cells that are not among ``pairs``, each set of them equally likely.

    Cells are numbered along the rows and the draw is of positions among the unknown ones, so it is
    exact and as fast when the table is nearly full.

    Parameters
    ----------
    pairs
        (L, 2) array of the (row, column) to stay clear of.
    shape
        Of the whole table.
    count
        How many cells to draw.
    seed
        The same seed draws the same cells.

    Returns
    -------
    Index
        A (count, 2) array, sorted.
    """
    rows, columns = shape
    taken = _cells(pairs, columns)
    unknown = rows * columns - len(taken)
    if not 0 <= count <= unknown:
        raise InputError(
            f"{count} cells cannot be drawn from {unknown} unknown ones",
            remedy=f"ask for 0 to {unknown}",
        )
    draws = np.random.default_rng(seed).choice(unknown, count, replace=False, shuffle=False)
    unknown_before = taken - np.arange(len(taken))
    cells = draws + np.searchsorted(unknown_before, draws, side="right")
    return np.column_stack(np.divmod(np.sort(cells), columns))


def _cells(pairs: Index, columns: int) -> NDArray[np.int64]:
    """Return the numbers of some pairs' cells along the rows: each once, ascending."""
    return np.unique(np.asarray(pairs[:, 0], dtype=np.int64) * columns + pairs[:, 1])
