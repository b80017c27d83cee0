"""The duality gap: how far a fit can be from the optimum, proved.

For any ``alpha`` on the entries let ``S = G_M' [alpha] G_N``. Every ``s`` in [0, 1] and
every matrix T with ``s |S - T|_op <= lam`` give the dual value

    D = s alpha'y - s^2 (sum alpha^2 / w + |T|_F^2 / h) / 2        (T = 0 when h = 0)

where an unobserved cell has y = 0 and w = w0 (and no alpha when w0 = 0),
because the conjugate of the penalty is the least ``|S - Z|_F^2 / 2h`` over ``|Z|_op <= lam``.

T lives on a pair of subspaces that nearly hold the leading singular vectors of S, where S is the
small matrix K. S leaks ``E`` from the right subspace out of the left one, with Gram matrix
``Gamma = E'E``, next to nothing the other way, and has norm ``mu`` outside both. Then

    |S - T|_op <= nu    whenever    (K - T)'(K - T) + nu^2 / (nu^2 - mu^2) Gamma <= nu^2 I

so a leak costs its square, and only in proportion to the part of the mean it touches: the tail of
the spectrum, which no iteration finds exactly, hardly weakens the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sidelight.problem.dualpoint import DualPoint
from sidelight.problem.factors import Factors, symmetric
from sidelight.problem.objective import Problem
from sidelight.problem.spectrum import Triplets, leading_triplets

Floats = NDArray[np.float64]

_CHUNK = 128  # columns looked at together: bounds the memory of a certificate


@dataclass(frozen=True)
class Inside:
    """S on a pair of subspaces: the matrix K, the leak's Gram matrix, the leak the other way."""

    core: Floats
    gamma: Floats
    back: float

    @property
    def norm(self) -> float:
        """Return the norm of K."""
        return float(np.linalg.norm(self.core, 2)) if self.core.size else 0.0


@dataclass(frozen=True)
class Mean:
    """What the objective needs to know of a mean: its loss and the singular values of ``B``."""

    loss: float
    s: Floats

    def value(self, h: float, lam: float) -> float:
        """Return ``F(B)``."""
        return self.loss + float(0.5 * h * np.sum(self.s**2) + lam * np.sum(self.s))


@dataclass(frozen=True)
class Gap:
    """Primal and dual value of one fit, and the directions that would lower it."""

    primal: float
    dual: float
    outside: Triplets

    @property
    def relative(self) -> float:
        """The gap relative to the objective; 0 for the zero problem."""
        gap = max(self.primal - self.dual, 0.0)
        return gap / self.primal if self.primal > 0 else gap


def duality_gap(
    problem: Problem,
    mean: Mean,
    alpha: DualPoint,
    basis: Factors,
    lam: float,
    tol: float,
    rng: np.random.Generator,
) -> Gap:
    """Bound the gap of a mean by the dual at ``alpha``.

    ``basis`` has orthonormal sides near the leading singular vectors of S; any will do, a good
    one gives a tight bound.
    """
    primal = mean.value(problem.h, lam)
    inside = _inside(problem, alpha, basis)
    slack = _slack(primal, lam * float(np.sum(mean.s)), tol)
    outside = leading_triplets(
        problem, alpha, basis,
        norm=inside.norm, enough=lam * (1 + slack), tol=0.5 * slack, rng=rng,
    )  # fmt: skip
    dual = _dual(problem.h, alpha, inside, outside.upper, lam)
    return Gap(primal, dual, outside)


def _slack(primal: float, nuclear: float, tol: float) -> float:
    """Say how far above ``lam`` the rest of S may be, relative to it.

    An excess ``lam (1 + slack)`` costs ``slack * lam |B|_*`` of dual value.
    """
    return 0.2 * tol * min(max(primal / max(nuclear, 1e-300), 1.0), 100.0)


