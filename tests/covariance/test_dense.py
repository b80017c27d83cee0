import numpy as np
import pytest
import scipy.sparse as sp

from sidelight.covariance import Dense
from sidelight.covariance import dense as room
from sidelight.errors import InputError

INDEFINITE = np.array([[2.0, 0, 0], [0, 1, 2], [0, 2, 1]])  # eigenvalues 2, 3, -1


def test_refuses_an_indefinite_matrix_and_offers_the_repair():
    with pytest.raises(InputError, match=r'smallest eigenvalue is -1; .*repair="clip"'):
        Dense(INDEFINITE)


def test_clip_sets_negative_eigenvalues_to_zero_and_leaves_the_rest():
    C = Dense(INDEFINITE, repair="clip")
    np.testing.assert_allclose(C.dense(), [[2, 0, 0], [0, 1.5, 1.5], [0, 1.5, 1.5]], atol=1e-15)
    assert C.root_size == 2


def test_clip_does_not_touch_what_is_right():
    right = np.array([[2.0, 1], [1, 3]])
    np.testing.assert_array_equal(Dense(right, repair="clip").dense(), right)


def test_a_negative_eigenvalue_beyond_rounding_is_found_at_any_scale():
    for scale in (1e-150, 1.0, 1e150):
        Dense(scale * np.ones((5, 5)))
        with pytest.raises(InputError, match="not positive semidefinite"):
            Dense(scale * (np.ones((5, 5)) - 1e-12 * np.eye(5)))


def test_single_precision_is_allowed_its_own_rounding():
    G = np.random.default_rng(0).normal(size=(40, 3))
    C = Dense((G @ G.T).astype(np.float32))
    assert C.root_size == 3


def test_root_leaves_out_zero_eigenvalues():
    G = np.random.default_rng(0).normal(size=(60, 4))
    assert Dense(G @ G.T).root_size == 4
    assert Dense(np.zeros((5, 5))).root_size == 0
    assert Dense(np.zeros((5, 5))).root(np.zeros((0, 3))).shape == (5, 3)


def test_no_items():
    assert Dense(np.zeros((0, 0))).root_size == 0


def test_names_the_entry_that_is_not_symmetric(monkeypatch):
    monkeypatch.setattr(room, "_STRIP", 2)
    C = np.eye(5)
    C[4, 1] = 0.5
    with pytest.raises(InputError, match=r"entry \(1, 4\) is 0 but \(4, 1\) is 0.5"):
        Dense(C)


def test_averages_asymmetry_of_rounding():
    C = np.array([[1.0, 0.5 + 1e-10], [0.5, 1.0]])
    np.testing.assert_allclose(Dense(C).dense()[0, 1], 0.5 + 5e-11, rtol=1e-15)
    np.testing.assert_array_equal(Dense(C).dense(), Dense(C).dense().T)


def test_refuses_more_items_than_the_limit():
    with pytest.raises(InputError, match="at most 20000 items, found 20001"):
        Dense(sp.csr_array((20_001, 20_001)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((5, 3)), r"expected a square matrix, found shape \(5, 3\)"),
        (np.ones(3), r"expected two dimensions, found shape \(3,\)"),
        (np.diag([1.0, np.nan]), r"entry \(1, 1\) is not finite"),
    ],
)
def test_refuses_what_is_no_covariance(given, message):
    with pytest.raises(InputError, match=message):
        Dense(given)


def test_refuses_an_unknown_repair():
    with pytest.raises(InputError, match="repair='shift' is unknown"):
        Dense(np.eye(3), repair="shift")


def test_does_not_follow_the_array_it_was_made_from():
    given = np.eye(3)
    C = Dense(given)
    given[0, 0] = 9.0
    np.testing.assert_array_equal(C.dense(), np.eye(3))
    assert given.flags.writeable


def test_cross_without_covariances_among_the_new_says_what_is_missing():
    links = np.arange(10.0).reshape(2, 5) / 10
    cross = Dense(np.eye(5)).cross(links)
    np.testing.assert_array_equal(cross.apply(np.eye(5)), links)
    for ask in (cross.block, cross.diagonal):
        with pytest.raises(InputError, match="pass the pair"):
            ask()


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (np.ones((2, 4)), r"expected shape \(any, 5\), found shape \(2, 4\)"),
        ((np.ones((2, 5)), np.eye(3)), r"expected shape \(any, 2\), found shape \(3, 3\)"),
        ((np.ones((2, 5)),), "expected a pair, found 1 arrays"),
        ((np.ones((2, 5)), np.array([[1, 0], [1, 1.0]])), r"entry \(0, 1\) is 0 but"),
    ],
)
def test_refuses_impossible_new_items(new, message):
    with pytest.raises(InputError, match=message):
        Dense(np.eye(5)).cross(new)
