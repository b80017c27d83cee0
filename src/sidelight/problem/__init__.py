"""The problem every model solves: observed pattern, objective, gradient, certificate."""

from sidelight.problem.certificate import Gap, Mean, duality_gap, lam_max
from sidelight.problem.dualpoint import DualPoint
from sidelight.problem.factors import Factors
from sidelight.problem.gram import Product, Sampling, dense_product, gram_product
from sidelight.problem.objective import Gradient, Problem
from sidelight.problem.pattern import Pattern
from sidelight.problem.spectrum import Triplets, leading_triplets
from sidelight.problem.spread import spread_pairs, spread_rows
from sidelight.problem.subspace import Ritz, Subspace

__all__ = [
    "DualPoint",
    "Factors",
    "Gap",
    "Gradient",
    "Mean",
    "Pattern",
    "Problem",
    "Product",
    "Ritz",
    "Sampling",
    "Subspace",
    "Triplets",
    "dense_product",
    "duality_gap",
    "gram_product",
    "lam_max",
    "leading_triplets",
    "spread_pairs",
    "spread_rows",
]
