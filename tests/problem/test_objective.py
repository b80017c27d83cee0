"""The objective and its gradient, beside dense formulas; factors beside the matrices they hold."""

import numpy as np
import pytest

from sidelight.covariance import Dense, Features
from sidelight.problem import Factors, Problem

LAM = 0.7
PAIRS = np.array([(3, 2), (0, 0), (4, 1), (0, 2), (2, 0), (3, 2)])


def parts(h, rank=2):
    """Return a problem on a 5 x 3 table, factors, and the roots of the covariances."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 4)), rng.normal(size=(3, 2))
    row_cov, col_cov = Dense(X @ X.T), Features(Z)
    y, weights = rng.normal(size=len(PAIRS)), rng.uniform(0.5, 2, len(PAIRS))
    problem = Problem(PAIRS, y, weights, row_cov, col_cov, h)
    a, b = rng.normal(size=(5, rank)), rng.normal(size=(3, rank))
    return problem, Factors.make(a, b, row_cov, col_cov), X, Z, y, weights


def dense_value(U, V, X, Z, y, weights, h):
    psi = (X @ U @ V.T @ Z.T)[tuple(PAIRS.T)]
    penalty = 0.5 * h * np.sum((U @ V.T) ** 2) + 0.5 * LAM * (np.sum(U**2) + np.sum(V**2))
    return 0.5 * np.sum(weights * (psi - y) ** 2) + penalty


both = pytest.mark.parametrize("h", [0.0, 1.0])


@both
def test_value_is_the_dense_formula(h):
    problem, factors, X, Z, y, weights = parts(h)
    truth = dense_value(X.T @ factors.a, Z.T @ factors.b, X, Z, y, weights, h)
    assert problem.value(factors, LAM) == pytest.approx(truth, rel=1e-13)
    assert problem.gradient(factors, LAM).value == pytest.approx(truth, rel=1e-13)


@both
def test_gradient_is_the_slope_of_the_value(h):
    problem, factors, X, Z, y, weights = parts(h)
    gradient, step = problem.gradient(factors, LAM), 1e-5
    rng = np.random.default_rng(1)
    U, V = X.T @ factors.a, Z.T @ factors.b
    dU, dV = rng.normal(size=U.shape), rng.normal(size=V.shape)
    up, down = (dense_value(U + t * dU, V + t * dV, X, Z, y, weights, h) for t in (step, -step))
    slope = np.sum(dU * (X.T @ gradient.a)) + np.sum(dV * (Z.T @ gradient.b))
    assert slope == pytest.approx((up - down) / (2 * step), rel=1e-7)


@both
def test_gradient_is_the_dense_formula(h):
    problem, factors, X, Z, y, weights = parts(h)
    gradient = problem.gradient(factors, LAM)
    U, V = X.T @ factors.a, Z.T @ factors.b
    E = np.zeros((5, 3))
    np.add.at(E, tuple(PAIRS.T), weights * ((X @ U @ V.T @ Z.T)[tuple(PAIRS.T)] - y))
    dU = X.T @ E @ Z @ V + LAM * U + h * U @ V.T @ V
    dV = Z.T @ E.T @ X @ U + LAM * V + h * V @ U.T @ U
    np.testing.assert_allclose(X.T @ gradient.a, dU, atol=1e-12 * np.abs(dU).max())
    np.testing.assert_allclose(Z.T @ gradient.b, dV, atol=1e-12 * np.abs(dV).max())


@both
def test_balanced_keeps_the_matrix_and_evens_the_sides(h):
    problem, factors, X, Z, *_ = parts(h)
    balanced, s = factors.balanced()
    B = (X.T @ factors.a) @ (Z.T @ factors.b).T
    np.testing.assert_allclose(s, np.linalg.svd(B, compute_uv=False)[:2], rtol=1e-12)
    np.testing.assert_allclose((X.T @ balanced.a) @ (Z.T @ balanced.b).T, B, atol=1e-12 * s[0])
    for gram in balanced.grams():
        np.testing.assert_allclose(gram, np.diag(s), atol=1e-12 * s[0])
    assert problem.value(balanced, LAM) <= problem.value(factors, LAM)


def test_balanced_drops_what_the_matrix_does_not_need():
    _, factors, *_ = parts(1.0)
    doubled = (np.hstack([x, 2 * x]) for x in (factors.a, factors.p, factors.b, factors.q))
    twice = Factors(*doubled)
    balanced, s = twice.balanced(drop=1e-10)
    assert balanced.rank == len(s) == 2
    psi, scale = twice.p @ twice.q.T, np.abs(twice.p @ twice.q.T).max()
    np.testing.assert_allclose(balanced.p @ balanced.q.T, psi, atol=1e-9 * scale)


@both
def test_rank_zero_has_the_value_of_no_mean(h):
    problem, *_, y, weights = parts(h)
    empty = Factors.empty((5, 3))
    assert problem.value(empty, LAM) == pytest.approx(0.5 * np.sum(weights * y**2), rel=1e-14)


class TestEveryUnobservedCell:
    """``w0`` beside the same problem with every cell of the table written out as an entry."""

    W0 = 0.3

    def problems(self, h):
        """Return the whole-matrix problem, its dense twin, and where the entries are in it."""
        _, factors, X, Z, y, weights = parts(h)
        covs = Dense(X @ X.T), Features(Z)
        unknown = [(m, n) for m in range(5) for n in range(3) if (m, n) not in map(tuple, PAIRS)]
        short = Problem(PAIRS, y, weights, *covs, h, w0=self.W0)
        zeros, light = np.zeros(len(unknown)), np.full(len(unknown), self.W0)
        pairs, y, weights = np.vstack([PAIRS, unknown]), np.r_[y, zeros], np.r_[weights, light]
        return short, Problem(pairs, y, weights, *covs, h), factors

    @both
    def test_value_and_gradient(self, h):
        short, long, factors = self.problems(h)
        mine, theirs = short.gradient(factors, LAM), long.gradient(factors, LAM)
        assert mine.value == pytest.approx(theirs.value, rel=1e-12)
        assert short.value(factors, LAM) == pytest.approx(theirs.value, rel=1e-12)
        np.testing.assert_allclose(mine.a, theirs.a, rtol=1e-10)
        np.testing.assert_allclose(mine.b, theirs.b, rtol=1e-10)

    def test_curvature(self):
        short, long, factors = self.problems(1.0)
        rng = np.random.default_rng(2)
        a, b = rng.normal(size=factors.a.shape), rng.normal(size=factors.b.shape)
        step = Factors.make(a, b, short.row_cov, short.col_cov)
        found = [p.bend(factors, p.gradient(factors, LAM).slope, step) for p in (short, long)]
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)

    def test_dual_point(self):
        short, long, factors = self.problems(1.0)
        mine, theirs = (p.dual_point(p.residual(factors), factors) for p in (short, long))
        rng = np.random.default_rng(3)
        Q, P = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
        np.testing.assert_allclose(mine.times(Q), theirs.times(Q), rtol=1e-10)
        np.testing.assert_allclose(mine.times_t(P), theirs.times_t(P), rtol=1e-10)
        assert mine.linear == pytest.approx(theirs.linear, rel=1e-12)
        assert mine.square == pytest.approx(theirs.square, rel=1e-12)
