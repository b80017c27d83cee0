"""The problem every model solves: observed pattern, objective, gradient, certificate."""

from sidelight.problem.certificate import Gap, duality_gap, lam_max
from sidelight.problem.factors import Factors
from sidelight.problem.objective import Gradient, Problem
from sidelight.problem.pattern import Pattern
from sidelight.problem.spectrum import Triplets, leading_triplets

__all__ = [
    "Factors",
    "Gap",
    "Gradient",
    "Pattern",
    "Problem",
    "Triplets",
    "duality_gap",
    "lam_max",
    "leading_triplets",
]
