"""Items that have entries with the same others."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sidelight.covariance.base import Cross
from sidelight.covariance.features import Features
from sidelight.covariance.inputs import matrix


class SharedEntries(Features):
    """Items are alike when they have entries with the same items of the other axis.

    The covariance of two items is the number of shared entries, divided by the geometric mean of
    the numbers that each has: the cosine of their 0/1 patterns. What was rated, by whom, tells
    beside what the rating was. Make it from the entries that the model is fitted on, and from
    those alone: an entry held out must not be known to exist. New items are described by their own
    patterns.

    Parameters
    ----------
    pattern
        Items by items of the other axis, sparse or dense; whatever is not zero is an entry.
    """

    def __init__(self, pattern: Any) -> None:
        super().__init__(_ones(matrix(pattern, "pattern")), "cosine")

    def cross(self, new: Any) -> Cross:
        """Place new items by their own patterns, new items by items of the other axis."""
        return super().cross(_ones(matrix(new, "pattern", self.width)))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the pattern."""
        settings, arrays = super().state()
        return settings | {"kind": "SharedEntries"}, arrays


def _ones(pattern: Any) -> sp.csr_array[Any]:
    found = sp.csr_array(pattern)
    found.data = (found.data != 0).astype(np.float64)
    return found
