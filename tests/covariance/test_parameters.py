import numpy as np
import pytest
import scipy.linalg as sl

from sidelight.covariance import Dense, Diffusion, Features, Identity, RandomWalk, SharedEntries
from sidelight.errors import InputError

X = np.random.default_rng(0).normal(size=(9, 3))
RING = np.roll(np.eye(9), 1, axis=0) + np.roll(np.eye(9), -1, axis=0)


@pytest.mark.parametrize(
    ("make", "old", "new"),
    [
        (lambda **p: Diffusion(RING, **p), {"a": 1.0, "b": 0.5}, {"a": 2.5, "b": 0.0}),
        (lambda **p: RandomWalk(RING, **p), {"alpha": 0.2}, {"alpha": 0.9}),
        (lambda **p: Features(X, "rbf", **p), {"length_scale": 2.0}, {"length_scale": 0.7}),
        (lambda **p: Features(X, "laplacian", **p), {"length_scale": 2.0}, {"length_scale": 0.7}),
        (
            lambda **p: Features(X, "rbf", method="nystrom", landmarks=4, **p),
            {"length_scale": 2.0},
            {"length_scale": 0.7},
        ),
    ],
    ids=["diffusion", "walk", "rbf", "laplacian", "nystrom"],
)
def test_changed_is_what_would_have_been_made(make, old, new):
    first = make(**old)
    assert first.parameters() == old
    changed = first.with_parameters(new)
    np.testing.assert_array_equal(changed.dense(), make(**new).dense())
    assert first.parameters() == old


@pytest.mark.parametrize(
    "C", [Identity(9), Dense(np.eye(9)), Features(X), Features(X, "cosine"), SharedEntries(X > 0)]
)
def test_nothing_to_learn(C):
    assert C.parameters() == C.ranges() == {}
    assert C.with_parameters({}) is C


def test_a_sum_numbers_its_parts():
    C = 2 * Diffusion(RING, a=3.0, b=0.5) + Identity(9) + 0.5 * Features(X, "rbf")
    assert C.parameters() == {
        "0.a": 3.0,
        "0.b": 0.5,
        "0.weight": 2.0,
        "1.weight": 1.0,
        "2.length_scale": 1.0,
        "2.weight": 0.5,
    }
    changed = C.with_parameters({"0.a": 1.0, "1.weight": 4.0})
    assert changed.weights == (2.0, 4.0, 0.5)
    assert changed.parts[0].graph is C.parts[0].graph
    assert changed.parts[1:] == C.parts[1:]
    assert C.slope("2.weight") is C.parts[2]
    with pytest.raises(InputError, match=r"Sum has no parameter '1\.a'; use one of 0\.a, 0\.b"):
        C.slope("1.a")


def test_more_than_ten_parts_keep_their_parameters_apart():
    C = sum((RandomWalk(RING, 0.05 * i) for i in range(1, 12)), Identity(9))
    changed = C.with_parameters({"1.alpha": 0.9, "11.weight": 3.0})
    assert [part.alpha for part in changed.parts[1:]] == [0.9, *(0.05 * i for i in range(2, 12))]
    assert changed.weights == (*[1.0] * 11, 3.0)


def test_ranges():
    assert Diffusion(RING).ranges() == {"a": (1e-4, 50.0), "b": (1e-6, 1e6)}
    assert RandomWalk(RING).ranges() == {"alpha": (1e-3, 0.999)}
    assert Features(X, "rbf", length_scale=2.0).ranges() == {"length_scale": (2e-3, 2e3)}
    both = (0.5 * RandomWalk(RING) + Identity(9)).ranges()
    assert both["0.alpha"] == (1e-3, 0.999)
    assert both["0.weight"] == both["1.weight"] == (1e-6, 1e6)


@pytest.mark.parametrize(
    ("C", "values", "message"),
    [
        (Diffusion(RING), {"a": -1.0}, "a must be a finite number >= 0, found -1.0"),
        (Diffusion(RING), {"b": np.nan}, "b must be a finite number >= 0, found nan"),
        (RandomWalk(RING), {"alpha": 1.0}, "alpha is 1.0"),
        (Features(X, "rbf"), {"length_scale": 0.0}, "length_scale must be a finite number > 0"),
        (Identity(9) + Identity(9), {"1.weight": -1.0}, "weight must be a finite number >= 0"),
        (Identity(9), {"a": 1.0}, "Identity has no parameter 'a'; it has none that are learnt"),
    ],
)
def test_refuses_values_out_of_range(C, values, message):
    with pytest.raises(InputError, match=message):
        C.with_parameters(values)


def test_features_and_landmarks_are_shared():
    C = Features(X, "rbf", method="nystrom", landmarks=4)
    changed = C.with_parameters({"length_scale": 3.0})
    assert changed._X is C._X
    np.testing.assert_array_equal(changed.landmarks, C.landmarks)


def test_slopes_of_a_graph_are_its_functions():
    L = np.eye(9) - RING / 2
    a, alpha = 1.3, 0.6
    heat, walk = Diffusion(RING, a, 0.0), RandomWalk(RING, alpha)
    np.testing.assert_allclose(heat.slope("a").apply(np.eye(9)), -L @ sl.expm(-a * L), atol=1e-13)
    np.testing.assert_array_equal(heat.slope("b").apply(np.eye(9)), np.eye(9))
    inverse = np.linalg.inv((1 - alpha) * np.eye(9) + alpha * L)
    found = walk.slope("alpha").apply(np.eye(9))
    np.testing.assert_allclose(found, -L @ inverse @ inverse, atol=1e-12)


def test_slope_where_nothing_has_spread_yet():
    still = Diffusion(RING, 0.0, 0.0)
    np.testing.assert_allclose(still.slope("a").apply(np.eye(9)), RING / 2 - np.eye(9), atol=1e-15)


def test_landmarks_that_coincide_have_the_slope_of_the_exact_kernel():
    twins = np.repeat(X[:2], 30, axis=0)
    options = {"kernel": "rbf", "length_scale": 1.3}
    few = Features(twins, method="nystrom", landmarks=20, choose="random", **options)
    exact = Features(twins, **options)
    found, expected = (C.slope("length_scale").apply(np.eye(60)) for C in (few, exact))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_slope_of_many_items_with_landmarks_is_never_a_square():
    many = np.random.default_rng(1).normal(size=(200_000, 2))
    C = Features(many, "rbf", method="nystrom", landmarks=5)
    slope = C.slope("length_scale")
    assert slope.apply(np.ones(len(many))).shape == (len(many),)
    assert np.isfinite(slope.diagonal(np.arange(3))).all()
