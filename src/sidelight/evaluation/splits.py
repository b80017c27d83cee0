"""Which pairs train and which test, and which unknown pairs stand in for negatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.errors import InputError

Index = NDArray[np.integer[Any]]
Split = tuple[Index, Index]


def known_entries(pairs: Index, folds: int, seed: int) -> Iterator[Split]:
    """Split the pairs at random: a test pair's row and column may both occur in training.

    Yields
    ------
    Split
        Positions in ``pairs`` of the training and of the test pairs, ascending. Every pair is
        tested once.
    """
    yield from _folds(np.arange(len(pairs)), folds, seed, "pairs")


def new_rows(pairs: Index, folds: int, seed: int) -> Iterator[Split]:
    """Split the rows at random: no row of a test pair occurs in training.

    Yields
    ------
    Split
        Positions in ``pairs`` of the training and of the test pairs, ascending. Every pair is
        tested once.
    """
    yield from _folds(
        np.unique(pairs[:, 0], return_inverse=True)[1], folds, seed, "rows with pairs"
    )


def _folds(groups: Index, folds: int, seed: int, what: str) -> Iterator[Split]:
    """Deal the groups (numbered from 0) into folds that differ by at most one in size."""
    count = int(groups.max(initial=-1)) + 1
    if not 2 <= folds <= count:
        raise InputError(
            f"{count} {what} cannot make {folds} folds",
            remedy=f"ask for 2 to {count} folds" if count > 1 else f"give two or more {what}",
        )
    fold_of_group = np.random.default_rng(seed).permutation(np.arange(count) % folds)
    fold = fold_of_group[groups]
    for test in range(folds):
        yield np.flatnonzero(fold != test), np.flatnonzero(fold == test)


def sample_unknown(pairs: Index, shape: tuple[int, int], count: int, seed: int) -> Index:
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
    taken = np.unique(np.asarray(pairs[:, 0], dtype=np.int64) * columns + pairs[:, 1])
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
