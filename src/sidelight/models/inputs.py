"""Checks of what callers give: parameters, pairs, values, ids."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from sidelight.data import Dataset
from sidelight.errors import InputError

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]


def positive(value: float, name: str) -> None:
    """Refuse a parameter that is not a positive finite number."""
    if not (isinstance(value, Real) and 0 < value < np.inf):
        raise InputError(
            f"{name} is {value!r}", remedy=f"choose a positive finite number for {name}"
        )


def whole(value: object, name: str, least: int = 1) -> None:
    """Refuse a parameter that is not a whole number, or too small a one."""
    if isinstance(value, bool) or not (isinstance(value, (int, np.integer)) and value >= least):
        raise InputError(
            f"{name} is {value!r}", remedy=f"choose a whole number >= {least} for {name}"
        )


def check_entries(
    X: ArrayLike | Dataset,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    positives: bool = False,
) -> tuple[Pairs, Floats, Floats]:
    """Return pairs, values and weights, checked; ``positives``: no values are all ones."""
    if isinstance(X, Dataset):
        y = X.values if y is None else y
    pairs = check_pairs(X.pairs if isinstance(X, Dataset) else X)
    if y is None and positives:
        y = np.ones(len(pairs))
    if y is None:
        raise InputError(
            "fit requires y to be passed, but the target y is None",
            remedy="give the value of each entry, or a Dataset as X",
        )
    values = _numbers(y, "y", len(pairs))
    weights = np.ones(len(pairs))
    if sample_weight is not None:
        weights = _numbers(sample_weight, "sample_weight", len(pairs))
        if (weights < 0).any():
            raise InputError(
                f"sample_weight {weights.min():g} is negative", remedy="use weights >= 0"
            )
    if not (weights > 0).any():
        raise InputError(
            "there are no entries, or all their weights are zero",
            remedy="give at least one entry to fit on",
        )
    return pairs, values, weights


def check_pairs(X: ArrayLike) -> Pairs:
    """Return an (L, 2) array of whole numbers, or say what else X is."""
    if issparse(X):
        raise InputError(
            "X is a sparse matrix and must be a list of pairs",
            remedy="use sidelight.dataset_from_sparse for a sparse table",
        )
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported", remedy="give row and column numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError("X contains NaN or inf", remedy="give row and column numbers")
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"X has shape {array.shape}", remedy="give an (L, 2) array of (row, column)"
        )
    if array.dtype.kind not in "iuf" or (array.size and not np.all(array == np.floor(array))):
        raise InputError(
            f"X is not made of whole numbers (its dtype is {array.dtype})",
            remedy="give row and column numbers; a Dataset turns ids into numbers",
        )
    return array.astype(np.int64)


def _numbers(values: ArrayLike, name: str, count: int) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not numeric", remedy="give numbers") from None
    if array.shape != (count,):
        raise InputError(
            f"{name} has shape {array.shape} for {count} entries",
            remedy="give one number for each entry",
        )
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise InputError(
            f"{name} is {array[wrong[0]]} at position {wrong[0]}",
            remedy="leave out entries whose value is not known",
        )
    return array


def find_id(wanted: str, ids: tuple[str, ...], what: str) -> int:
    """Return the number of an id."""
    try:
        return ids.index(wanted)
    except ValueError:
        raise InputError(
            f"there is no {what} with the id {wanted!r}",
            remedy=f"use one of the model's {len(ids)} {what} ids",
        ) from None
