"""One prediction, taken apart into what each entry brings to it.

Every model here is ``psi(m, n) = C_M(m, :) A C_N(:, n)``. Where ``A = [alpha]`` has one number for
each entry, the parts can be read off: ``psi(m, n) = sum_l alpha_l C_M(m, m_l) C_N(n_l, n)``.

Where the mean has few factors, ``A = a b'`` names no entry, but the entries hold it up. With
``P = C_M a``, ``Q = C_N b`` and singular values ``s``, let ``P^ = P / sqrt(s)``,
``Q^ = Q / sqrt(s)``, so that ``Psi = P^ diag(s) Q^'``, and let ``alpha`` be the slope of the loss:
``w (y - psi)`` at the entries, ``-w0 psi`` at unobserved cells. Then ``K = P^' [alpha] Q^`` is a
small matrix, ``diag(lam + h s)`` at the optimum, and ``diag(s) = D K`` with ``D = diag(s) K^-1``:

    ``psi(m, n) = p^(m)' D K q^(n) = sum_l alpha_l (p^(m)' D p^(m_l)) (q^(n_l)' q^(n))``.

That adds up whatever ``alpha`` is, at the optimum or not. ``E = K^-1 diag(s)`` on the other side
gives ``(p^(m)' p^(m_l)) (q^(n_l)' E q^(n))``, as good; the mean of the two is taken, so that a
transposed table is explained alike. With ``lam = 0`` and factors that span both axes, both are
the amounts of ``A = [alpha]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem import Factors, Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SINGULAR = 1e-10  # of K's largest singular value: directions that the entries do not hold up
_RELATIVE, _ROUNDING = 1e-9, 1e-12  # of the total, of the amounts: what counts as rounding


@dataclass(frozen=True, eq=False)
class Support:
    """What holds up the mean of one cell, without the mean function.

    Attributes
    ----------
    total
        The mean.
    pairs, values
        The fitted entries.
    amounts
        What each of them brings.
    elsewhere
        What the unobserved cells bring, which count as zeros; None where they do not count.
    row_weights, col_weights
        ``total = C_M(m, :) row_weights = C_N(n, :) col_weights``.
    """

    total: float
    pairs: Ints
    values: Floats
    amounts: Floats
    elsewhere: float | None
    row_weights: Floats
    col_weights: Floats

    @property
    def untraced(self) -> float:
        """What the total has that no entry and no unobserved cell brings, rounding left out."""
        left = self.total - float(self.amounts.sum()) - (self.elsewhere or 0.0)
        rounding = _RELATIVE * abs(self.total) + _ROUNDING * float(np.abs(self.amounts).sum())
        return left if abs(left) > rounding else 0.0


def spread_support(pairs: Ints, values: Floats, alpha: Floats, row: Floats, col: Floats) -> Support:
    """Take apart ``row [alpha] col``, with ``row = C_M(m, :)`` and ``col = C_N(n, :)``."""
    by_row, by_col = row[pairs[:, 0]], col[pairs[:, 1]]
    amounts = alpha * by_row * by_col
    return Support(
        float(amounts.sum()),
        pairs,
        values,
        amounts,
        None,
        _sums(pairs[:, 0], alpha * by_col, len(row)),
        _sums(pairs[:, 1], alpha * by_row, len(col)),
    )


def _sums(place: Ints, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(place, values, minlength=count), dtype=np.float64)


def factor_support(
    pairs: Ints,
    values: Floats,
    problem: Problem,
    factors: Factors,
    spectrum: Floats,
    row: Floats,
    col: Floats,
) -> Support:
    """Take apart ``row . col``, the two items' lines in the factors.

    Parameters
    ----------
    pairs, values
        The fitted entries.
    problem
        What the factors were fitted to.
    factors
        Of the mean.
    spectrum
        Their singular values.
    row, col
        The lines of the cell's two items, known or new, in ``C_M a`` and ``C_N b``.
    """
    pattern, alpha = problem.pattern, -problem.residual(factors)
    kept = spectrum > 0
    s, scale = spectrum[kept], np.sqrt(spectrum[kept])
    P, Q, p, q = (x[..., kept] / scale for x in (factors.p, factors.q, row, col))
    entries = P.T @ pattern.times(alpha, Q)
    K = P.T @ problem.dual_point(-alpha, factors).times(Q) if problem.w0 > 0 else entries
    inverse = np.linalg.pinv(K, rcond=_SINGULAR) if K.size else K
    left, right = (p * s) @ inverse, inverse @ (s * q)
    first = (P @ left)[pattern.rows] * (Q @ q)[pattern.cols]
    second = (P @ p)[pattern.rows] * (Q @ right)[pattern.cols]
    amounts = np.empty_like(alpha)
    amounts[pattern.order] = alpha * (first + second) / 2
    rest = K - entries
    elsewhere = float(left @ rest @ q + p @ rest @ right) / 2 if problem.w0 > 0 else None
    weights = factors.a @ col, factors.b @ row
    return Support(float(row @ col), pairs, values, amounts, elsewhere, *weights)


def mean_support(parts: Sequence[Support]) -> Support:
    """Return the mean of several explanations of one cell, their entries merged by pair."""
    share, width = 1 / len(parts), len(parts[0].col_weights)
    pairs = np.vstack([part.pairs for part in parts])
    values = np.concatenate([part.values for part in parts])
    amounts = np.concatenate([part.amounts for part in parts])
    cells, place = np.unique(pairs[:, 0] * width + pairs[:, 1], return_inverse=True)
    elsewhere = [part.elsewhere for part in parts if part.elsewhere is not None]
    return Support(
        share * sum(part.total for part in parts),
        np.column_stack(np.divmod(cells, width)),
        _sums(place, values, len(cells)) / np.bincount(place),
        _sums(place, share * amounts, len(cells)),
        share * sum(elsewhere) if elsewhere else None,
        share * np.sum([part.row_weights for part in parts], axis=0),
        share * np.sum([part.col_weights for part in parts], axis=0),
    )
