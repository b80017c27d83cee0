"""Biases against dense generalised least squares and the dense marginal likelihood."""

import numpy as np
import pytest

from sidelight.covariance import Diffusion, Identity
from sidelight.solvers import fit_biases


def ring(size):
    return np.roll(np.eye(size), 1, axis=0) + np.roll(np.eye(size), -1, axis=0)


def world(rows, cols, count=400, seed=0):
    """Draw entries, some pairs twice, from the model itself."""
    rng = np.random.default_rng(seed)
    pairs = np.column_stack([rng.integers(0, cov.size - 2, count) for cov in (rows, cols)])
    weights = rng.uniform(0.3, 3.0, count)
    b, c = (scale * cov.draw(1, rng)[:, 0] for cov, scale in ((rows, 0.8), (cols, 0.4)))
    noise = 0.5 * rng.standard_normal(count) / np.sqrt(weights)
    return pairs, 3.0 + b[pairs[:, 0]] + c[pairs[:, 1]] + noise, weights


def parts(pairs, rows, cols):
    """Return the covariance that each side gives the entries."""
    return [cov.dense()[np.ix_(k, k)] for cov, k in zip((rows, cols), pairs.T, strict=True)]


CASES = [
    (Identity(50), Identity(30)),
    (Diffusion(ring(30)), Identity(50)),
    (Diffusion(ring(50), a=3.0, b=0.1), Diffusion(ring(40))),
]
cases = pytest.mark.parametrize(("rows", "cols"), CASES)


@cases
def test_the_biases_are_the_best_linear_unbiased_prediction(rows, cols):
    pairs, values, weights = world(rows, cols)
    found = fit_biases(pairs, values, weights, rows, cols, np.random.default_rng(0))

    kinds = zip((found.rows, found.cols), parts(pairs, rows, cols), strict=True)
    total = sum(side.variance * part for side, part in kinds)
    total = total + found.noise * np.diag(weights.mean() / weights)
    one, y = np.linalg.solve(total, np.column_stack([np.ones(len(values)), values])).T
    constant = y.sum() / one.sum()
    alpha = y - constant * one
    assert found.constant == pytest.approx(constant, rel=1e-9)
    for side, cov, index in ((found.rows, rows, pairs[:, 0]), (found.cols, cols, pairs[:, 1])):
        pulled = np.bincount(index, alpha, minlength=cov.size)
        np.testing.assert_allclose(side.weights, side.variance * pulled, atol=1e-8)
        np.testing.assert_allclose(side.images, cov.dense() @ side.weights, atol=1e-10)


@cases
def test_the_variances_are_a_fixed_point_of_the_marginal_likelihood(rows, cols):
    """What each part explains equals the degrees of freedom it spends."""
    pairs, values, weights = world(rows, cols, count=1500)
    found = fit_biases(pairs, values, weights, rows, cols, np.random.default_rng(0))

    root = np.sqrt(weights / weights.mean())
    scaled = [root[:, None] * part * root for part in parts(pairs, rows, cols)]
    sides = (found.rows, found.cols)
    kinds = zip(sides, scaled, strict=True)
    H = np.eye(len(root)) + sum(side.variance / found.noise * part for side, part in kinds)
    inverse = np.linalg.inv(H)
    spent = [
        side.variance / found.noise * np.sum(inverse * part)
        for side, part in zip(sides, scaled, strict=True)
    ]
    beta = inverse @ (root * (values - found.constant))
    assert beta @ beta / (len(beta) - sum(spent) - 1) == pytest.approx(found.noise, rel=0.02)
    for side, freedom in zip(sides, spent, strict=True):
        energy = side.weights @ side.images / side.variance
        assert energy == pytest.approx(freedom, rel=0.1)  # random signs estimate the trace


def test_the_variances_are_those_of_the_world():
    pairs, values, weights = world(Identity(500), Identity(400), count=20_000)
    found = fit_biases(
        pairs, values, weights, Identity(500), Identity(400), np.random.default_rng(0)
    )
    assert found.rows.variance == pytest.approx(0.64, rel=0.15)
    assert found.cols.variance == pytest.approx(0.16, rel=0.15)
    assert found.noise * weights.mean() == pytest.approx(0.25, rel=0.03)


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
def test_values_that_do_not_vary_have_no_biases(values):
    pairs = np.array([[0, 0], [1, 2], [4, 2]])[: len(values)]
    found = fit_biases(
        pairs, np.array(values), np.ones(len(values)), Identity(5), Identity(3),
        np.random.default_rng(0),
    )  # fmt: skip
    assert found.constant == pytest.approx(values[0])
    assert np.abs(found.rows.images).max() + np.abs(found.cols.images).max() < 1e-9


@pytest.mark.parametrize("scale", [1e-7, 1e5])
def test_the_scale_of_a_covariance_does_not_matter(scale):
    pairs, values, weights = world(Identity(50), Identity(30))
    one, other = (
        fit_biases(pairs, values, weights, cov, Identity(30), np.random.default_rng(0))
        for cov in (Identity(50), scale * Identity(50))
    )
    np.testing.assert_allclose(other.rows.images, one.rows.images, rtol=1e-6, atol=1e-9)
    assert other.rows.variance * scale == pytest.approx(one.rows.variance, rel=1e-6)


def test_an_offset_of_the_values_moves_the_constant_alone():
    pairs, values, weights = world(Identity(50), Identity(30))
    one, other = (
        fit_biases(
            pairs, values + offset, weights, Identity(50), Identity(30), np.random.default_rng(0)
        )
        for offset in (0.0, 1e4)
    )
    assert other.constant - 1e4 == pytest.approx(one.constant, abs=1e-7)
    assert other.noise == pytest.approx(one.noise, rel=1e-6)
    np.testing.assert_allclose(other.cols.images, one.cols.images, atol=1e-6)
