"""Solvers: a problem in, a solution with its proof out."""

from sidelight.solvers.linear import solve_linear
from sidelight.solvers.path import grid, path
from sidelight.solvers.search import Limits
from sidelight.solvers.solution import Certificate, LinearSolution, Progress, Solution, Watch
from sidelight.solvers.spectral import solve

__all__ = [
    "Certificate",
    "Limits",
    "LinearSolution",
    "Progress",
    "Solution",
    "Watch",
    "grid",
    "path",
    "solve",
    "solve_linear",
]
