"""The duality gap: how far a fit can be from the optimum, proved.

With ``alpha = w (y - psi)`` and ``S = G_M' [alpha] G_N``, every ``s`` in [0, 1] and every matrix T
with ``|s (S - T)|_op <= lam`` give the dual value

    D = s alpha'y - s^2 (sum alpha^2 / w + |T|_F^2 / h) / 2        (T = 0 when h = 0)

because the conjugate of the penalty is ``min |S - Z|_F^2 / 2h`` over ``|Z|_op <= lam``. T is the
part of S above ``lam`` inside the fit's own singular subspaces. What is left, ``S - T``, is a two
by two block operator whose norm follows from the norms of its blocks; only the block outside both
subspaces needs an iterative singular value, and its bound from above is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.problem.factors import Factors
from sidelight.problem.objective import Problem
from sidelight.problem.spectrum import Triplets, leading_triplets

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Inside:
    """What S is on and across the fit's own singular subspaces."""

    orthonormal: Factors
    core: Floats
    leak: float
    leak_t: float


@dataclass(frozen=True)
class Gap:
    """Primal and dual value of one fit, and the directions that would lower it.

    Directions up to ``lam (1 + slack)`` do not matter at the tolerance asked.
    """

    primal: float
    dual: float
    outside: Triplets
    slack: float

    @property
    def relative(self) -> float:
        """The gap relative to the objective; 0 for the zero problem."""
        gap = self.primal - self.dual
        return gap / abs(self.primal) if self.primal else max(gap, 0.0)


def duality_gap(
    problem: Problem,
    factors: Factors,
    s: Floats,
    lam: float,
    tol: float,
    rng: np.random.Generator,
) -> Gap:
    """Certify balanced factors with singular values ``s`` to a relative gap of about ``tol``."""
    residual = problem.residual(factors)
    primal = problem.value_balanced(residual, s, lam)
    inside = _inside(problem, factors, s, residual)
    slack = _slack(primal, s, inside, lam, tol)
    outside = leading_triplets(
        problem, -residual, inside.orthonormal, enough=lam * (1 + slack), tol=0.5 * slack, rng=rng
    )
    return Gap(primal, _dual(problem, residual, inside, outside.upper, lam), outside, slack)


def _slack(primal: float, s: Floats, inside: Inside, lam: float, tol: float) -> float:
    """Say how far above ``lam`` the rest of S may be, relative to it.

    An excess ``lam (1 + slack)`` costs ``slack * lam |B|_*`` of dual value; there is no use in
    knowing it better than what the fit itself still leaks between the blocks.
    """
    share = primal / max(lam * float(np.sum(s)), 1e-300)
    return max(0.2 * tol * min(max(share, 1.0), 100.0), 0.1 * (inside.leak + inside.leak_t) / lam)


def _inside(problem: Problem, factors: Factors, s: Floats, residual: Floats) -> Inside:
    unit = factors.scaled(1 / np.sqrt(s))
    if factors.rank == 0:
        return Inside(unit, np.zeros((0, 0)), 0.0, 0.0)
    forward = -problem.pattern.times(residual, unit.q)  # S V
    backward = -problem.pattern.times_t(residual, unit.p)  # S' U
    core = unit.p.T @ forward
    forward, backward = forward - unit.a @ core, backward - unit.b @ core.T
    p, q = problem.images(forward, backward)
    return Inside(unit, core, _norm(forward, p), _norm(backward, q))


def _norm(a: Floats, p: Floats) -> float:
    """Return the spectral norm of ``G' a`` given ``p = C a``."""
    gram = a.T @ p
    return float(np.sqrt(max(np.linalg.eigvalsh((gram + gram.T) / 2)[-1], 0.0)))


def _dual(problem: Problem, residual: Floats, inside: Inside, beyond: float, lam: float) -> float:
    kappa = np.linalg.svd(inside.core, compute_uv=False) if inside.core.size else np.zeros(1)
    above = np.maximum(kappa - lam, 0.0) if problem.h > 0 else np.zeros(1)
    kept = min(kappa[0], lam) if problem.h > 0 else kappa[0]
    norm = np.linalg.norm([[kept, inside.leak_t], [inside.leak, beyond]], 2)
    conjugate = float(np.sum(above**2)) / problem.h if problem.h > 0 else 0.0
    quadratic = 2 * problem.loss(residual) + conjugate
    linear = -float(residual @ problem.y)
    feasible = 1.0 if norm <= lam else lam / norm
    s = min(feasible, max(linear / quadratic, 0.0)) if quadratic > 0 else 0.0
    return float(s * linear - 0.5 * s * s * quadratic)


def lam_max(problem: Problem, rng: np.random.Generator, tol: float = 1e-10) -> float:
    """Return the smallest ``lam`` at which the mean is zero: the norm of S at zero."""
    nothing = Factors.empty(problem.shape)
    alpha = -problem.residual(nothing)
    found = leading_triplets(
        problem, alpha, nothing, enough=None, tol=tol, rng=rng
    )
    return float(found.values[0]) if len(found.values) else 0.0
