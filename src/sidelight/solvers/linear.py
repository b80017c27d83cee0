"""The model without the nuclear norm: conjugate gradients on one number per observed entry.

``(C_obs + 1/w) alpha = y`` with ``C_obs v = (C_M [v] C_N)`` at the observed places. Neither an
L x L nor an M x N matrix is formed. Conjugate gradients stop on the duality gap, which here is a
norm of their residual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance import Covariance, Identity
from sidelight.problem import Pattern, Problem
from sidelight.solvers.solution import LinearSolution, Trace, Watch, certificate

Floats = NDArray[np.float64]
Product = Callable[[Floats], Floats]

_STEPS = 20_000
_BLOCK = 256  # rows of the first covariance worked with at a time
_KEEP = 2**26  # numbers of that covariance's rows kept between steps: half a gigabyte
_EXPLICIT = 10**8  # entries of an explicit C_obs at most


def solve_linear(
    problem: Problem, tol: float = 1e-4, *, watch: Watch | None = None
) -> LinearSolution:
    """Solve for the mean to a certified relative gap; KeyboardInterrupt ends the run, labelled."""
    trace, steps = Trace(watch), _Steps(problem)
    stopped = f"{_STEPS} steps did not reach tol = {tol:g}"
    try:
        for _ in range(_STEPS):
            primal, gap = steps.values()
            trace.note(min(problem.shape), primal, gap / max(primal, 1e-300))
            if gap <= 0.5 * tol * primal:
                break
            if not steps.advance():
                stopped = "rounding leaves no further progress"
                break
    except KeyboardInterrupt:
        stopped, trace.watch = "interrupted", None
    alpha, primal, dual = steps.finish()
    rank = min(problem.shape)
    return LinearSolution(alpha, certificate(primal, dual, rank, 1.0, tol, trace, stopped))


class _Steps:
    """Conjugate gradients in ``beta = alpha / sqrt(w)``: ``(I + sqrt(w) C sqrt(w)) beta = ...``."""

    def __init__(self, problem: Problem) -> None:
        self._root, self._y = np.sqrt(problem.weights), problem.y
        self._covary = gram_product(problem)
        self._rest = self._root * self._y
        self._beta, self._ahead = np.zeros_like(self._rest), self._rest.copy()
        self._square = float(self._rest @ self._rest)

    def _times(self, beta: Floats) -> Floats:
        return np.asarray(beta + self._root * self._covary(self._root * beta))

    def values(self) -> tuple[float, float]:
        """Return the primal value and the gap, ``|rest|^2 / 2``, at the present point."""
        fitted = self._root * self._y - self._rest - self._beta  # sqrt(w) psi
        misfit = self._rest + self._beta  # sqrt(w) (y - psi)
        return 0.5 * float(misfit @ misfit + self._beta @ fitted), 0.5 * self._square

    def advance(self) -> bool:
        """Take one step; say whether there was one to take."""
        bent = self._times(self._ahead)
        curvature = float(self._ahead @ bent)
        if curvature <= 0 or self._square == 0:
            return False
        length = self._square / curvature
        self._beta += length * self._ahead
        self._rest -= length * bent
        square = float(self._rest @ self._rest)
        self._ahead = self._rest + (square / self._square) * self._ahead
        self._square = square
        return True

    def finish(self) -> tuple[Floats, float, float]:
        """Return ``alpha`` with its primal and dual value, from a residual computed anew."""
        self._rest = self._root * self._y - self._times(self._beta)
        self._square = float(self._rest @ self._rest)
        primal, gap = self.values()
        return self._root * self._beta, primal, primal - gap


def gram_product(problem: Problem) -> Product:
    """Return ``v -> C_obs v``, by the cheaper of three ways.

    With an identity on one axis, ``C_obs`` is sparse and made once when it is small enough.
    Otherwise the rows of one covariance are taken in blocks, on the shorter axis.
    """
    pattern = problem.pattern
    if isinstance(problem.col_cov, Identity):
        explicit = _explicit(pattern.rows, pattern.cols, problem.row_cov)
    elif isinstance(problem.row_cov, Identity):
        explicit = _explicit(pattern.cols, pattern.rows, problem.col_cov)
    else:
        explicit = None
    if explicit is not None:
        return lambda v: np.asarray(explicit @ v)
    if isinstance(problem.col_cov, Identity) or pattern.shape[1] < pattern.shape[0]:
        return _turned(problem)
    return _Blocks(pattern, problem.row_cov, problem.col_cov).times


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


def _turned(problem: Problem) -> Product:
    """Work on the transposed table."""
    pattern = problem.pattern
    pairs = np.stack([pattern.cols, pattern.rows], axis=1)
    turned = Pattern(pairs, (pattern.shape[1], pattern.shape[0]))
    blocks = _Blocks(turned, problem.col_cov, problem.row_cov)

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