def _inside(problem: Problem, alpha: DualPoint, basis: Factors) -> Inside:
    """Measure S on the subspaces, a few columns at a time."""
    forward = np.empty_like(basis.a)
    core, gamma = np.empty((basis.rank, basis.rank)), np.empty((basis.rank, basis.rank))
    for at in _chunks(basis.rank):
        forward[:, at] = alpha.times(basis.q[:, at])
        core[:, at] = basis.p.T @ forward[:, at]
        forward[:, at] -= basis.a @ core[:, at]
    back = 0.0
    for at in _chunks(basis.rank):
        gamma[:, at] = forward.T @ problem.row_cov.apply(forward[:, at])
        backward = alpha.times_t(basis.p[:, at])
        backward -= basis.b @ core[at].T
        back += float(np.sum(backward * problem.col_cov.apply(backward)))
    return Inside(core, symmetric(gamma), float(np.sqrt(max(back, 0.0))))


def _chunks(count: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, count, _CHUNK)]


def _dual(h: float, alpha: DualPoint, inside: Inside, mu: float, lam: float) -> float:
    if h > 0:
        norm, removed = _removed(inside, mu, lam)
    else:
        norm, removed = _norm(inside, mu), 0.0
    norm += inside.back
    linear = alpha.linear
    quadratic = alpha.square + (removed / h if h > 0 else 0.0)
    feasible = 1.0 if norm <= lam else lam / norm
    s = min(feasible, max(linear / quadratic, 0.0)) if quadratic > 0 else 0.0
    return s * linear - 0.5 * s * s * quadratic


def _removed(inside: Inside, mu: float, lam: float) -> tuple[float, float]:
    """Choose T; return the norm of what it leaves, ``lam`` if it can be had, and ``|T|_F^2``."""
    if not inside.core.size:
        return max(lam, mu), 0.0
    values, vectors = np.linalg.eigh(inside.gamma)
    values = np.maximum(values, 0.0)
    nu = max(lam, float(np.sqrt(mu**2 + 1.25 * values[-1])), _above(mu))
    room = nu**2 - _worth(nu, mu, float(values[-1])) * values
    root = (vectors * np.sqrt(room)) @ vectors.T
    inverse = (vectors / np.sqrt(room)) @ vectors.T
    left, ratio, right_t = np.linalg.svd(inside.core @ inverse)
    excess = (left * np.maximum(ratio - 1, 0.0)) @ right_t @ root
    return nu, float(np.sum(excess**2))


def _worth(nu: float, mu: float, leak: float) -> float:
    """Return ``nu^2 / (nu^2 - mu^2)``, by which a leak counts; no leak counts for nothing."""
    return nu**2 / (nu**2 - mu**2) if leak > 0 else 0.0


def _above(mu: float) -> float:
    """Return the least ``nu`` worth trying: rounding must not close the room above ``mu``."""
    return mu * (1 + 1e-12)


def _norm(inside: Inside, mu: float) -> float:
    """Return the least ``nu`` that bounds S itself."""
    if not inside.core.size:
        return mu
    square = inside.core.T @ inside.core
    leak = max(float(np.linalg.eigvalsh(inside.gamma)[-1]), 0.0)
    low = max(inside.norm, _above(mu))
    high = low + float(np.sqrt(leak))
    for _ in range(30):
        nu = (low + high) / 2
        top = np.linalg.eigvalsh(square + _worth(nu, mu, leak) * inside.gamma)[-1]
        low, high = (low, nu) if top <= nu**2 else (nu, high)
    return high


def lam_max(problem: Problem, rng: np.random.Generator, tol: float = 1e-10) -> float:
    """Return the smallest ``lam`` at which the mean is zero: the norm of S at zero.

    It is known to ``tol`` and returned from above, where the mean is zero for certain.
    """
    nothing = Factors.empty(problem.shape)
    alpha = DualPoint(problem, problem.weights * problem.y)
    found = leading_triplets(problem, alpha, nothing, enough=None, tol=tol, rng=rng)
    return float(found.values[0]) * (1 + tol) if len(found.values) else 0.0
