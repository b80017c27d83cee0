"""A covariance between the items that have entries, worked out where it is needed and kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Covariance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST = 2**32  # bytes kept, of which only what is used takes memory
_SINGLE = 8192  # items from which single precision is kept
_PART = 0.5  # of the items, from which the whole serves
_STRIP = 512  # items worked out at a time


class Kept:
    """``C`` between some items, in their own numbers from 0.

    Parameters
    ----------
    cov
        The covariance.
    items
        The items, each once, in order.
    """

    def __init__(self, cov: Covariance, items: Ints) -> None:
        self.cov, self.items, self.size = cov, items, len(items)
        self._known = np.zeros(self.size, dtype=bool)
        self.single = self.size >= _SINGLE
        self._work = cov.rough_rows if self.single else cov.rows
        kind = np.dtype(np.float32 if self.single else np.float64)
        fits = kind.itemsize * self.size**2 <= _MOST
        self._rows = np.empty((self.size, self.size), kind) if fits else None

    def among(self, items: Ints) -> tuple[Ints, NDArray[Any]] | None:
        """Return ``C`` between some items, and where each is in it; None if it is too large.

        Most of them come as part of the whole, which spares a copy.
        """
        if self._rows is None and 8 * len(items) ** 2 > _MOST:
            return None
        if self._rows is None or len(items) < _PART * self.size:
            return np.arange(len(items)), self.between(items, items)
        self._work_out(items)
        return items, self._rows

    def between(self, left: Ints, right: Ints) -> NDArray[Any]:
        """Return ``C(left, right)``."""
        if self._rows is None:
            return self.cov.between(self.items[left], self.items[right])
        self._work_out(left)
        return self._rows[np.ix_(left, right)]

    def _work_out(self, items: Ints) -> None:
        assert self._rows is not None
        missing = items[~self._known[items]]
        for at in range(0, len(missing), _STRIP):
            strip = missing[at : at + _STRIP]
            self._rows[strip] = self._work(self.items[strip])[:, self.items]
        self._known[missing] = True


def norm(cov: Covariance, rng: np.random.Generator, steps: int = 12) -> float:
    """Bound the largest eigenvalue from above by safeguarded Lanczos steps.

    To the largest Ritz value the last residual is added (Zhou and Li, 2011): above the eigenvalue
    unless the random start misses its vector.
    """
    steps = min(steps, cov.size)
    basis = np.zeros((steps + 1, cov.size))
    start = rng.standard_normal(cov.size)
    basis[0] = start / np.linalg.norm(start)
    small, last = np.zeros((steps, steps)), 0.0
    for k in range(steps):
        image = cov.apply(basis[k])
        small[: k + 1, k] = basis[: k + 1] @ image
        for _ in range(2):
            image = image - basis[: k + 1].T @ (basis[: k + 1] @ image)
        last = float(np.linalg.norm(image))
        if last <= 1e-14 * abs(small[k, k]):
            steps, last = k + 1, 0.0
            break
        basis[k + 1] = image / last
    symmetric = np.triu(small[:steps, :steps]) + np.triu(small[:steps, :steps], 1).T
    return float(np.linalg.eigvalsh(symmetric)[-1]) + last
