"""What a certificate claims, held against the problem written out as dense matrices."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidelight.covariance import Dense, Diffusion, Features, Identity
from sidelight.problem import DualPoint, Factors, Mean, Problem, duality_gap, lam_max
from sidelight.solvers import Limits, solve

EXACT = 1e-11  # relative gap of the dense optimum
ROUNDING = 1e-10


class World(NamedTuple):
    pairs: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    row_cov: object
    col_cov: object
    h: float
    w0: float = 0.0

    def problem(self):
        return Problem(*self)


class Truth:
    """The same problem on the whole matrix ``B``: roots from ``eigh``, every SVD dense."""

    def __init__(self, world):
        self.world = world
        self.rows, self.cols = world.pairs.T
        self.G, self.H = root(world.row_cov.dense()), root(world.col_cov.dense())
        self.w0 = np.full((len(self.G), len(self.H)), world.w0)
        self.w0[self.rows, self.cols] = 0.0

    def table(self, B):
        return self.G @ B @ self.H.T

    def psi(self, B):
        return self.table(B)[self.rows, self.cols]

    def adjoint(self, alpha, B=None):
        """Return S at ``alpha`` on the observed entries and ``-w0 psi(B)`` on the others."""
        table = np.zeros_like(self.w0) if B is None else -self.w0 * self.table(B)
        np.add.at(table, (self.rows, self.cols), alpha)
        return self.G.T @ table @ self.H

    def alpha(self, B):
        return self.world.weights * (self.world.y - self.psi(B))

    def objective(self, B, lam):
        loss = 0.5 * np.sum(self.world.weights * (self.world.y - self.psi(B)) ** 2)
        loss += 0.5 * np.sum(self.w0 * self.table(B) ** 2)
        return loss + 0.5 * self.world.h * np.sum(B**2) + lam * np.linalg.norm(B, "nuc")

    def dual(self, alpha, lam, B=None):
        """Return the dual value at ``alpha``, shrunk as far as it must be to have one."""
        values = np.linalg.svd(self.adjoint(alpha, B), compute_uv=False)
        s = 1.0 if self.world.h > 0 else min(1.0, lam / max(values[0], 1e-300))
        square = np.sum(alpha**2 / self.world.weights)
        square += 0 if B is None else np.sum(self.w0 * self.table(B) ** 2)
        linear = s * alpha @ self.world.y - s**2 * square / 2
        excess = np.maximum(s * values - lam, 0)
        return linear - (np.sum(excess**2) / (2 * self.world.h) if self.world.h > 0 else 0.0)

    def steepest(self):
        """Return the largest curvature of the loss."""
        B = np.random.default_rng(0).normal(size=(self.G.shape[1], self.H.shape[1]))
        for _ in range(300):
            B = B / np.linalg.norm(B)
            B = self.adjoint(self.world.weights * self.psi(B), -B)
        return 1.01 * np.linalg.norm(B)

    def optimum(self, lam):
        """Run the accelerated proximal gradient, restarted, to its own dual gap."""
        t = 1 / self.steepest()
        B = ahead = np.zeros((self.G.shape[1], self.H.shape[1]))
        pace = 1.0
        for step in range(100_000):
            if step % 20 == 0:
                value = self.objective(B, lam)
                if value - self.dual(self.alpha(B), lam, B) <= EXACT * value:
                    return value, B
            fresh = self.shrunk(ahead + t * self.adjoint(self.alpha(ahead), ahead), t, lam)
            if np.sum((ahead - fresh) * (fresh - B)) > 0:
                pace = 1.0
            after = (1 + np.sqrt(1 + 4 * pace**2)) / 2
            ahead, B, pace = fresh + (pace - 1) / after * (fresh - B), fresh, after
        raise AssertionError("the dense solver did not converge")

    def shrunk(self, B, t, lam):
        left, s, right = np.linalg.svd(B, full_matrices=False)
        return (left * (np.maximum(s - t * lam, 0) / (1 + t * self.world.h))) @ right


def root(C):
    values, vectors = np.linalg.eigh(C)
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def ring(size):
    graph = np.zeros((size, size))
    graph[np.arange(size - 2), np.arange(1, size - 1)] = 1.0  # the last node stays alone
    return graph + graph.T


def correlated(size, seed):
    X = np.random.default_rng(seed).normal(size=(size, size))
    return Dense(X @ X.T / size + 0.1 * np.eye(size))


def features(size, width, kernel="linear"):
    return Features(np.random.default_rng(size).normal(size=(size, width)) / width**0.5, kernel)


KINDS = {
    "identity 5 x 3": lambda: (Identity(5), Identity(3)),
    "identity 3 x 5": lambda: (Identity(3), Identity(5)),
    "identity 60 x 40": lambda: (Identity(60), Identity(40)),
    "identity 6 x 50": lambda: (Identity(6), Identity(50)),
    "diffusion 20 x 30": lambda: (Diffusion(ring(20)), Identity(30)),
    "dense 40 x 25": lambda: (correlated(40, 1), correlated(25, 2)),
    "features 30 x 12": lambda: (features(30, 4), Identity(12)),
    "features 12 x 30": lambda: (features(12, 20), features(30, 5)),
    "rbf 15 x 9": lambda: (features(15, 2, "rbf"), correlated(9, 3)),
    "sum 20 x 12": lambda: (Diffusion(ring(20)) + 0.5 * features(20, 3), 2.0 * Identity(12)),
}
FRACTIONS = (0.9, 0.5, 0.1, 0.01)
WEIGHTS = (0.0, 0.4)  # of the unobserved cells: some observed ones weigh less


def world(kind, h, w0=0.0, density=0.5):
    row_cov, col_cov = KINDS[kind]()
    rng = np.random.default_rng(len(kind))
    pairs = np.argwhere(rng.random((row_cov.size, col_cov.size)) < density)
    pairs = rng.permutation(np.vstack([pairs, pairs[:2]]))  # two pairs are seen twice
    signal = rng.normal(size=(row_cov.size, 2)) @ rng.normal(size=(2, col_cov.size))
    y = signal[tuple(pairs.T)] + 0.3 * rng.normal(size=len(pairs))
    return World(pairs, y, rng.uniform(0.3, 3.0, len(pairs)), row_cov, col_cov, h, w0)


@cache
def solved(kind, h, fraction, w0=0.0):
    truth = Truth(world(kind, h, w0))
    lam = fraction * np.linalg.norm(truth.adjoint(truth.alpha(0 * truth.adjoint(truth.world.y))), 2)
    return (truth, lam, *truth.optimum(lam))


cases = pytest.mark.parametrize(
    ("kind", "h", "fraction"), [(k, h, f) for k in KINDS for h in (0.0, 1.0) for f in FRACTIONS]
)


def coefficients(truth, factors):
    """Return the whole matrix ``B`` of some factors."""
    return (truth.G.T @ factors.a) @ (truth.H.T @ factors.b).T


@cases
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-9])
@pytest.mark.parametrize("w0", WEIGHTS)
def test_a_solution_is_as_good_as_its_certificate_says(kind, h, fraction, w0, tol):
    if w0 > 0 and h == 0:  # the gap is of first order in the rounding of the mean
        tol = max(tol, 1e-4)
    truth, lam, best, B = solved(kind, h, fraction, w0)
    solution = solve(truth.world.problem(), lam, Limits(tol), rng=np.random.default_rng(0))
    proof = solution.certificate

    reached = coefficients(truth, solution.factors)
    assert proof.objective == pytest.approx(truth.objective(reached, lam), rel=1e-9)
    assert proof.dual <= best * (1 + ROUNDING)
    assert best * (1 - ROUNDING) <= proof.objective
    assert proof.status == "certified"
    assert proof.relative_gap == pytest.approx(1 - proof.dual / proof.objective, abs=1e-12)
    assert proof.relative_gap <= tol
    assert proof.objective <= best * (1 + tol + ROUNDING)
    if h > 0:
        assert_bounded(truth, solution, B, best)
    else:
        assert proof.bound is None


def assert_bounded(truth, solution, B, best):
    """Hold every prediction, observed or not, against the bound; the truth itself has a gap."""
    psi, exact = solution.factors.p @ solution.factors.q.T, truth.G @ B @ truth.H.T
    scale = np.sqrt(np.outer(truth.world.row_cov.diagonal(), truth.world.col_cov.diagonal()))
    bound = solution.certificate.bound + np.sqrt(2 * EXACT * best)
    assert np.max(np.abs(psi - exact) - bound * scale) <= 0


@pytest.mark.parametrize("h", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("w0", WEIGHTS)
def test_alpha_proves_the_dual_value_on_dense_matrices(kind, h, w0):
    truth, lam, _, _ = solved(kind, h, 0.5, w0)
    problem, tol = truth.world.problem(), 1e-6 if w0 > 0 and h == 0 else 1e-9
    solution = solve(problem, lam, Limits(tol), rng=np.random.default_rng(0))
    alpha = np.empty(len(problem.y))
    alpha[problem.pattern.order] = solution.alpha

    B = coefficients(truth, solution.factors)
    assert truth.dual(alpha, lam, B) >= solution.certificate.objective * (1 - 2 * tol)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_leaves_zero_at_lam_max(kind):
    truth = Truth(world(kind, 1.0))
    problem = truth.world.problem()
    border = lam_max(problem, np.random.default_rng(0))
    start = truth.adjoint(truth.world.weights * truth.world.y)

    norm = np.linalg.norm(start, 2)
    assert norm * (1 - 1e-13) <= border <= norm * (1 + 1e-9)
    assert solve(problem, border).certificate.rank == 0
    assert solve(problem, border * (1 - 1e-3), Limits(1e-9)).certificate.rank > 0


BASES = ("empty", "random", "exact", "perturbed")


def basis_of(name, truth, alpha, rng, B=None):
    """Return orthonormal sides: none, any, or those of the leading singular vectors of S."""
    left, s, right = np.linalg.svd(truth.adjoint(alpha, B), full_matrices=False)
    count = {"empty": 0, "random": int(rng.integers(1, len(s) + 1))}.get(name)
    count = int(rng.integers(1, np.sum(s > 1e-9 * s[0]) + 1)) if count is None else count
    U, V = left[:, :count], right[:count].T
    noise = {"random": 1.0, "perturbed": 10.0 ** rng.uniform(-12, -1)}.get(name, 0.0)
    if name == "random":
        U, V = 0 * U, 0 * V
    U = np.linalg.qr(U + noise * rng.normal(size=U.shape))[0]
    V = np.linalg.qr(V + noise * rng.normal(size=V.shape))[0]
    row_cov, col_cov = truth.world.row_cov, truth.world.col_cov
    return Factors.make(dual(truth.G, U), dual(truth.H, V), row_cov, col_cov)


def dual(root, U):
    """Return ``a`` with ``root' a = U``."""
    return root @ np.linalg.solve(root.T @ root, U)


