import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp

from sidelight.covariance import Features
from sidelight.errors import InputError

X = np.random.default_rng(0).normal(size=(5, 3))


def test_sparse_features_stay_sparse():
    C = Features(sp.random_array((1_000_000, 200_000), density=1e-6, rng=np.random.default_rng(0)))
    assert C.root_size == 200_000
    assert C.apply(np.ones(C.size)).shape == (1_000_000,)
    assert C.diagonal().shape == (1_000_000,)


def test_median_length_scale_is_the_median_distance_in_the_kernels_norm():
    above = np.triu_indices(5, k=1)
    difference = (X[:, None] - X[None])[above]
    euclid, manhattan = np.linalg.norm(difference, axis=1), np.abs(difference).sum(axis=1)
    for kernel, expected in (("rbf", euclid), ("laplacian", manhattan)):
        C = Features(X, kernel, length_scale="median")
        np.testing.assert_allclose(C.length_scale, np.median(expected), rtol=1e-12)


def test_median_of_a_large_set_depends_on_the_seed_alone():
    wide = np.random.default_rng(0).normal(size=(1500, 3))
    scales = [
        Features(wide, "rbf", length_scale="median", random_state=seed).length_scale
        for seed in (1, 1, 2)
    ]
    assert scales[0] == scales[1] != scales[2]


def test_median_of_twins_is_refused():
    with pytest.raises(InputError, match=r"length_scale must be a finite number > 0, found 0\.0"):
        Features(np.ones((5, 3)), "rbf", length_scale="median")


def test_short_distances_far_from_the_origin_survive():
    near = np.array([[0.0, 0], [1e-3, 0], [0, 2e-3]])
    expected = Features(near, "rbf", length_scale=1e-3).dense()
    np.testing.assert_allclose(
        Features(near + 1024.0, "rbf", length_scale=1e-3).dense(), expected, atol=1e-9
    )


@pytest.mark.parametrize("choose", ["k-means++", "random"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_all_items_as_landmarks_give_the_exact_kernel(kernel, choose):
    exact = Features(X, kernel)
    C = Features(X, kernel, method="nystrom", landmarks=99, choose=choose)
    np.testing.assert_array_equal(C.landmarks, np.arange(5))
    np.testing.assert_allclose(C.dense(), exact.dense(), atol=1e-13)
    np.testing.assert_allclose(
        C.cross(X + 0.1).apply(np.eye(5)), exact.cross(X + 0.1).apply(np.eye(5)), atol=1e-13
    )


def test_nystrom_is_exact_at_its_landmarks():
    many = np.random.default_rng(1).normal(size=(60, 3))
    C = Features(many, "rbf", method="nystrom", landmarks=7, random_state=3)
    at = np.ix_(C.landmarks, C.landmarks)
    assert len(C.landmarks) == C.root_size == 7
    np.testing.assert_allclose(C.dense()[at], Features(many, "rbf").dense()[at], atol=1e-12)
    lost = Features(many, "rbf").dense() - C.dense()
    assert sl.eigvalsh(lost)[0] > -1e-12


@pytest.mark.parametrize("choose", ["k-means++", "random"])
def test_landmarks_depend_on_the_seed_alone(choose):
    many = np.random.default_rng(1).normal(size=(200, 3))
    picks = [
        Features(
            many, "rbf", method="nystrom", landmarks=9, choose=choose, random_state=seed
        ).landmarks.tolist()
        for seed in (1, 1, 2)
    ]
    assert picks[0] == picks[1] != picks[2]


def test_landmarks_that_coincide_are_dropped():
    twins = np.repeat(X[:2], 30, axis=0)
    C = Features(twins, "rbf", method="nystrom", landmarks=20, choose="random")
    assert C.root_size == 2
    np.testing.assert_allclose(C.dense(), Features(twins, "rbf").dense(), atol=1e-13)


def test_does_not_follow_the_array_it_was_made_from():
    given = X.copy()
    C = Features(given)
    given[:] = 0
    np.testing.assert_allclose(C.dense(), X @ X.T, atol=1e-15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "poly"}, "kernel='poly' is unknown; use one of linear, cosine, rbf, laplacian"),
        ({"kernel": "rbf", "method": "fft"}, "method='fft' is unknown"),
        ({"choose": "best"}, "choose='best' is unknown"),
        ({"kernel": "rbf", "length_scale": 0.0}, "length_scale must be a finite number > 0"),
        ({"kernel": "rbf", "length_scale": "mean"}, "length_scale must be a finite number > 0"),
        ({"kernel": "linear", "method": "nystrom"}, 'use method="exact"'),
        ({"kernel": "rbf", "method": "nystrom", "landmarks": 0}, "landmarks must be an integer"),
    ],
)
def test_refuses_unknown_options(options, message):
    with pytest.raises(InputError, match=message):
        Features(X, **options)


def test_refuses_features_that_do_not_fit():
    with pytest.raises(InputError, match=r"expected shape \(any, 3\), found shape \(2, 4\)"):
        Features(X).cross(np.ones((2, 4)))
    with pytest.raises(InputError, match=r"features: entry \(4, 1\) is not finite"):
        Features(np.where(X[4, 1] == X, np.nan, X))


def test_refuses_a_dense_kernel_beyond_the_limit():
    with pytest.raises(InputError, match='at most 20000 items, found 20001; use method="nystrom"'):
        Features(np.zeros((20_001, 1)), "rbf")
