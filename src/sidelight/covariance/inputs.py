"""Checks of what a covariance is given."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.errors import InputError

if TYPE_CHECKING:
    from sidelight.covariance.base import Array, Index


def columns(X: Any, rows: int) -> Array:
    """Return a vector or a matrix of columns as float64, refusing a wrong number of rows."""
    found: Array = np.asarray(X, dtype=np.float64)
    if found.ndim not in (1, 2) or found.shape[0] != rows:
        raise InputError(
            f"expected a vector or a matrix with {rows} rows, found shape {found.shape}",
            remedy="give one row for each item, in the covariance's order",
        )
    return found


def picked(index: Any, size: int) -> Index:
    """Return item numbers as an index array, refusing those out of range."""
    items: Index = np.asarray(index)
    if items.size == 0:
        items = items.astype(np.intp)
    if items.ndim != 1 or not np.issubdtype(items.dtype, np.integer):
        raise InputError(
            f"expected a one-dimensional array of integers, found {items.dtype} {items.shape}",
            remedy="give item numbers",
        )
    wrong = np.flatnonzero((items < 0) | (items >= size))
    if wrong.size:
        raise InputError(
            f"item {items[wrong[0]]} at position {wrong[0]} is outside 0..{size - 1}",
            remedy="number the items from 0",
        )
    return items


def vector(X: Any, size: int) -> Array:
    """Return one float64 number for each item, refusing any other shape."""
    found: Array = np.asarray(X, dtype=np.float64)
    if found.shape != (size,):
        raise InputError(
            f"expected a vector of {size} weights, found shape {found.shape}",
            remedy="give one number for each known item",
        )
    return found


def amount(value: Any, name: str) -> float:
    """Return a finite number that is not negative."""
    if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise InputError(
            f"{name} must be a finite number >= 0, found {value!r}", remedy=f"choose {name} >= 0"
        )
    return float(value)


def whole(value: Any, name: str, least: int = 0) -> int:
    """Return an integer that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"{name} must be an integer >= {least}, found {value!r}",
            remedy=f"give {name} as a whole number",
        )
    return int(value)


def is_sparse(X: object) -> bool:
    """Tell a scipy sparse matrix or array from everything else."""
    return bool(sp.issparse(X))


def matrix(X: Any, what: str, width: int | None = None) -> Any:
    """Return a fresh finite float64 matrix: CSR when sparse, else C-contiguous and dense."""
    X = _csr(X) if is_sparse(X) else np.array(X, dtype=np.float64, order="C")
    if X.ndim != 2 or (width is not None and X.shape[1] != width):
        expected = "two dimensions" if width is None else f"shape (any, {width})"
        raise InputError(
            f"{what}: expected {expected}, found shape {X.shape}",
            remedy="give one row for each item",
        )
    _finite(X, what)
    return X


def _csr(X: Any) -> sp.csr_array[Any]:
    copy: sp.csr_array[Any] = sp.csr_array(X, dtype=np.float64, copy=True)
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy


def _finite(X: Any, what: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(X.data if is_sparse(X) else X.ravel()))
    if wrong.size:
        row, column = place(X, int(wrong[0]))
        raise InputError(
            f"{what}: entry ({row}, {column}) is not finite", remedy="remove or replace it"
        )


def nonnegative(X: Any, what: str) -> Any:
    """Return ``X``, refusing negative entries."""
    wrong = np.flatnonzero((X.data if is_sparse(X) else X.ravel()) < 0)
    if wrong.size:
        row, column = place(X, int(wrong[0]))
        raise InputError(f"{what}: entry ({row}, {column}) is negative", remedy="give weights >= 0")
    return X


def place(X: Any, position: int) -> tuple[int, int]:
    """Return the row and column of the stored value at ``position``."""
    if is_sparse(X):
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        return row, int(X.indices[position])
    row, column = divmod(position, int(X.shape[1]))
    return row, column


def settled(X: Any) -> Any:
    """Make a dense or sparse matrix read-only."""
    for array in (X.data, X.indices, X.indptr) if is_sparse(X) else (X,):
        frozen(array)
    return X


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only."""
    array.setflags(write=False)
    return array
