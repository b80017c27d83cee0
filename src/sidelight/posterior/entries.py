"""What the covariance of the posterior depends on, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Axis, Covariance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        (rows, at_row), (cols, at_col) = self._items()
        between = self.rows.between(rows, rows)[np.ix_(at_row, at_row)]
        return np.asarray(between * self.cols.between(cols, cols)[np.ix_(at_col, at_col)])

    def cross(self, entries: Ints) -> Floats:
        """Return the prior covariance of entries with the pairs: entries by pairs."""
        (rows, at_row), (cols, at_col) = self._items()
        out = self.rows.rows(rows).T[entries[:, 0]][:, at_row]
        out *= self.cols.rows(cols).T[entries[:, 1]][:, at_col]
        return np.asarray(out)

    def _items(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        rows, at_row = np.unique(self.pairs[:, 0], return_inverse=True)
        cols, at_col = np.unique(self.pairs[:, 1], return_inverse=True)
        return (rows, at_row), (cols, at_col)
