"""Which pairs train and which test."""

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
