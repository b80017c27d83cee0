"""Row and column biases, with variances learnt from the data.

The values are ``y = mu + b_m + c_n + e``, with independent normal ``b ~ s_b C_M``, ``c ~ s_c C_N``
and noise ``e`` of variance ``s / w``, for weights ``w`` of mean 1. With ``A`` and ``Z`` the 0/1
matrices from rows and columns to entries, the values have the covariance ``s H`` between them
after a division by ``sqrt(1 / w)``:

    H = I + sqrt(w) (s_b / s A C_M A' + s_c / s Z C_N Z') sqrt(w)

Given the variances, conjugate gradients give ``H^-1`` of the values and of the constant, and with
them the best linear unbiased prediction of all three parts. The variances follow by MacKay's fixed
point of the marginal likelihood: what a part explains, divided by the degrees of freedom that it
spends, ``s_b / s tr H^-1 sqrt(w) A C_M A' sqrt(w)``, estimated on random signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance import Covariance

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

_ROUNDS, _STEPS = 60, 2000
_SETTLED = 3e-3  # relative change of every variance at which they are known
_ROUGH, _EXACT = 1e-2, 1e-11  # residuals of the systems, while learning and at the end
_FEW = 300  # entries for which degrees of freedom are counted without random signs
_SIGNS = 200_000  # random signs altogether, in few vectors for many entries
_FIRST, _RANGE = 0.2, (1e-6, 1e4)  # of the variance of a typical bias, relative to the noise


@dataclass(frozen=True)
class Side:
    """The biases of one axis: ``images = C weights``, drawn from ``variance C``."""

    weights: Floats
    images: Floats
    variance: float


@dataclass(frozen=True)
class Biases:
    """The fitted mean ``constant + b_m + c_n``, and the noise's variance at the mean weight."""

    constant: float
    rows: Side
    cols: Side
    noise: float


def fit_biases(
    pairs: Pairs,
    values: Floats,
    weights: Floats,
    row_cov: Covariance,
    col_cov: Covariance,
    rng: np.random.Generator,
) -> Biases:
    """Fit the biases and their variances to entries of positive weight."""
    order = np.lexsort((values, pairs[:, 1], pairs[:, 0]))  # the signs belong to the entries
    pairs, values, weights = pairs[order], values[order], weights[order]
    centre = float(np.average(values, weights=weights))  # what is solved for is free of it
    values = values - centre
    root = np.sqrt(weights / weights.mean())
    axes = [_Axis(pairs[:, k], cov, root) for k, cov in enumerate((row_cov, col_cov))]
    right = np.column_stack([root * values, root])
    probes = _probes(len(values), rng)
    spreads = [axis.spread(probes) for axis in axes]
    for axis, spread in zip(axes, spreads, strict=True):
        axis.scale(float(np.vdot(probes, spread)) / len(values))
    every = np.hstack([right, probes])
    found, noise = np.zeros_like(every), 0.0
    for _ in range(_ROUNDS):
        found = _solve(axes, every, found, _ROUGH)
        _, beta = _less_constant(right, found)
        traces = [max(float(np.vdot(found[:, 2:], spread)), 1e-9) for spread in spreads]
        noise = _noise(axes, traces, beta)
        moved = [axis.learn(t, beta, noise) for axis, t in zip(axes, traces, strict=True)]
        if max(moved) < _SETTLED:
            break
    constant, beta = _less_constant(right, _solve(axes, right, found[:, :2], _EXACT))
    rows, cols = (axis.side(beta, noise) for axis in axes)
    return Biases(centre + constant, rows, cols, noise)


class _Axis:
    """One side: ``down`` takes entries to items, ``up`` items to entries, with their weights."""

    def __init__(self, index: NDArray[np.int64], cov: Covariance, root: Floats) -> None:
        self.up: Any = sp.csr_array(
            (root, index, np.arange(len(index) + 1)), shape=(len(index), cov.size)
        )
        self.down = self.up.T.tocsr()
        self.cov = cov
        self.ratio, self._unit = 1.0, 1.0  # variance of the biases over that of the noise

    def scale(self, diagonal: float) -> None:
        """Start, and end the search, at ratios that suit the covariance's typical variance."""
        self._unit = 1 / diagonal if diagonal > 0 else 1.0
        self.ratio = _FIRST * self._unit

    def spread(self, X: Floats) -> Floats:
        """Return the covariance between the entries times ``X``, for ``ratio = 1``."""
        return np.asarray(self.up @ self.cov.apply(self.down @ X))

    def side(self, beta: Floats, noise: float) -> Side:
        """Return the biases that ``beta`` implies."""
        weights = self.ratio * (self.down @ beta)
        return Side(weights, self.cov.apply(weights), self.ratio * noise)

    def learn(self, trace: float, beta: Floats, noise: float) -> float:
        """Update the ratio; return its relative change.

        ``trace`` is that of ``H^-1`` with the covariance between the entries.
        """
        side, before = self.side(beta, noise), self.ratio
        explained = float(side.weights @ side.images) / noise
        low, high = (self._unit * end for end in _RANGE)
        self.ratio = float(np.clip(explained / (before * trace), low, high))
        return abs(float(np.log(self.ratio / before)))


def _probes(size: int, rng: np.random.Generator) -> Floats:
    """Return ``Z`` with ``tr A`` near ``tr Z'AZ``: random signs, or all unit vectors."""
    if size <= _FEW:
        return np.eye(size)
    count = min(max(_SIGNS // size, 4), 64)
    return np.asarray(rng.choice([-1.0, 1.0], (size, count)) / np.sqrt(count))


def _less_constant(right: Floats, found: Floats) -> tuple[float, Floats]:
    """Return the constant by generalised least squares, and ``H^-1`` of what it leaves."""
    y, one = found[:, 0], found[:, 1]
    top, bottom = float(right[:, 1] @ y), float(right[:, 1] @ one)
    return top / bottom, y - top / bottom * one


def _noise(axes: list[_Axis], traces: list[float], beta: Floats) -> float:
    """Return the variance of the noise: what is left over the degrees of freedom left."""
    spent = 1 + sum(axis.ratio * trace for axis, trace in zip(axes, traces, strict=True))
    return max(float(beta @ beta) / max(len(beta) - spent, 1.0), 1e-300)


def _solve(axes: list[_Axis], right: Floats, start: Floats, tol: float) -> Floats:
    """Return ``H^-1 right`` by conjugate gradients, all columns at once."""

    def times(X: Floats) -> Floats:
        out = X.copy()
        for axis in axes:
            out += axis.ratio * axis.spread(X)
        return out

    out = start.copy()
    rest = right - times(out)
    ahead, size = rest.copy(), np.sum(rest**2, axis=0)
    goal = tol**2 * np.sum(right**2, axis=0)
    for _ in range(_STEPS):
        if (size <= goal).all():
            break
        bent = times(ahead)
        length = size / np.maximum(np.sum(ahead * bent, axis=0), 1e-300)
        out += length * ahead
        rest -= length * bent
        size, before = np.sum(rest**2, axis=0), size
        ahead = rest + size / np.maximum(before, 1e-300) * ahead
    return out
