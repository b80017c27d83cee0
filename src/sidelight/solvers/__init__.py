"""Solvers: a problem in, a solution with its proof out."""

from sidelight.solvers.biases import Biases, Side, fit_biases
from sidelight.solvers.fixed import solve_fixed
from sidelight.solvers.linear import solve_linear
from sidelight.solvers.path import grid, path
from sidelight.solvers.refit import Refit, refit
from sidelight.solvers.search import Limits
from sidelight.solvers.solution import Certificate, LinearSolution, Progress, Solution, Watch
from sidelight.solvers.spectral import solve
from sidelight.solvers.svm import Machine, solve_svm

__all__ = [
    "Biases",
    "Certificate",
    "Limits",
    "LinearSolution",
    "Machine",
    "Progress",
    "Refit",
    "Side",
    "Solution",
    "Watch",
    "fit_biases",
    "grid",
    "path",
    "refit",
    "solve",
    "solve_fixed",
    "solve_linear",
    "solve_svm",
]
