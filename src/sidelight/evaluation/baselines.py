"""Rankings that any model has to beat."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from sidelight.errors import InputError
from sidelight.evaluation.metrics import Array, Index, ScoreRows, indicator


def popularity(train: Index, shape: tuple[int, int]) -> ScoreRows:
    """Score each column by how many training pairs it has, the same for every row."""
    counts = np.bincount(train[:, 1], minlength=shape[1]).astype(float)

    def score_rows(rows: Index) -> Array:
        return np.tile(counts, (len(rows), 1))

    return score_rows


def neighbour_voting(adjacency: csr_array, train: Index, shape: tuple[int, int]) -> ScoreRows:
    """Score each column by the weights of the row's neighbours that have it in training."""
    if adjacency.shape != (shape[0], shape[0]):
        raise InputError(
            f"the adjacency is {adjacency.shape} and the table has {shape[0]} rows",
            remedy="give a square adjacency over the rows",
        )
    votes = indicator(train, shape)

    def score_rows(rows: Index) -> Array:
        return np.asarray((adjacency[rows] @ votes).toarray())

    return score_rows
