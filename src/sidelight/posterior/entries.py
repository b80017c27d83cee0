"""What the covariance of the posterior depends on, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Axis, Covariance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STRIP = 512  # pairs worked with at a time


@dataclass(frozen=True, eq=False)
class Entries:
    """The fitted entries: their pairs, the variance of the noise in each, the covariances."""

    pairs: Ints
    noise: Floats
    row_cov: Covariance
    col_cov: Covariance

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.row_cov.size, self.col_cov.size

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, eq=False)
class Query:
    """Pairs, whose items may be new."""

    pairs: Ints
    rows: Axis
    cols: Axis

    def __len__(self) -> int:
        return len(self.pairs)

    def part(self, where: slice | Ints) -> Query:
        """Return some of the pairs."""
        return Query(self.pairs[where], self.rows, self.cols)

    def variances(self) -> Floats:
        """Return the prior variances."""
        (rows, at_row), (cols, at_col) = self._items()
        return np.asarray(self.rows.variances(rows)[at_row] * self.cols.variances(cols)[at_col])

    def covariance(self) -> Floats:
        """Return the prior covariance between the pairs."""
        return self._with(self.pairs)

    def cross(self, entries: Ints) -> Floats:
        """Return the prior covariance of entries with the pairs: entries by pairs."""
        return self._with(entries)

    def _with(self, others: Ints) -> Floats:
        """Return the prior covariance of other pairs with these, in strips."""
        sides = []
        for axis, k in ((self.rows, 0), (self.cols, 1)):
            mine, at = np.unique(self.pairs[:, k], return_inverse=True)
            theirs, at_theirs = np.unique(others[:, k], return_inverse=True)
            sides.append((axis.between(theirs, mine), at_theirs, at))
        (C, at_row, row), (H, at_col, col) = sides
        out = np.empty((len(others), len(self.pairs)))
        for start in range(0, len(others), _STRIP):
            strip = slice(start, start + _STRIP)
            out[strip] = C[np.ix_(at_row[strip], row)]
            out[strip] *= H[np.ix_(at_col[strip], col)]
        return out

    def _items(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        rows, at_row = np.unique(self.pairs[:, 0], return_inverse=True)
        cols, at_col = np.unique(self.pairs[:, 1], return_inverse=True)
        return (rows, at_row), (cols, at_col)
