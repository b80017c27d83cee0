"""Chebyshev expansions of smooth functions on [-1, 1]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.fft import dct

from sidelight.covariance.base import Array
from sidelight.errors import InputError

_TAIL = 1e-14  # relative size under which a coefficient is rounding
_MOST_NODES = 1 << 14


def coefficients(function: Callable[[Array], Array]) -> Array:
    """Expand ``function`` to rounding: as many coefficients as its smoothness asks for.

    The number of nodes doubles until the last quarter of the coefficients vanishes; those
    beyond the last one of relative size 1e-14 are cut.
    """
    nodes = 16
    while nodes <= _MOST_NODES:
        found = _interpolated(function, nodes)
        degree = int(np.flatnonzero(np.abs(found) > _TAIL * np.abs(found).max()).max(initial=0))
        if degree < 3 * nodes // 4:
            return found[: degree + 1]
        nodes *= 2
    raise InputError(
        f"the diffusion is too sharp for a polynomial of degree {_MOST_NODES}",
        remedy="choose a smaller a, or a b that is not tiny beside exp(-a)",
    )


def _interpolated(function: Callable[[Array], Array], nodes: int) -> Array:
    """Interpolate at the Chebyshev nodes of the first kind."""
    found = dct(function(np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)), type=2) / nodes
    found[0] /= 2
    return np.asarray(found)
