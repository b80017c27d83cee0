"""Singular values found by products alone, beside a dense decomposition."""

import numpy as np
import pytest

from sidelight.covariance import Identity
from sidelight.problem import DualPoint, Factors, Problem, leading_triplets


def rotated(values, shape, seed=0):
    """Return a matrix with these singular values."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(shape[0], len(values))))[0]
    right = np.linalg.qr(rng.normal(size=(shape[1], len(values))))[0]
    return (left * values) @ right.T


def heavy_row():
    table = np.random.default_rng(0).normal(size=(80, 50)) / 10
    table[7] = 1.0
    return table


SPECTRA = {
    "1 x 40": lambda: np.random.default_rng(0).normal(size=(1, 40)),
    "40 x 1": lambda: np.random.default_rng(0).normal(size=(40, 1)),
    "3 x 5": lambda: np.random.default_rng(0).normal(size=(3, 5)),
    "6 x 100": lambda: np.random.default_rng(0).normal(size=(6, 100)),
    "100 x 6": lambda: np.random.default_rng(0).normal(size=(100, 6)),
    "40 x 60": lambda: np.random.default_rng(0).normal(size=(40, 60)),
    "clustered top": lambda: rotated(np.r_[2 - 1e-9 * np.arange(12), np.ones(20)], (60, 45)),
    "flat": lambda: rotated(np.ones(45), (60, 45)),
    "outlier in a bulk": lambda: rotated(np.r_[1.05, np.ones(44)], (60, 45)),
    "slow decay": lambda: rotated(np.linspace(1, 0.9, 50), (50, 70)),
    "rank 2": lambda: rotated(np.array([3.0, 1e-3]), (30, 20)),
    "heavy row": heavy_row,
    "zero": lambda: np.zeros((5, 3)),
}
tables = pytest.mark.parametrize("table", SPECTRA.values(), ids=SPECTRA)


def start(problem):
    return DualPoint(problem, problem.y)


def whole(table):
    pairs = np.argwhere(np.ones(table.shape))
    row_cov, col_cov = (Identity(size) for size in table.shape)
    return Problem(pairs, table.ravel(), np.ones(table.size), row_cov, col_cov)


def leading(table, count):
    left, _, right = np.linalg.svd(table)
    U, V = left[:, :count], right[:count].T
    return Factors(U, U, V, V)


@tables
@pytest.mark.parametrize("part", [0, 0.5, 0.9])
def test_the_largest_value_is_the_dense_one(table, part):
    table = table()
    problem, deflated = whole(table), leading(table, int(part * min(table.shape)))
    rest = np.linalg.svd(table, compute_uv=False)[deflated.rank :]

    found = leading_triplets(
        problem,
        start(problem),
        deflated,
        enough=None,
        tol=1e-10,
        rng=np.random.default_rng(0),
    )

    rounding = 1e-12 * np.linalg.norm(table)
    assert found.upper >= rest[0] - rounding
    assert found.upper <= 1.05 * rest[0] + 1e-9 * np.linalg.norm(table)
    if rest[0] > rounding:
        assert found.values[0] == pytest.approx(rest[0], rel=1e-8)
    for value, true in zip(found.values, rest, strict=False):  # each is a bound from below
        assert value <= true + rounding


@tables
def test_the_vectors_are_singular_vectors(table):
    table = table()
    problem = whole(table)
    found = leading_triplets(
        problem, start(problem), Factors.empty(table.shape), enough=None, tol=1e-12,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    images, size = found.images, len(found.values)
    np.testing.assert_allclose(images.T @ images, np.eye(size), atol=1e-10)
    turned, squares = table.T @ (table @ images[:, :1]), found.values[:1] ** 2
    np.testing.assert_allclose(turned, images[:, :1] * squares, atol=1e-6 * np.linalg.norm(table))


@tables
@pytest.mark.parametrize("enough", [0.2, 0.9, 1.001, 1.2])
def test_a_decision_names_the_right_side(table, enough):
    table = table()
    problem, norm = whole(table), np.linalg.norm(table, 2)
    found = leading_triplets(
        problem, start(problem), Factors.empty(table.shape), enough=enough * norm, tol=1e-9,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert found.upper >= norm * (1 - 1e-12)
    if enough > 1:
        assert found.upper <= enough * norm or found.upper <= norm * (1 + 1e-8)


def test_an_exact_basis_of_everything_leaves_nothing():
    table = np.random.default_rng(0).normal(size=(5, 3))
    problem = whole(table)
    found = leading_triplets(
        problem,
        start(problem),
        leading(table, 3),
        enough=None,
        tol=1e-9,
        rng=np.random.default_rng(0),
    )
    assert found.upper <= 1e-12


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounding_beside_what_is_deflated_is_no_direction(scale):
    table = scale * rotated(np.array([3.0, 1.0]), (60, 45))
    problem, norm = whole(table), 3 * scale
    found = leading_triplets(
        problem, start(problem), leading(table, 2), norm=norm, enough=None, tol=1e-9,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert len(found.values) == 0
    assert found.upper <= 1e-13 * norm
