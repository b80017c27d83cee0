"""Models: scikit-learn estimators over pairs (row, column)."""

from sidelight.models.assemble import covariances
from sidelight.models.bagged import Bagged
from sidelight.models.base import PairModel
from sidelight.models.baselines import Bias, Popularity, Propagation
from sidelight.models.explanation import Carrier, Carriers, Explanation, Item, Reason
from sidelight.models.kpmf import KPMF, PMF
from sidelight.models.linear import MVGP
from sidelight.models.names import BY_NAME
from sidelight.models.prodige import ProDiGe, row_kernel
from sidelight.models.ranking import Ranking
from sidelight.models.spectral import ConstrainedMVGP, TraceGP, regularization_path
from sidelight.models.storage import load

__all__ = [
    "BY_NAME",
    "KPMF",
    "MVGP",
    "PMF",
    "Bagged",
    "Bias",
    "Carrier",
    "Carriers",
    "ConstrainedMVGP",
    "Explanation",
    "Item",
    "PairModel",
    "Popularity",
    "ProDiGe",
    "Propagation",
    "Ranking",
    "Reason",
    "TraceGP",
    "covariances",
    "load",
    "regularization_path",
    "row_kernel",
]
