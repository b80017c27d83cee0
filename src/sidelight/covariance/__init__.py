"""Covariances: operators on one axis."""

from sidelight.covariance.axis import Axis
from sidelight.covariance.base import Carried, Covariance, Cross, Operator
from sidelight.covariance.dense import Dense
from sidelight.covariance.diffusion import Diffusion
from sidelight.covariance.features import Features
from sidelight.covariance.identity import Identity
from sidelight.covariance.shared import SharedEntries
from sidelight.covariance.sums import Sum, covariance_from_state
from sidelight.covariance.walk import RandomWalk

__all__ = [
    "Axis",
    "Carried",
    "Covariance",
    "Cross",
    "Dense",
    "Diffusion",
    "Features",
    "Identity",
    "Operator",
    "RandomWalk",
    "SharedEntries",
    "Sum",
    "covariance_from_state",
]
