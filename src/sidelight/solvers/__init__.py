"""Solvers: a problem in, a solution with its proof out."""

from sidelight.solvers.adaptive import Limits, solve
from sidelight.solvers.solution import Certificate, LinearSolution, Progress, Solution

__all__ = ["Certificate", "Limits", "LinearSolution", "Progress", "Solution", "solve"]
