"""ProDiGe against scikit-learn's machine on the dense kernel of pairs, and its four kernels."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

import sidelight as sl

RING = np.roll(np.eye(10), 1, axis=0) + np.roll(np.eye(10), -1, axis=0)
FEATURES = np.random.default_rng(1).normal(size=(6, 3))
RNG = np.random.default_rng(0)
X = np.argwhere(RNG.random((10, 6)) < 0.7)
LABELS = np.where(RNG.random(len(X)) < 0.5, 1, -1)
CELLS = np.argwhere(np.ones((10, 6)))
SIMILARITY = sl.Diffusion(RING, a=2.0, b=0.1)
COLUMNS = sl.Features(FEATURES, "rbf")


def kernel(pairs, others, row_cov):
    C, D = row_cov.dense(), COLUMNS.dense()
    return C[np.ix_(pairs[:, 0], others[:, 0])] * D[np.ix_(pairs[:, 1], others[:, 1])]


@pytest.mark.parametrize("kind", ["dirac", "multitask", "similarity", "similarity+dirac"])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_equals_scikit_learn_on_the_dense_kernel(kind, C):
    rows = sl.row_kernel(kind, SIMILARITY)
    truth = SVC(kernel="precomputed", C=C, tol=1e-10).fit(kernel(X, X, rows), LABELS)
    model = sl.ProDiGe(rows, COLUMNS, C=C, tol=1e-9).fit(X, LABELS)
    assert model.certificate_.status == "certified"
    found, expected = (
        model.decision_function(CELLS),
        truth.decision_function(kernel(CELLS, X, rows)),
    )
    free = (np.abs(model.alpha_) > 1e-4 * C) & (np.abs(model.alpha_) < C * (1 - 1e-4))
    shift = 0.0 if free.any() else model.intercept_ - truth.intercept_[0]
    np.testing.assert_allclose(found - shift, expected, atol=2e-3)


def test_the_four_kernels():
    dirac, multitask, similar, both = (
        sl.row_kernel(kind, SIMILARITY).dense()
        for kind in ("dirac", "multitask", "similarity", "similarity+dirac")
    )
    np.testing.assert_array_equal(dirac, np.eye(10))
    np.testing.assert_allclose(multitask, 1 + np.eye(10))
    np.testing.assert_allclose(both, (similar + dirac) / 2)
    with pytest.raises(sl.InputError, match="'cosine' is unknown"):
        sl.row_kernel("cosine", SIMILARITY)


def test_any_two_values_are_classes_and_one_is_refused():
    model = sl.ProDiGe(SIMILARITY, COLUMNS, tol=1e-8).fit(X, LABELS)
    shifted = sl.ProDiGe(SIMILARITY, COLUMNS, tol=1e-8).fit(X, 3 + (LABELS > 0))
    np.testing.assert_array_equal(shifted.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(shifted.classes_, [3, 4])
    with pytest.raises(sl.InputError, match="1 different values; give entries of two values"):
        sl.ProDiGe(SIMILARITY, COLUMNS).fit(X, np.ones(len(X)))


def test_a_bag_averages_models_of_its_samples():
    positives = X[LABELS > 0]
    negatives = sl.Negatives(ratio=1.0, value=-1.0, seed=7)
    bag = sl.Bagged(sl.ProDiGe(SIMILARITY, COLUMNS), negatives, n=3).fit(positives)
    single = []
    for number in range(3):
        drawn = negatives.draw(positives, (10, 6), number)
        labels = np.repeat([1.0, -1.0], [len(positives), len(drawn)])
        model = sl.ProDiGe(SIMILARITY, COLUMNS).fit(np.vstack([positives, drawn]), labels)
        single.append(model.predict(CELLS))
    np.testing.assert_allclose(bag.predict(CELLS), np.mean(single, axis=0), atol=1e-12)
    other = sl.Bagged(sl.MVGP(SIMILARITY, COLUMNS), negatives, n=3).fit(positives)
    for mine, theirs in zip(bag.models_, other.models_, strict=True):
        np.testing.assert_array_equal(mine.pairs_, theirs.pairs_)  # the same samples


@pytest.mark.skipif("SIDELIGHT_DATA" not in os.environ, reason="SIDELIGHT_DATA is not set")
def test_real_diseases():
    data = sl.read_dataset(Path(os.environ["SIDELIGHT_DATA"]) / "hetionet")
    model = sl.Bagged(sl.ProDiGe(*sl.covariances(data)), sl.Negatives(value=-1.0), n=1)
    model.fit(data.pairs[::3])
    assert model.certificate_.status == "certified"
    assert model.certificate_.relative_gap <= 1e-4
