"""The solver of the whole problem: limits, starts, interruptions, symmetries, edges."""

import os
from pathlib import Path

import numpy as np
import pytest

from sidelight.covariance import Dense, Features, Identity
from sidelight.problem import Problem, lam_max
from sidelight.solvers import Limits, solve

SHAPE = (20, 12)
TIGHT = Limits(1e-9)


def covariance(size):
    X = np.random.default_rng(size).normal(size=(size, size))
    return X @ X.T / size + 0.1 * np.eye(size)


def data(seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(rng.random(SHAPE) < 0.5)
    return pairs, rng.normal(size=len(pairs)), rng.uniform(0.5, 2, len(pairs))


def posed(h, pairs, y, weights, rows=None, cols=None):
    rows = covariance(SHAPE[0]) if rows is None else rows
    cols = covariance(SHAPE[1]) if cols is None else cols
    return Problem(pairs, y, weights, Dense(rows), Dense(cols), h)


def fraction_of_lam_max(problem, fraction):
    return fraction * lam_max(problem, np.random.default_rng(0))


def run(problem, lam, limits=TIGHT, **options):
    try:
        return solve(problem, lam, limits, rng=np.random.default_rng(0), **options)
    except KeyboardInterrupt:  # would end the whole test run
        pytest.fail("KeyboardInterrupt left the solver")


def psi(solution):
    return solution.factors.p @ solution.factors.q.T


def same(made, truth, rel=2e-4):
    """A gap of 1e-9 leaves the square root of it to the mean."""
    np.testing.assert_allclose(made, truth, rtol=0, atol=rel * np.abs(truth).max())


both = pytest.mark.parametrize("h", [0.0, 1.0])


@both
@pytest.mark.parametrize("most", [1, 2, 3])
def test_max_rank_gives_a_stationary_mean_of_that_rank(h, most):
    problem = posed(h, *data())
    lam = fraction_of_lam_max(problem, 0.2)
    free, cut = run(problem, lam), run(problem, lam, Limits(1e-4, most))

    assert free.certificate.rank > most
    assert cut.certificate.status == "stopped"
    assert "max_rank" in cut.certificate.reason
    assert cut.certificate.rank == cut.factors.rank <= most
    assert cut.certificate.objective <= problem.value(free.factors.leading(most), lam)
    assert cut.certificate.dual <= free.certificate.objective <= cut.certificate.objective
    assert slope(problem, cut.factors, lam) <= 1e-5 * slope(problem, cut.factors.scaled(0.9), lam)


def slope(problem, factors, lam):
    gradient = problem.gradient(factors, lam)
    a, b = problem.images(gradient.a, gradient.b)
    return float(np.sqrt(np.vdot(gradient.a, a) + np.vdot(gradient.b, b)))


@both
def test_max_rank_that_is_not_reached_changes_nothing(h):
    problem = posed(h, *data())
    lam = fraction_of_lam_max(problem, 0.5)
    free = run(problem, lam)
    held = run(problem, lam, Limits(1e-9, free.certificate.rank))
    assert held.certificate.status == "certified"
    assert held.certificate.objective == pytest.approx(free.certificate.objective, rel=2e-9)


@both
def test_a_warm_start_reaches_the_same_objective(h):
    problem = posed(h, *data())
    lam = fraction_of_lam_max(problem, 0.2)
    cold = run(problem, lam)
    for fraction in (0.6, 0.2, 0.05):
        start = run(problem, fraction_of_lam_max(problem, fraction))
        warm = run(problem, lam, start=start)
        assert warm.certificate.status == "certified"
        assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-9)


@both
def test_a_start_of_limited_rank_will_do(h):
    problem = posed(h, *data())
    lam = fraction_of_lam_max(problem, 0.2)
    start = run(problem, lam, Limits(1e-4, 1))
    warm = run(problem, lam, start=start).certificate
    assert warm.objective == pytest.approx(run(problem, lam).certificate.objective, rel=2e-9)


