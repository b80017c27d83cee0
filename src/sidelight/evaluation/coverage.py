"""How well intervals and normal distributions tell what is not known of the values.

A metric returns one number for each entry; ``row_means`` makes one for each row of them; the mean
over rows is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, ndtri

from sidelight.errors import InputError

Array = NDArray[np.float64]
Index = NDArray[np.integer[Any]]

LEVELS = (0.5, 0.8, 0.9, 0.95)


def coverage(values: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Return 1 for each entry whose value is in its interval, ends included, and 0 for others."""
    y, below, above = _entries(values=values, low=low, high=high)
    wrong = np.flatnonzero(below > above)
    if wrong.size:
        at = wrong[0]
        raise InputError(
            f"low is {below[at]:g} and high is {above[at]:g} at position {at}",
            remedy="give low <= high",
        )
    return ((below <= y) & (y <= above)).astype(float)


def crps(values: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Array:
    """Return the continuous ranked probability score of a normal for each entry; less is better.

    It is the integral over ``x`` of ``(P(X <= x) - 1[value <= x])^2``, in the unit of the values;
    without spread it is the absolute error.
    """
    y, centre, spread = _normal(values, mean, std)
    errors = y - centre
    with np.errstate(over="ignore", divide="ignore"):
        z = np.divide(errors, spread, out=np.zeros_like(errors), where=errors != 0)
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(
        errors * erf(z / np.sqrt(2)) + spread * (2 * density - 1 / np.sqrt(np.pi)), dtype=float
    )


def calibration_table(
    values: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: Iterable[float] = LEVELS
) -> list[dict[str, float]]:
    """Compare central intervals of normals with the values, pooled over entries.

    Returns
    -------
    list of dict
        For each level the ``level``, the ``coverage``, that is the share of entries in their
        intervals, and the ``width``, which is the mean of the intervals'.
    """
    y, centre, spread = _normal(values, mean, std)
    if len(y) == 0:
        raise InputError("there are no entries", remedy="pass at least one")
    return [_line(level, y, centre, spread) for level in levels]


def row_means(rows: ArrayLike, numbers: ArrayLike) -> tuple[Index, Array]:
    """Average the numbers of each row's entries.

    Parameters
    ----------
    rows
        The row of each entry.
    numbers
        A number for each entry, as ``coverage`` and ``crps`` return.

    Returns
    -------
    tuple
        The rows that have an entry, ascending, and the mean of each.
    """
    of_entries, per_entry = np.asarray(rows), np.asarray(numbers, dtype=float)
    if of_entries.ndim != 1 or of_entries.shape != per_entry.shape:
        raise InputError(
            f"rows {of_entries.shape}, numbers {per_entry.shape}: not two lists of one length",
            remedy="give the row and the number of each entry",
        )
    found, place, sizes = np.unique(of_entries, return_inverse=True, return_counts=True)
    return found, np.bincount(place, per_entry, len(found)) / sizes


def _line(level: float, values: Array, mean: Array, std: Array) -> dict[str, float]:
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}", remedy="choose levels between 0 and 1")
    half = ndtri((1 + level) / 2) * std
    inside = coverage(values, mean - half, mean + half)
    return {
        "level": float(level),
        "coverage": float(inside.mean()),
        "width": float(2 * half.mean()),
    }


def _normal(values: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[Array, Array, Array]:
    y, centre, spread = _entries(values=values, mean=mean, std=std)
    for name, array in (("mean", centre), ("std", spread)):
        _refuse(~np.isfinite(array), name, array, "give a finite number for each entry")
    _refuse(spread < 0, "std", spread, "give standard deviations >= 0")
    return y, centre, spread


def _entries(**given: ArrayLike) -> list[Array]:
    """Return lists of numbers of one length; the values, which come first, are finite."""
    arrays = {name: np.asarray(array, dtype=float) for name, array in given.items()}
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise InputError(
            ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            + ": not lists of one length",
            remedy="give a number of each for each entry",
        )
    for name, array in arrays.items():
        _refuse(np.isnan(array), name, array, "give a number for each entry")
    _refuse(~np.isfinite(arrays["values"]), "values", arrays["values"], "give finite values")
    return list(arrays.values())


def _refuse(wrong: NDArray[np.bool_], name: str, array: Array, remedy: str) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{name} is {array[at]:g} at position {at}", remedy=remedy)