def dual_point(truth, problem, alpha, B):
    """Return the dual point with ``alpha`` on the entries and the mean ``B`` elsewhere."""
    a, b = dual(truth.G, B), dual(truth.H, np.eye(B.shape[1]))
    mean = Factors.make(a, b, truth.world.row_cov, truth.world.col_cov)
    return DualPoint(problem, alpha[problem.pattern.order], mean)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    h=st.sampled_from([0.0, 1.0]),
    fraction=st.sampled_from(FRACTIONS),
    basis=st.sampled_from(BASES),
    tol=st.sampled_from([1e-1, 1e-4, 1e-9]),
    scale=st.floats(0.1, 10),
    noise=st.sampled_from([0.0, 1e-6, 1e-2, 1.0]),
    seed=st.integers(0, 10_000),
    w0=st.sampled_from(WEIGHTS),
)
def test_no_dual_point_is_above_the_optimum(kind, h, fraction, basis, tol, scale, noise, seed, w0):
    truth, lam, best, B = solved(kind, h, fraction, w0)
    rng, problem = np.random.default_rng(seed), truth.world.problem()
    alpha = scale * truth.alpha(B)
    alpha = alpha + noise * np.max(np.abs(alpha)) * rng.normal(size=len(alpha))
    mean = Mean(problem.loss(problem.weights * problem.y), np.zeros(0))

    gap = duality_gap(
        problem, mean, dual_point(truth, problem, alpha, scale * B),
        basis_of(basis, truth, alpha, rng), lam, tol, rng,
    )  # fmt: skip

    assert gap.primal == pytest.approx(truth.objective(0 * B, lam), rel=1e-12)
    assert gap.dual <= best * (1 + ROUNDING)


