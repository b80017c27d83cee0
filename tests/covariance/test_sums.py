import numpy as np
import pytest

from sidelight.covariance import Dense, Features, Identity, Sum, covariance_from_state
from sidelight.errors import InputError

X = np.random.default_rng(0).normal(size=(5, 3))
EYE, LINEAR = Identity(5), Features(X)


def test_operators_make_sums():
    C = 2.0 * EYE + LINEAR * 3 + np.float64(0.5) * EYE
    assert isinstance(C, Sum)
    assert C.weights == (2.0, 3.0, 0.5)
    assert C.parts == (EYE, LINEAR, EYE)
    np.testing.assert_allclose(C.dense(), 2.5 * np.eye(5) + 3 * X @ X.T, atol=1e-14)


def test_a_sum_inside_a_sum_is_opened():
    C = Sum([EYE, 2 * (EYE + 3 * LINEAR)], [1.0, 0.5])
    assert C.parts == (EYE, EYE, LINEAR)
    assert C.weights == (1.0, 1.0, 3.0)


def test_roots_stand_side_by_side():
    C = Sum([EYE, LINEAR], [4.0, 9.0])
    assert C.root_size == 8
    np.testing.assert_array_equal(C.root(np.eye(8)), np.hstack([2 * np.eye(5), 3 * X]))
    np.testing.assert_array_equal(C.root_t(np.eye(5)), np.vstack([2 * np.eye(5), 3 * X.T]))


def test_zero_weight_removes_a_part_from_the_covariance():
    np.testing.assert_array_equal((EYE + 0.0 * LINEAR).dense(), np.eye(5))


@pytest.mark.parametrize(
    ("parts", "weights", "message"),
    [
        ([], None, "0 parts with 0 weights"),
        ([EYE, LINEAR], [1.0], "2 parts with 1 weights"),
        ([EYE, Identity(3)], None, "part 1 has 3 items, part 0 has 5"),
        ([EYE], [-1.0], "weight must be a finite number >= 0, found -1.0"),
    ],
)
def test_refuses_impossible_sums(parts, weights, message):
    with pytest.raises(InputError, match=message):
        Sum(parts, weights)


def test_adding_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        EYE + 1.0


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ([2], "expected a list of 2 descriptions, found 1"),
        (2, "expected a list of 2 descriptions, found int"),
        ([2, X[:3]], "part 1 describes 3 new items, part 0 describes 2"),
    ],
)
def test_cross_wants_one_description_for_each_part(new, message):
    with pytest.raises(InputError, match=message):
        (EYE + LINEAR).cross(new)


def test_state_nests_arrays_under_numbers():
    settings, arrays = (EYE + 2 * Dense(np.eye(5)) + LINEAR).state()
    assert settings["weights"] == [1.0, 2.0, 1.0]
    assert sorted(arrays) == ["1.matrix", "2.X"]


def test_more_than_ten_parts_keep_their_arrays_apart():
    parts = [Dense((i + 1.0) * np.eye(3)) for i in range(12)]
    weights = [float(i == 1) for i in range(12)]
    again = covariance_from_state(*Sum(parts, weights).state())
    np.testing.assert_array_equal(again.dense(), 2 * np.eye(3))


@pytest.mark.parametrize("settings", [{"kind": "Magic"}, {}])
def test_refuses_an_unknown_kind(settings):
    with pytest.raises(InputError, match="is unknown; use one of Identity, Diffusion, RandomWalk"):
        covariance_from_state(settings, {})


@pytest.mark.parametrize("size", [-1, 2.5, True, "3"])
def test_identity_refuses_impossible_sizes(size):
    with pytest.raises(InputError, match="size must be an integer >= 0"):
        Identity(size)
