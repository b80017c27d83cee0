"""The names of the models on the command line and in tables."""

from __future__ import annotations

from sidelight.models.base import PairModel
from sidelight.models.baselines import Bias, Popularity, Propagation
from sidelight.models.kpmf import KPMF, PMF
from sidelight.models.linear import MVGP
from sidelight.models.prodige import ProDiGe
from sidelight.models.spectral import ConstrainedMVGP, TraceGP

BY_NAME: dict[str, type[PairModel]] = {
    "constrained": ConstrainedMVGP,
    "trace": TraceGP,
    "mvgp": MVGP,
    "kpmf": KPMF,
    "pmf": PMF,
    "prodige": ProDiGe,
    "popularity": Popularity,
    "bias": Bias,
    "propagation": Propagation,
}
