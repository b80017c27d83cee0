"""The answer as a distribution: covariances, draws, intervals."""

from sidelight.posterior.calibration import Calibration
from sidelight.posterior.conformal import Conformal, RowGroups
from sidelight.posterior.entries import Entries, Query
from sidelight.posterior.evidence import Constrained, Evidence, MeanSolver, Setting
from sidelight.posterior.explain import Support, factor_support, mean_support, spread_support
from sidelight.posterior.learning import Learnt, Prior, learn
from sidelight.posterior.mixture import Mixture
from sidelight.posterior.postdata import PRECISION, Postdata, around

__all__ = [
    "PRECISION",
    "Calibration",
    "Conformal",
    "Constrained",
    "Entries",
    "Evidence",
    "Learnt",
    "MeanSolver",
    "Mixture",
    "Postdata",
    "Prior",
    "Query",
    "RowGroups",
    "Setting",
    "Support",
    "around",
    "factor_support",
    "learn",
    "mean_support",
    "spread_support",
]
