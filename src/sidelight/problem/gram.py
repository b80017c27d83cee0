"""The covariance between the observed entries, as an operator.

``C_obs v = (C_M [v] C_N)`` at the observed places. Neither an L x L nor an M x N matrix is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance import Covariance, Identity
from sidelight.problem.pattern import Pattern

Floats = NDArray[np.float64]
Product = Callable[[Floats], Floats]

_BLOCK = 256  # rows of the first covariance worked with at a time
_KEEP = 2**26  # numbers of that covariance's rows kept between steps: half a gigabyte
_EXPLICIT = 10**8  # entries of an explicit C_obs at most


def gram_product(pattern: Pattern, row_cov: Covariance, col_cov: Covariance) -> Product:
    """Return ``v -> C_obs v``, by the cheaper of three ways.

    With an identity on one axis, ``C_obs`` is sparse and made once when it is small enough.
    Otherwise the rows of one covariance are taken in blocks, on the shorter axis.
    """
    if isinstance(col_cov, Identity):
        explicit = _explicit(pattern.rows, pattern.cols, row_cov)
    elif isinstance(row_cov, Identity):
        explicit = _explicit(pattern.cols, pattern.rows, col_cov)
    else:
        explicit = None
    if explicit is not None:
        return lambda v: np.asarray(explicit @ v)
    if isinstance(col_cov, Identity) or pattern.shape[1] < pattern.shape[0]:
        return _turned(pattern, row_cov, col_cov)
    return _Blocks(pattern, row_cov, col_cov).times


def _explicit(items: Any, groups: Any, cov: Covariance) -> sp.csr_array[Any] | None:
    """Make ``C_obs`` where only entries of one group covary, as the covariance of their items."""
    sizes = np.bincount(groups)
    if float(np.sum(sizes.astype(float) ** 2)) > _EXPLICIT:
        return None
    members = sp.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))))
    pairs = sp.coo_array(members.T @ members)
    left, right = pairs.coords
    return sp.csr_array(
        (_covariances(cov, items[left], items[right]), (left, right)), shape=pairs.shape
    )


def _covariances(cov: Covariance, left: Any, right: Any) -> Floats:
    """Return ``C[left, right]`` pair by pair, one row of C for each item on the left."""
    out = np.empty(len(left))
    order = np.argsort(left, kind="stable")
    items, starts = np.unique(left[order], return_index=True)
    stops = np.r_[starts[1:], len(left)]
    for at in range(0, len(items), _BLOCK):
        rows = cov.rows(items[at : at + _BLOCK])
        places = order[starts[at] : stops[min(at + _BLOCK, len(items)) - 1]]
        out[places] = rows[np.searchsorted(items, left[places]) - at, right[places]]
    return out


def _turned(pattern: Pattern, row_cov: Covariance, col_cov: Covariance) -> Product:
    """Work on the transposed table."""
    pairs = np.stack([pattern.cols, pattern.rows], axis=1)
    turned = Pattern(pairs, (pattern.shape[1], pattern.shape[0]))
    blocks = _Blocks(turned, col_cov, row_cov)

    def times(v: Floats) -> Floats:
        out = np.empty_like(v)
        out[turned.order] = blocks.times(v[turned.order])
        return out

    return times


class _Blocks:
    """``C_obs v`` by blocks of rows: ``C_N ([v]' C_M[:, rows])``, read off at the entries there."""

    def __init__(self, pattern: Pattern, row_cov: Covariance, col_cov: Covariance) -> None:
        self._pattern, self._row_cov, self._col_cov = pattern, row_cov, col_cov
        used, self._place = np.unique(pattern.rows, return_inverse=True)
        self._blocks = [used[i : i + _BLOCK] for i in range(0, len(used), _BLOCK)]
        self._stops = np.searchsorted(self._place, np.arange(_BLOCK, len(used) + _BLOCK, _BLOCK))
        keep = len(used) * pattern.shape[0] <= _KEEP
        self._kept = [self._rows(block) for block in self._blocks] if keep else None

    def _rows(self, block: Any) -> Floats:
        return np.ascontiguousarray(self._row_cov.rows(block).T)

    def times(self, v: Floats) -> Floats:
        """Return ``C_obs v``."""
        out, start = np.empty_like(v), 0
        for i, block in enumerate(self._blocks):
            rows = self._rows(block) if self._kept is None else self._kept[i]
            stop = int(self._stops[i])
            spread = self._col_cov.apply(self._pattern.times_t(v, rows))
            here = slice(start, stop)
            out[here] = spread[self._pattern.cols[here], self._place[here] - i * _BLOCK]
            start = stop
        return out
