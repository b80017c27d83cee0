"""Compiled kernels over the observed pattern, each with its plain twin.

Every kernel works on the rows ``start..stop`` of a compressed pattern, so that threads can share
them, and holds no lock. ``weights`` and ``residual`` are in the pattern's row order; ``order``
leads from the transposed pattern's order to it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

_compiled = numba.njit(nogil=True, fastmath=True, cache=True, error_model="numpy")


@_compiled
def sampled_product(
    start: int, stop: int, indptr: Ints, cols: Ints, P: Floats, Q: Floats, out: Floats
) -> None:
    """Write ``(P Q')`` at the observed places into ``out``."""
    for m in range(start, stop):
        for k in range(indptr[m], indptr[m + 1]):
            total = 0.0
            for r in range(P.shape[1]):
                total += P[m, r] * Q[cols[k], r]
            out[k] = total


def sampled_product_plain(indptr: Ints, cols: Ints, P: Floats, Q: Floats) -> Floats:
    """Twin of ``sampled_product``."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.asarray(np.einsum("kr,kr->k", P[rows], Q[cols]))


@_compiled
def sparse_product(
    start: int, stop: int, indptr: Ints, cols: Ints, order: Ints, values: Floats,
    Q: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write ``E Q`` into ``out``; entry k of the pattern has the value ``values[order[k]]``."""
    for m in range(start, stop):
        for r in range(Q.shape[1]):
            out[m, r] = 0.0
        for k in range(indptr[m], indptr[m + 1]):
            value = values[order[k]]
            for r in range(Q.shape[1]):
                out[m, r] += value * Q[cols[k], r]


def sparse_product_plain(
    indptr: Ints, cols: Ints, order: Ints, values: Floats, Q: Floats
) -> Floats:
    """Twin of ``sparse_product``."""
    out = np.zeros((len(indptr) - 1, Q.shape[1]))
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    np.add.at(out, rows, values[order][:, None] * Q[cols])
    return out


@_compiled
def outer_product(
    start: int, stop: int, indptr: Ints, rows: Ints, order: Ints, values: Floats,
    C: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write ``out[c, n] = sum_l C[m_l, c] values[l]`` over the entries of column n."""
    for n in range(start, stop):
        out[:, n] = 0.0
        for k in range(indptr[n], indptr[n + 1]):
            m, place = rows[k], order[k]
            for c in range(C.shape[1]):
                share = C[m, c]
                for j in range(values.shape[1]):
                    out[c, n, j] += share * values[place, j]


def outer_product_plain(indptr: Ints, rows: Ints, order: Ints, values: Floats, C: Floats) -> Floats:
    """Twin of ``outer_product``."""
    out = np.zeros((len(indptr) - 1, C.shape[1], values.shape[1]))
    cols = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    np.add.at(out, cols, C[rows][:, :, None] * values[order][:, None, :])
    return out.transpose(1, 0, 2)


@_compiled
def residual_product(
    start: int, stop: int, indptr: Ints, cols: Ints, weights: Floats, y: Floats,
    P: Floats, Q: Floats, residual: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write ``e = w (P Q' - y)`` into ``residual`` and ``E Q`` into ``out``: one reading of Q."""
    for m in range(start, stop):
        for r in range(Q.shape[1]):
            out[m, r] = 0.0
        for k in range(indptr[m], indptr[m + 1]):
            total = 0.0
            for r in range(Q.shape[1]):
                total += P[m, r] * Q[cols[k], r]
            e = weights[k] * (total - y[k])
            residual[k] = e
            for r in range(Q.shape[1]):
                out[m, r] += e * Q[cols[k], r]


def residual_product_plain(
    indptr: Ints, cols: Ints, weights: Floats, y: Floats, P: Floats, Q: Floats
) -> tuple[Floats, Floats]:
    """Twin of ``residual_product``."""
    residual = weights * (sampled_product_plain(indptr, cols, P, Q) - y)
    return residual, sparse_product_plain(indptr, cols, np.arange(len(cols)), residual, Q)


@_compiled
def curvature_product(
    start: int, stop: int, indptr: Ints, cols: Ints, weights: Floats, residual: Floats,
    P: Floats, Q: Floats, dP: Floats, dQ: Floats, change: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write the derivative of ``E Q`` along (dP, dQ) into ``out``, of ``e`` into ``change``."""
    for m in range(start, stop):
        for r in range(Q.shape[1]):
            out[m, r] = 0.0
        for k in range(indptr[m], indptr[m + 1]):
            n = cols[k]
            total = 0.0
            for r in range(Q.shape[1]):
                total += dP[m, r] * Q[n, r] + P[m, r] * dQ[n, r]
            de = weights[k] * total
            e = residual[k]
            change[k] = de
            for r in range(Q.shape[1]):
                out[m, r] += de * Q[n, r] + e * dQ[n, r]


def curvature_product_plain(
    indptr: Ints, cols: Ints, weights: Floats, residual: Floats,
    P: Floats, Q: Floats, dP: Floats, dQ: Floats,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Twin of ``curvature_product``."""
    plain = np.arange(len(cols))
    change = weights * (
        sampled_product_plain(indptr, cols, dP, Q) + sampled_product_plain(indptr, cols, P, dQ)
    )
    out = sparse_product_plain(indptr, cols, plain, change, Q)
    return change, out + sparse_product_plain(indptr, cols, plain, residual, dQ)


@_compiled
def curvature_product_t(
    start: int, stop: int, indptr: Ints, rows: Ints, order: Ints, residual: Floats,
    change: Floats, P: Floats, dP: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write the derivative of ``E' P`` into ``out``: the transposed pattern, ``change`` known."""
    for n in range(start, stop):
        for r in range(P.shape[1]):
            out[n, r] = 0.0
        for k in range(indptr[n], indptr[n + 1]):
            e = residual[order[k]]
            de = change[order[k]]
            m = rows[k]
            for r in range(P.shape[1]):
                out[n, r] += de * P[m, r] + e * dP[m, r]


def curvature_product_t_plain(
    indptr: Ints, rows: Ints, order: Ints, residual: Floats, change: Floats, P: Floats, dP: Floats
) -> Floats:
    """Twin of ``curvature_product_t``."""
    out = sparse_product_plain(indptr, rows, order, change, P)
    return out + sparse_product_plain(indptr, rows, order, residual, dP)
