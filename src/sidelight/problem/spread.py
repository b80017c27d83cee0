"""What the entries spread to other cells: ``C_M [V] C_N``, for one number an entry or more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Axis
from sidelight.problem.pattern import Pattern

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 256  # rows worked with at a time, times numbers an entry


def spread_rows(
    pattern: Pattern, V: Floats, rows: Axis, cols: Axis, index: Ints, wanted: Ints
) -> Floats:
    """Return it for whole rows: rows asked by columns wanted by numbers an entry.

    ``V`` is in the pattern's order. The rows are worked on together: ask for few at a time.
    """
    sent = pattern.outer(V, rows.rows(index).T)
    flat = sent.transpose(1, 0, 2).reshape(sent.shape[1], -1)
    found = cols.spread(flat, cols.cov.apply(flat), wanted)
    return found.reshape(len(wanted), len(index), -1).transpose(1, 0, 2)


def spread_pairs(pattern: Pattern, V: Floats, rows: Axis, cols: Axis, pairs: Ints) -> Floats:
    """Return it for pairs, by rows or by columns, whichever are fewer."""
    used = np.unique(pairs[:, 0], return_inverse=True)
    other = np.unique(pairs[:, 1], return_inverse=True)
    if len(used[0]) > len(other[0]):
        turned = pattern.turned()
        return _by_rows(turned, V[turned.order], cols, rows, other, used)
    return _by_rows(pattern, V, rows, cols, used, other)


def _by_rows(pattern: Pattern, V: Floats, rows: Axis, cols: Axis, used: Any, other: Any) -> Floats:
    (items, at_row), (wanted, at_col) = used, other
    out = np.empty((len(at_row), V.shape[1]))
    order = np.argsort(at_row, kind="stable")
    step = max(_BLOCK // V.shape[1], 1)
    ends = np.searchsorted(at_row[order], np.arange(step, len(items) + step, step))
    start = 0
    for i, stop in enumerate(ends):
        here = order[start:stop]
        table = spread_rows(pattern, V, rows, cols, items[i * step : (i + 1) * step], wanted)
        out[here] = table[at_row[here] - i * step, at_col[here]]
        start = stop
    return out
