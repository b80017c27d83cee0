"""Draws from the prior at some pairs, without the table that they are cells of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sidelight.posterior.entries import Query
from sidelight.problem import Pattern

Floats = NDArray[np.float64]

_NUMBERS = 2**24  # numbers in passing: 128 MB


def prior_draws(query: Query, count: int, rng: np.random.Generator) -> Floats:
    """Return draws of ``Z = G_M E G_N'`` at the pairs, one in each column.

    ``E`` is drawn a few columns at a time, on the axis with fewer; what they add to the pairs is
    taken and the rest forgotten. Pairs are cells of one table: they covary, new items included.
    """
    rows, cols = query.rows, query.cols
    turned = rows.root_size < cols.root_size
    pairs = query.pairs[:, ::-1] if turned else query.pairs
    long, short = (cols, rows) if turned else (rows, cols)
    pattern = Pattern(pairs, (long.size, short.size))
    step = max(_NUMBERS // max(long.root_size + long.size, 1), 1)  # columns of E for all draws
    out = np.zeros((len(query), count))
    width = max(step // count, 1)
    for at in range(0, short.root_size, width):
        picks = np.eye(short.root_size, min(width, short.root_size - at), -at)
        right = short.root(picks)
        for first in range(0, count, step):
            some = min(step, count - first)
            noise = rng.standard_normal((long.root_size, picks.shape[1] * some))
            left = long.root(noise).reshape(long.size, picks.shape[1], some)
            for k in range(some):
                out[pattern.order, first + k] += pattern.product(left[:, :, k], right)
    return out
