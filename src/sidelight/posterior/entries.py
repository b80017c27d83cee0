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
        (rows, at_row), (cols, at_col) = (_unique(self.pairs, k) for k in (0, 1))
        return np.asarray(self.rows.variances(rows)[at_row] * self.cols.variances(cols)[at_col])

    def covariance(self) -> Floats:
        """Return the prior covariance between the pairs."""
        return self.cross(self.pairs)

    def cross(self, others: Ints) -> Floats:
        """Return the prior covariance of other pairs with these: others by pairs, in strips."""
        sides = []
        for axis, k in ((self.rows, 0), (self.cols, 1)):
            (mine, at), (theirs, at_theirs) = _unique(self.pairs, k), _unique(others, k)
            sides.append((axis.between(theirs, mine), at_theirs, at))
        (C, at_row, row), (H, at_col, col) = sides
        out = np.empty((len(others), len(self.pairs)))
        for start in range(0, len(others), _STRIP):
            strip = slice(start, start + _STRIP)
            out[strip] = C[np.ix_(at_row[strip], row)]
            out[strip] *= H[np.ix_(at_col[strip], col)]
        return out


def _unique(pairs: Ints, axis: int) -> tuple[Ints, Ints]:
    """Return the items of one axis, each once, and where each pair's is among them."""
    items, place = np.unique(pairs[:, axis], return_inverse=True)
    return items, place
