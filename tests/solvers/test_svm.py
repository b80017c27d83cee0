"""The support vector machine against scikit-learn's, and against its own conditions."""

import numpy as np
import pytest
from sklearn.svm import SVC

from sidelight.solvers.svm import best_bias, solve_svm


def world(size, width, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(size, width))
    signs = np.where(X[:, 0] + 0.7 * rng.normal(size=size) > 0.3, 1.0, -1.0)
    return X, signs


KERNELS = {
    "linear": lambda X: X @ X.T,
    "rbf": lambda X: np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)),
    "well conditioned": lambda X: X @ X.T / 10 + np.eye(len(X)),
}
costs_ = pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 100.0])
kernels = pytest.mark.parametrize("kernel", KERNELS)


@costs_
@kernels
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_scikit_learn(kernel, C, weighted):
    X, signs = world(120, 4)
    K = KERNELS[kernel](X)
    weights = np.random.default_rng(1).uniform(0.2, 3, 120) if weighted else np.ones(120)
    truth = SVC(kernel="precomputed", C=C, tol=1e-9).fit(K, signs, sample_weight=weights)
    dense = np.zeros(120)
    dense[truth.support_] = truth.dual_coef_[0]

    found = solve_svm(lambda v: K @ v, signs, C * weights, 4, tol=1e-10)

    assert found.certificate.status == "certified"
    values = [dense @ K @ dense / 2 - signs @ dense, -found.certificate.dual]
    assert values[1] == pytest.approx(values[0], rel=1e-8)
    np.testing.assert_allclose(K @ found.weights, K @ dense, atol=2e-4 * np.abs(K @ dense).max())
    primal = [
        np.sum(C * weights * np.maximum(0, 1 - signs * (K @ found.weights + bias)))
        for bias in (found.bias, truth.intercept_[0])
    ]
    assert primal[0] <= primal[1] * (1 + 1e-9)
    free = (np.abs(dense) > 1e-6 * C) & (np.abs(dense) < C * weights * (1 - 1e-6))
    if free.any():  # the bias is unique
        assert found.bias == pytest.approx(truth.intercept_[0], abs=1e-3)


@kernels
def test_the_conditions_of_optimality_hold(kernel):
    X, signs = world(80, 3, seed=2)
    K = KERNELS[kernel](X)
    found = solve_svm(lambda v: K @ v, signs, np.full(80, 0.5), 3, tol=1e-12)
    alpha, margin = signs * found.weights, signs * (K @ found.weights + found.bias)
    assert abs(found.weights.sum()) < 1e-9
    assert (alpha >= 0).all()
    assert (alpha <= 0.5).all()
    assert (margin[alpha < 1e-9] >= 1 - 1e-4).all()
    assert (margin[alpha > 0.5 - 1e-9] <= 1 + 1e-4).all()


def test_the_best_bias_beats_every_other():
    rng = np.random.default_rng(0)
    for _ in range(50):
        size = int(rng.integers(2, 12))
        signs = np.where(rng.random(size) < 0.5, 1.0, -1.0)
        signs[:2] = 1, -1
        image, costs = rng.normal(size=size), rng.choice([0.5, 1.0, 2.0], size)

        def loss(bias, signs=signs, image=image, costs=costs):
            return costs @ np.maximum(0, 1 - signs * (image + bias))

        best = loss(best_bias(signs, costs, image))
        assert best <= min(map(loss, signs - image)) + 1e-12


def test_an_interruption_is_labelled_and_feasible():
    X, signs = world(60, 3)
    K = X @ X.T

    def stop(progress):
        raise KeyboardInterrupt

    found = solve_svm(lambda v: K @ v, signs, np.ones(60), 3, tol=1e-12, watch=stop)
    assert (found.certificate.status, found.certificate.reason) == ("stopped", "interrupted")
    assert found.certificate.dual <= found.certificate.objective
    assert abs(found.weights.sum()) < 1e-9
