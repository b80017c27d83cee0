"""The covariance between the observed entries, as an operator.

``C_obs v = (C_M [v] C_N)`` at the observed places, for a vector or for the columns of a matrix.
Neither an L x L nor an M x N matrix is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sidelight.covariance import Identity
from sidelight.parallel import share
from sidelight.problem.pattern import Pattern

Floats = NDArray[np.float64]
Product = Callable[[Floats], Floats]

_BLOCK = 256  # rows of the first covariance worked with at a time, times columns of the matrix
_KEEP = 2**26  # numbers of covariances kept between steps: half a gigabyte
_EXPLICIT = 10**8  # entries of an explicit C_obs at most
_TABLE = 2**24  # cells of tables worked with at a time
_SAMPLED = 0.1  # speed of a product at the observed places beside one of whole matrices


def gram_product(pattern: Pattern, row_cov: Any, col_cov: Any) -> Product:
    """Return ``v -> C_obs v``, by the cheapest of three ways.

    With an identity on one axis, ``C_obs`` is sparse and made once when it is small enough.
    Otherwise both covariances are kept for the items that have entries, when they are small enough.
    If not, the rows of one are taken in blocks, on the shorter axis, and the other is applied.
    Of the covariances, ``rows`` and ``apply`` are used.
    """
    if isinstance(col_cov, Identity):
        explicit = _explicit(pattern.rows, pattern.cols, row_cov)
    elif isinstance(row_cov, Identity):
        explicit = _explicit(pattern.cols, pattern.rows, col_cov)
    else:
        explicit = _kept(pattern, row_cov, col_cov)
    if explicit is not None:
        return explicit
    if isinstance(col_cov, Identity) or pattern.shape[1] < pattern.shape[0]:
        return _turned(pattern, lambda turned: _Blocks(turned, col_cov, row_cov).times)
    return _Blocks(pattern, row_cov, col_cov).times


def dense_product(pattern: Pattern, C: Floats, H: Floats) -> Product:
    """Return ``v -> C_obs v`` for dense covariances of the rows and of the columns.

    Either the whole table is made, for some columns of the matrix at a time, or its observed
    places alone.
    """
    (rows, cols), entries = pattern.shape, pattern.size
    if _SAMPLED * rows * cols * (rows + cols) <= entries * min(2 * rows + cols, rows + 2 * cols):
        return _whole(pattern, C, H)
    if cols < rows:
        return _turned(pattern, lambda turned: Sampling(turned, H, C))
    return Sampling(pattern, C, H)


def _explicit(items: Any, groups: Any, cov: Any) -> Product | None:
    """Make ``C_obs`` where only entries of one group covary, as the covariance of their items."""
    sizes = np.bincount(groups)
    if float(np.sum(sizes.astype(float) ** 2)) > _EXPLICIT:
        return None
    members = sp.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))))
    pairs = sp.coo_array(members.T @ members)
    left, right = pairs.coords
    values = _covariances(cov, items[left], items[right])
    explicit = sp.csr_array((values, (left, right)), shape=pairs.shape)
    return lambda v: np.asarray(explicit @ v)


def _covariances(cov: Any, left: Any, right: Any) -> Floats:
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


def _columnwise(product: Product, v: Floats) -> Floats:
    """Give a product of matrices a vector."""
    return product(v[:, None])[:, 0] if v.ndim == 1 else product(v)


def _kept(pattern: Pattern, row_cov: Any, col_cov: Any) -> Product | None:
    """Keep both covariances for the items that have entries."""
    rows, at_row = np.unique(pattern.rows, return_inverse=True)
    cols, at_col = np.unique(pattern.cols, return_inverse=True)
    if len(rows) ** 2 + len(cols) ** 2 > _KEEP:
        return None
    shrunk = Pattern(np.column_stack([at_row, at_col]), (len(rows), len(cols)))
    return dense_product(shrunk, row_cov.between(rows, rows), col_cov.between(cols, cols))


def _turned(pattern: Pattern, make: Callable[[Pattern], Product]) -> Product:
    """Work on the transposed table."""
    turned = pattern.turned()
    product = make(turned)

    def times(v: Floats) -> Floats:
        out = np.empty_like(v)
        out[turned.order] = product(v[turned.order])
        return out

    return times


def _whole(pattern: Pattern, C: Floats, H: Floats) -> Product:
    """Work on whole tables: scatter, multiply, read off."""
    rows, cols = pattern.shape
    place = pattern.rows.astype(np.int64) * cols + pattern.cols
    scatter = sp.csr_array((np.ones(pattern.size), (place, np.arange(pattern.size))),
                           shape=(rows * cols, pattern.size))  # fmt: skip

    def times(V: Floats) -> Floats:
        out, step = np.empty_like(V), max(_TABLE // (rows * cols), 1)
        for at in range(0, V.shape[1], step):
            here = np.s_[:, at : at + step]
            table = C @ np.asarray(scatter @ V[here]).reshape(rows, -1)
            out[here] = (H @ table.reshape(rows, cols, -1)).reshape(rows * cols, -1)[place]
        return out

    return lambda v: _columnwise(times, v)


class Sampling:
    """``C_obs V`` row by row: what the others' entries send there, spread over the columns.

    Parameters
    ----------
    pattern
        The entries.
    C, H
        The covariances of the rows and of the columns; ``H`` in single precision halves the time,
        and leaves an error of about 1e-7.
    """

    def __init__(self, pattern: Pattern, C: Floats, H: NDArray[Any]) -> None:
        self._pattern, self._C, self._H = pattern, C, H

    def __call__(self, v: Floats) -> Floats:
        """Return ``C_obs v``."""
        return _columnwise(lambda V: self.times(V)[0], v)

    def times(
        self, V: Floats, scale: Floats | None = None, least: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return ``C_obs V``, and the rows that were left out.

        What is sent to a row is a matrix with the length of ``C_M(row, .) [v]``, column by column.
        A row is left out, and zero, where no column of it times ``scale`` is longer than ``least``;
        then that length is returned for it, and 0 for all others.
        """
        pattern, out = self._pattern, np.zeros_like(V)
        rows, left = pattern.shape[0], np.zeros(pattern.shape[0])
        received = V.astype(self._H.dtype, copy=False)
        step = max(_TABLE // (pattern.shape[1] * V.shape[1]), 1)
        for at in range(0, rows, step):
            spread = pattern.outer(received, self._C[:, at : at + step])

            def receive(start: int, stop: int, at: int = at, spread: Any = spread) -> None:
                for i in range(start, stop):
                    size = np.inf if least is None else _longest(spread[i], scale)
                    if least is not None and size <= least[at + i]:
                        left[at + i] = size
                        continue
                    here = pattern.entries(at + i)
                    out[here] = self._H[pattern.cols[here]] @ spread[i]

            with threadpool_limits(1):  # many small products: one to a thread
                share(receive, len(spread), float(spread.size) * V.shape[1])
        return out, left


def _longest(X: NDArray[Any], scale: Floats | None) -> float:
    """Return the length of the longest column of ``X``, or of ``X @ scale``."""
    square = (X.T @ X).astype(np.float64)
    square = square if scale is None else scale.T @ square @ scale
    return float(np.sqrt(max(square.diagonal().max(initial=0.0), 0.0)))


class _Blocks:
    """``C_obs V`` by blocks of rows: ``C_N ([V]' C_M[:, rows])``, read off at the entries there."""

    def __init__(self, pattern: Pattern, row_cov: Any, col_cov: Any) -> None:
        self._pattern, self._row_cov, self._col_cov = pattern, row_cov, col_cov
        self._used, self._place = np.unique(pattern.rows, return_inverse=True)
        keep = len(self._used) * pattern.shape[0] <= _KEEP
        self._kept = self._rows(self._used) if keep else None

    def _rows(self, items: Any) -> Floats:
        return np.ascontiguousarray(self._row_cov.rows(items).T)

    def times(self, v: Floats) -> Floats:
        """Return ``C_obs v``."""
        return _columnwise(self._times, v)

    def _times(self, V: Floats) -> Floats:
        out, step = np.empty_like(V), max(_BLOCK // V.shape[1], 1)
        for at in range(0, len(self._used), step):
            block = np.s_[at : at + step]
            rows = self._rows(self._used[block]) if self._kept is None else self._kept[:, block]
            spread = self._pattern.outer(V, rows)
            width, cols, _ = spread.shape
            spread = self._col_cov.apply(spread.transpose(1, 0, 2).reshape(cols, -1))
            spread = spread.reshape(cols, width, -1)
            start, stop = np.searchsorted(self._place, [at, at + step])
            here = slice(start, stop)
            out[here] = spread[self._pattern.cols[here], self._place[here] - at]
        return out
