"""The answer as a distribution: covariances, draws, intervals."""

from sidelight.posterior.calibration import Calibration
from sidelight.posterior.conformal import Conformal, RowGroups
from sidelight.posterior.entries import Entries, Query
from sidelight.posterior.mixture import Mixture
from sidelight.posterior.postdata import PRECISION, Postdata

__all__ = [
    "PRECISION",
    "Calibration",
    "Conformal",
    "Entries",
    "Mixture",
    "Postdata",
    "Query",
    "RowGroups",
]
