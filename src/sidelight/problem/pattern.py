"""The observed pattern: which cells of the table are known, sorted for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.parallel import share
from sidelight.problem import kernels

Floats = NDArray[np.float64]


class Pattern:
    """The observed pairs of a table, by rows and by columns.

    Values on the pattern ("residual", "weights") are vectors in row order; ``order`` takes the
    caller's order to it. A pair may occur more than once: each is an observation of its own.
    """

    def __init__(self, pairs: NDArray[np.integer[Any]], shape: tuple[int, int]) -> None:
        rows, cols = pairs[:, 0], pairs[:, 1]
        self.shape, self.size = shape, len(pairs)
        self.order = np.lexsort((cols, rows))
        self.rows = rows[self.order].astype(np.int32)
        self.cols = cols[self.order].astype(np.int32)
        self._starts = _starts(rows, shape[0])
        self._identity = np.arange(self.size, dtype=np.int32)
        self._by_column = np.argsort(self.cols, kind="stable").astype(np.int32)
        self._column_rows = self.rows[self._by_column]
        self._column_starts = _starts(cols, shape[1])

    def repeats(self) -> NDArray[np.int64]:
        """Count, for each entry, how often its pair occurs."""
        new = np.r_[True, (np.diff(self.rows) != 0) | (np.diff(self.cols) != 0)][: self.size]
        counts = np.diff(np.r_[np.flatnonzero(new), self.size])
        return np.repeat(counts, counts)

    def product(self, P: Floats, Q: Floats) -> Floats:
        """Return ``P Q'`` at the observed places."""
        out = np.empty(self.size, P.dtype)
        P, Q = np.ascontiguousarray(P), np.ascontiguousarray(Q)

        def piece(start: int, stop: int) -> None:
            kernels.sampled_product(start, stop, self._starts, self.cols, P, Q, out)

        share(piece, self.shape[0], self._work(P))
        return out

    def times(self, values: Floats, Q: Floats) -> Floats:
        """Return ``E Q`` for the sparse matrix E with these values."""
        return self._times(self._starts, self.cols, self._identity, values, Q)

    def times_t(self, values: Floats, P: Floats) -> Floats:
        """Return ``E' P`` for the sparse matrix E with these values."""
        return self._times(self._column_starts, self._column_rows, self._by_column, values, P)

    def _times(self, starts: Any, cols: Any, order: Any, values: Floats, Q: Floats) -> Floats:
        Q = np.ascontiguousarray(Q)
        out = np.empty((len(starts) - 1, Q.shape[1]), Q.dtype)

        def piece(start: int, stop: int) -> None:
            kernels.sparse_product(start, stop, starts, cols, order, values, Q, out)

        share(piece, len(out), self._work(Q))
        return out

    def outer(self, values: NDArray[Any], C: NDArray[Any]) -> NDArray[Any]:
        """Return ``sum_l C[m_l, c] values[l, j]`` over each column's entries, at (c, column, j).

        In the precision of ``values``.
        """
        values, C = np.ascontiguousarray(values), np.ascontiguousarray(C, values.dtype)
        out = np.empty((C.shape[1], self.shape[1], values.shape[1]), values.dtype)

        def piece(start: int, stop: int) -> None:
            kernels.outer_product(
                start, stop, self._column_starts, self._column_rows, self._by_column,
                values, C, out,
            )  # fmt: skip

        share(piece, self.shape[1], self._work(values) * C.shape[1])
        return out

    def turned(self) -> Pattern:
        """Return the transposed table's pattern; its ``order`` leads there from this one's."""
        return Pattern(np.stack([self.cols, self.rows], axis=1), self.shape[::-1])

    def entries(self, row: int) -> slice:
        """Return where the entries of a row are."""
        return slice(int(self._starts[row]), int(self._starts[row + 1]))

    def residual(self, weights: Floats, y: Floats, P: Floats, Q: Floats) -> tuple[Floats, Floats]:
        """Return ``e = w (P Q' - y)`` at the observed places, and ``E Q``."""
        P, Q = np.ascontiguousarray(P), np.ascontiguousarray(Q)
        e, out = np.empty(self.size), np.empty_like(P)

        def piece(start: int, stop: int) -> None:
            kernels.residual_product(
                start, stop, self._starts, self.cols, weights, y, P, Q, e, out
            )  # fmt: skip

        share(piece, self.shape[0], 2 * self._work(P))
        return e, out

    def curvature(
        self, weights: Floats, e: Floats, P: Floats, Q: Floats, dP: Floats, dQ: Floats
    ) -> tuple[Floats, Floats]:
        """Return the derivatives of ``E Q`` and ``E' P`` along (dP, dQ)."""
        change, by_row, by_column = np.empty_like(e), np.empty_like(P), np.empty_like(Q)

        def piece(start: int, stop: int) -> None:
            kernels.curvature_product(
                start, stop, self._starts, self.cols, weights, e, P, Q, dP, dQ, change, by_row
            )  # fmt: skip

        def piece_t(start: int, stop: int) -> None:
            kernels.curvature_product_t(
                start, stop, self._column_starts, self._column_rows, self._by_column,
                e, change, P, dP, by_column,
            )  # fmt: skip

        share(piece, self.shape[0], 4 * self._work(P))
        share(piece_t, self.shape[1], 2 * self._work(P))
        return by_row, by_column

    def _work(self, X: Floats) -> float:
        return float(self.size * X.shape[1])


def _starts(index: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=size))]).astype(np.int64)