@pytest.mark.parametrize("h", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("w0", WEIGHTS)
def test_the_optimum_proves_itself_on_its_own_singular_vectors(kind, h, w0):
    truth, lam, best, B = solved(kind, h, 0.5, w0)
    problem = truth.world.problem()
    rng, alpha = np.random.default_rng(0), truth.alpha(B)
    s = np.linalg.svd(B, compute_uv=False)
    mean = Mean(truth.objective(B, 0.0) - 0.5 * h * np.sum(s**2), s)

    gap = duality_gap(
        problem, mean, dual_point(truth, problem, alpha, B),
        basis_of("exact", truth, alpha, rng, B), lam, 1e-9, rng,
    )  # fmt: skip

    assert gap.primal == pytest.approx(best, rel=1e-10)
    assert gap.relative <= 2e-9


@pytest.mark.parametrize(("size", "outlier", "lam"), [(2_000, 1.05, 1.03), (60_000, 1.3, 1.05)])
def test_one_entry_above_a_flat_bulk_is_not_overlooked(size, outlier, lam):
    """Every singular value is 1 but one: a residual alone cannot see the one."""
    y = np.ones(size)
    y[size // 3] = outlier
    pairs = np.column_stack([np.arange(size), np.arange(size)])
    problem = Problem(pairs, y, np.ones(size), Identity(size), Identity(size), h=1.0)

    solution = solve(problem, lam, rng=np.random.default_rng(0))

    missed = np.sum(solution.factors.p[size // 3] * solution.factors.q[size // 3])
    assert abs(missed - (outlier - lam) / 2) <= solution.certificate.bound * (1 + 1e-9)


def test_a_hidden_entry_that_carries_the_objective_is_not_certified_away():
    size, lam = 60_000, 1.05
    y, weights = np.full(size, 1e-6), np.full(size, 1e6)
    y[5], weights[5] = 1.3, 1.0
    pairs = np.column_stack([np.arange(size), np.arange(size)])
    problem = Problem(pairs, y, weights, Identity(size), Identity(size), h=1.0)
    best = 0.5 * np.sum(weights * y**2) - (1.3 - lam) ** 2 / 4

    proof = solve(problem, lam, rng=np.random.default_rng(0)).certificate

    assert proof.dual <= best * (1 + ROUNDING)
