"""How well a ranking of each row's columns finds the entries that were held out.

A metric returns one number for each row and each ``k``; the mean is the caller's. Columns of
equal score count as ordered at random and the metric is its expected value, exactly: a constant
score gets what a random ranking gets, whatever a sort would have done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from sidelight.errors import InputError

Array = NDArray[np.float64]
Index = NDArray[np.integer[Any]]
ScoreRows = Callable[[Index], Array]
"""Scores a block of rows: row numbers in, a (rows x columns) array out."""

KS = tuple(range(1, 21))
_BLOCK = 512  # rows whose scores are held at a time


@dataclass(frozen=True, eq=False)
class RowMetrics:
    """Precision and recall of the rows that have an entry to find.

    Parameters
    ----------
    ks
        The lengths of the lists.
    rows
        The rows measured, ascending.
    precision, recall
        One row for each of ``rows``, one column for each of ``ks``.
    """

    ks: NDArray[np.int64]
    rows: Index
    precision: Array
    recall: Array


def indicator(pairs: Index, shape: tuple[int, int]) -> csr_array:
    """Build the 0/1 matrix of some pairs, which may repeat."""
    cells = np.unique(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=0)
    return csr_array((np.ones(len(cells)), (cells[:, 0], cells[:, 1])), shape=shape)


def hits_at(ks: Iterable[int], scores: Array, relevant: csr_array, known: csr_array) -> Array:
    """Count each row's relevant columns among its ``k`` best, in expectation over ties.

    Parameters
    ----------
    ks
        The lengths of the lists, positive.
    scores
        A (rows x columns) array.
    relevant, known
        0/1 matrices of the same shape: the columns to find, and those to leave out of the list.

    Returns
    -------
    Array
        (rows x ks).
    """
    lengths = _lengths(ks)
    candidates = _without(scores, relevant, known)
    sizes = scores.shape[1] - np.diff(known.indptr)
    ordered = np.sort(candidates, axis=1)  # left-out columns are nan and come last
    return np.array(
        [
            _row_hits(lengths, row[:size], row_scores[_columns(relevant, i)])
            for i, (row, size, row_scores) in enumerate(zip(ordered, sizes, scores, strict=True))
        ]
    ).reshape(len(scores), len(lengths))


def precision_at(ks: Iterable[int], scores: Array, relevant: csr_array, known: csr_array) -> Array:
    """Divide the hits by the length of the list; see ``hits_at``."""
    lengths = _lengths(ks)
    return np.asarray(hits_at(lengths, scores, relevant, known) / lengths)


def recall_at(ks: Iterable[int], scores: Array, relevant: csr_array, known: csr_array) -> Array:
    """Divide the hits by the row's relevant columns; nan for a row without any; see ``hits_at``."""
    counts = np.diff(relevant.indptr).astype(float)
    counts[counts == 0] = np.nan
    return np.asarray(hits_at(ks, scores, relevant, known) / counts[:, None])


def measure_rows(
    score_rows: ScoreRows,
    test: Index,
    train: Index,
    shape: tuple[int, int],
    ks: Iterable[int] = KS,
) -> RowMetrics:
    """Measure every row that has a test pair, block by block.

    A row's list runs over all columns except those it had in training.

    Parameters
    ----------
    score_rows
        Called with a block of row numbers.
    test, train
        (L, 2) arrays of the (row, column) to find and of those already known.
    shape
        Of the whole table.
    ks
        The lengths of the lists.
    """
    lengths = _lengths(ks)
    relevant, known = indicator(test, shape), indicator(train, shape)
    rows = np.flatnonzero(np.diff(relevant.indptr))
    if len(rows) == 0:
        raise InputError("there is no test pair to find", remedy="pass at least one")
    hits = np.vstack(
        [
            hits_at(lengths, score_rows(block), relevant[block], known[block])
            for block in np.split(rows, range(_BLOCK, len(rows), _BLOCK))
        ]
    )
    counts = np.diff(relevant.indptr)[rows]
    return RowMetrics(lengths, rows, hits / lengths, hits / counts[:, None])


def rmse(values: ArrayLike, predictions: ArrayLike) -> float:
    """Return the root of the mean squared error over entries."""
    errors = np.asarray(values, dtype=float) - np.asarray(predictions, dtype=float)
    return float(np.sqrt(np.mean(errors**2)))


def _lengths(ks: Iterable[int]) -> NDArray[np.int64]:
    lengths = np.array(list(ks), dtype=np.int64)
    if len(lengths) == 0 or lengths.min() < 1:
        raise InputError(
            f"the list lengths {lengths.tolist()} are not usable", remedy="use 1 or more"
        )
    return lengths


def _columns(matrix: csr_array, row: int) -> Index:
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]


def _without(scores: Array, relevant: csr_array, known: csr_array) -> Array:
    """Return the scores with nan at the known columns, after checking them."""
    if not scores.shape == relevant.shape == known.shape:
        raise InputError(
            f"scores {scores.shape}, relevant {relevant.shape}, known {known.shape}: shapes differ",
            remedy="score every column of every row asked",
        )
    _refuse_nan(scores)
    _refuse_overlap(relevant, known)
    candidates = np.array(scores, dtype=float)
    candidates[known.nonzero()] = np.nan
    return candidates


def _refuse_nan(scores: Array) -> None:
    bad = np.argwhere(np.isnan(scores))
    if len(bad):
        raise InputError(
            f"the score at (row, column) {tuple(bad[0].tolist())} of the block is not a number",
            remedy="return a finite or infinite score for every column",
        )


def _refuse_overlap(relevant: csr_array, known: csr_array) -> None:
    both = np.column_stack(csr_array(relevant.multiply(known)).nonzero())
    if len(both):
        raise InputError(
            f"(row, column) {tuple(both[0].tolist())} of the block is both to find and known",
            remedy="take the training pairs out of the test pairs",
        )


def _row_hits(lengths: NDArray[np.int64], ordered: Array, wanted: Array) -> Array:
    """Sum over wanted columns the chance that each is among the first ``k``.

    A column tied with ``ties`` columns (itself included) below ``better`` ones is equally likely
    at each of the places ``better + 1 .. better + ties``.
    """
    above = np.searchsorted(ordered, wanted, side="right")
    ties = above - np.searchsorted(ordered, wanted, side="left")
    better = len(ordered) - above
    chances = np.clip(lengths[:, None] - better, 0, ties) / ties
    return np.asarray(chances.sum(axis=1))
