import numpy as np
import pytest
import scipy.sparse as sp

from sidelight.covariance import Dense, Diffusion, Features, Identity, RandomWalk
from sidelight.errors import InputError

G = np.random.default_rng(0).normal(size=(8, 3))
C = G @ G.T
RING = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)


def test_identity_tells_nothing():
    loadings, rest = Identity(5).cross(3).loadings()
    np.testing.assert_array_equal(loadings, np.zeros((3, 5)))
    np.testing.assert_array_equal(rest, np.eye(3))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_features_tell_everything(form):
    loadings, rest = Features(form(G[:5])).cross(form(G[5:])).loadings()
    np.testing.assert_array_equal(loadings, G[5:])
    np.testing.assert_array_equal(rest, np.zeros((3, 3)))


def test_arrays_have_loadings_on_the_roots_own_columns():
    known = Dense(C[:5, :5])
    loadings, rest = known.cross((C[5:, :5], C[5:, 5:] + np.eye(3))).loadings()
    np.testing.assert_allclose(loadings @ known.root(np.eye(3)).T, C[5:, :5], atol=1e-13)
    np.testing.assert_allclose(rest, np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("links", "among"),
    [
        (C[5:, :5] + 1e-3, C[5:, 5:] + np.eye(3)),  # outside the range of the known covariance
        (2 * C[5:, :5], C[5:, 5:]),  # more in common with the known items than they vary
    ],
)
def test_refuses_arrays_of_different_covariances(links, among):
    with pytest.raises(InputError, match="do not go with those of the known items"):
        Dense(C[:5, :5]).cross((links, among)).loadings()


def test_takes_arrays_in_single_precision():
    single = C.astype(np.float32)
    known = Dense(C[:5, :5])
    loadings, rest = known.cross((single[5:, :5], single[5:, 5:])).loadings()
    np.testing.assert_allclose(loadings @ loadings.T + rest, C[5:, 5:], atol=1e-5)
    assert np.linalg.eigvalsh(rest)[0] >= -1e-14


def test_needs_the_covariances_among_the_new():
    with pytest.raises(InputError, match="pass the pair"):
        Dense(C[:5, :5]).cross(C[5:, :5]).loadings()


@pytest.mark.parametrize("known", [Diffusion(RING, 2.0, 0.0), RandomWalk(RING, 0.7)])
def test_new_nodes_keep_noise_of_their_own(known):
    links = np.eye(2, 5)
    _, rest = known.cross(links).loadings()
    alone = type(known)(np.zeros((1, 1)), **known.parameters()).diagonal()[0]
    np.testing.assert_allclose(rest, alone * np.eye(2), atol=1e-14)


@pytest.mark.parametrize("b", [1e-3, 1e3])
def test_a_nugget_hides_what_the_new_nodes_hear(b):
    """The larger it is, the less the known nodes tell of what they have in common with the new."""
    cross = Diffusion(RING, 2.0, b).cross(np.eye(2, 5))
    loadings, rest = cross.loadings()
    among = loadings @ loadings.T + rest
    np.testing.assert_allclose(among, cross.block(), atol=1e-12 * b + 1e-13)
    assert (np.trace(loadings @ loadings.T) < 1e-3) == (b > 1)


def test_no_new_items():
    cross = (Diffusion(RING) + Features(G[:5]) + Dense(C[:5, :5])).cross(
        [np.zeros((0, 5)), np.zeros((0, 3)), (np.zeros((0, 5)), np.zeros((0, 0)))]
    )
    loadings, rest = cross.loadings()
    assert (loadings.shape, rest.shape) == ((0, 11), (0, 0))