@both
@pytest.mark.parametrize("repeat", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("line", [1, 2, 5])
def test_a_watch_can_stop_the_run(h, line, repeat):
    problem = posed(h, *data())
    lam, seen = fraction_of_lam_max(problem, 0.2), []

    def watch(progress):
        seen.append(progress)
        if len(seen) == line or (repeat and len(seen) > line):
            raise KeyboardInterrupt

    proof = run(problem, lam, watch=watch).certificate
    best = run(problem, lam).certificate
    assert (proof.status, proof.reason) == ("stopped", "interrupted")
    assert proof.dual <= best.objective
    assert best.dual <= proof.objective


class Interrupted(Dense):
    """A covariance during one of whose products the user presses Ctrl-C."""

    left = 10**9

    def apply(self, X):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().apply(X)


@both
@pytest.mark.parametrize("product", range(1, 60, 2))
def test_ctrl_c_may_come_at_any_moment(h, product):
    pairs, y, weights = data()
    row_cov, col_cov = Interrupted(covariance(SHAPE[0])), Dense(covariance(SHAPE[1]))
    problem = Problem(pairs, y, weights, row_cov, col_cov, h)
    lam = fraction_of_lam_max(problem, 0.2)
    free = run(problem, lam).certificate
    row_cov.left = product
    solution = run(problem, lam)

    assert solution.certificate.reason == ("interrupted" if row_cov.left <= 0 else free.reason)
    assert solution.certificate.dual <= free.objective * (1 + 1e-10)
    assert solution.certificate.dual <= solution.certificate.objective
    assert solution.factors.rank == len(solution.singular_values) == solution.certificate.rank


@both
def test_the_trace_ends_with_the_certificate(h):
    lines = []
    problem = posed(h, *data())
    proof = run(problem, fraction_of_lam_max(problem, 0.2), watch=lines.append).certificate
    last = proof.trace[-1]
    assert proof.trace == tuple(lines)
    assert (last.rank, last.objective) == (proof.rank, proof.objective)
    assert last.relative_gap == proof.relative_gap


@both
def test_solution_is_balanced(h):
    problem = posed(h, *data())
    solution = run(problem, fraction_of_lam_max(problem, 0.2))
    s = solution.singular_values
    assert np.all(np.diff(s) <= 0)
    for gram in solution.factors.grams():
        np.testing.assert_allclose(gram, np.diag(s), atol=1e-10 * s[0])


@both
def test_values_that_are_all_zero_have_the_zero_mean(h):
    pairs, y, weights = data()
    proof = run(posed(h, pairs, 0 * y, weights), 0.3).certificate
    assert (proof.status, proof.rank, proof.objective, proof.relative_gap) == ("certified", 0, 0, 0)


@both
def test_one_observation_has_the_closed_form(h):
    """One cell: minimise ``w (y - b)^2 / 2 + h b^2 / 2 + lam b`` by hand."""
    problem = Problem(np.array([[3, 1]]), np.array([2.0]), np.array([4.0]), Identity(5),
                      Identity(3), h)  # fmt: skip
    solution = run(problem, 0.5)
    truth = np.zeros((5, 3))
    truth[3, 1] = (4.0 * 2.0 - 0.5) / (4.0 + h)
    same(psi(solution), truth, rel=1e-4)


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1)])
@both
def test_a_table_of_one_row_or_column_is_a_soft_threshold(h, shape):
    pairs = np.argwhere(np.ones(shape))
    y = np.random.default_rng(0).normal(size=len(pairs))
    problem = Problem(pairs, y, np.ones(len(pairs)), *map(Identity, shape), h)
    norm = np.linalg.norm(y)
    truth = y.reshape(shape) * (1 - 0.4) / (1 + h)
    same(psi(run(problem, 0.4 * norm)), truth)


@both
def test_no_observation_is_the_zero_mean(h):
    nothing = np.zeros(0)
    problem = Problem(np.zeros((0, 2), int), nothing, nothing, Identity(5), Identity(3), h)
    assert run(problem, 0.3).certificate.objective == 0


@both
def test_a_covariance_of_zero_has_the_zero_mean(h):
    pairs, y, weights = data()
    zero = Features(np.zeros((SHAPE[0], 2)))
    proof = run(Problem(pairs, y, weights, zero, Identity(SHAPE[1]), h), 0.3).certificate
    assert (proof.status, proof.rank) == ("certified", 0)


@both
@pytest.mark.parametrize("weight", [1e4, 1e-4])
def test_noise_may_be_tiny_or_huge(h, weight):
    pairs, y, _ = data()
    problem = posed(h, pairs, y, np.full(len(y), weight))
    proof = run(problem, fraction_of_lam_max(problem, 0.2), Limits(1e-6)).certificate
    assert proof.status == "certified"
    assert proof.relative_gap <= 1e-6


@both
def test_the_transposed_problem_has_the_transposed_mean(h):
    pairs, y, weights = data()
    rows, cols = covariance(SHAPE[0]), covariance(SHAPE[1])
    straight, turned = posed(h, pairs, y, weights), posed(h, pairs[:, ::-1], y, weights, cols, rows)
    lam = fraction_of_lam_max(straight, 0.2)
    same(psi(run(turned, lam)), psi(run(straight, lam)).T)


@both
def test_permuted_rows_have_the_permuted_mean(h):
    pairs, y, weights = data()
    rows, order = covariance(SHAPE[0]), np.random.default_rng(3).permutation(SHAPE[0])
    moved = np.column_stack([np.argsort(order)[pairs[:, 0]], pairs[:, 1]])
    straight = posed(h, pairs, y, weights)
    permuted = posed(h, moved, y, weights, rows[np.ix_(order, order)])
    lam = fraction_of_lam_max(straight, 0.2)
    same(psi(run(permuted, lam)), psi(run(straight, lam))[order])


@both
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scaled_values_have_the_scaled_mean_at_the_scaled_lam(h, scale):
    pairs, y, weights = data()
    lam = fraction_of_lam_max(posed(h, pairs, y, weights), 0.2)
    plain = run(posed(h, pairs, y, weights), lam)
    scaled = run(posed(h, pairs, scale * y, weights), scale * lam)
    same(psi(scaled), scale * psi(plain))
    assert scaled.certificate.objective == pytest.approx(
        scale**2 * plain.certificate.objective, rel=2e-9
    )


@pytest.mark.skipif("SIDELIGHT_DATA" not in os.environ, reason="SIDELIGHT_DATA is not set")
def test_epinions_is_certified():
    path = Path(os.environ["SIDELIGHT_DATA"]) / "epinions" / "entries.tsv"
    if not path.exists():
        pytest.skip("SIDELIGHT_DATA holds no epinions")
    entries = np.loadtxt(path, skiprows=1)
    pairs = entries[:, :2].astype(int)
    row_cov, col_cov = (Identity(size) for size in pairs.max(axis=0) + 1)
    y = entries[:, 2] - entries[:, 2].mean()
    problem = Problem(pairs, y, np.full(len(y), 100.0), row_cov, col_cov, 1.0)
    proof = run(problem, 20 / 0.01, Limits(1e-4)).certificate
    assert proof.status == "certified"
    assert 0 <= proof.relative_gap <= 1e-4
