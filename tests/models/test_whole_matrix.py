"""The loss over the whole table equals one with every unknown cell written out as a zero."""

import numpy as np
import pytest

import sidelight as sl

RING = np.roll(np.eye(14), 1, axis=0) + np.roll(np.eye(14), -1, axis=0)
RNG = np.random.default_rng(0)
POSITIVES = np.argwhere(RNG.random((14, 9)) < 0.25)
CELLS = np.argwhere(np.ones((14, 9)))
SIGMA2, W0 = 0.5, 0.3


def written_out():
    """Return every cell with its value and its weight relative to ``1 / sigma2``."""
    table = np.zeros((14, 9))
    table[tuple(POSITIVES.T)] = 1.0
    y = table.ravel()
    return CELLS, y, np.where(y > 0, 1.0, W0 * SIGMA2)


@pytest.mark.parametrize("kind", [sl.ConstrainedMVGP, sl.TraceGP])
def test_certified_models(kind):
    given = {"sigma2": SIGMA2, "lam": 0.4, "tol": 1e-6}
    cov = sl.Diffusion(RING)
    short = kind(cov, sl.Identity(9), unobserved_weight=W0, **given).fit(POSITIVES)
    long = kind(cov, sl.Identity(9), **given).fit(*written_out())
    assert short.certificate_.status == long.certificate_.status == "certified"
    assert short.certificate_.objective == pytest.approx(long.certificate_.objective, rel=1e-6)
    np.testing.assert_allclose(short.scores(range(14)), long.scores(range(14)), atol=2e-3)


def test_fixed_rank():
    """The same seed starts both at the same factors, up to their size."""
    given = {"sigma2": SIGMA2, "n_factors": 9, "restarts": 3, "tol": 1e-6}
    cov = sl.Diffusion(RING)
    short = sl.KPMF(cov, sl.Identity(9), unobserved_weight=W0, **given).fit(POSITIVES)
    long = sl.KPMF(cov, sl.Identity(9), **given).fit(*written_out())
    assert short.certificate_.objective == pytest.approx(long.certificate_.objective, rel=1e-8)


def test_positives_alone_need_the_weight():
    with pytest.raises(sl.InputError, match="y is None"):
        sl.ConstrainedMVGP().fit(POSITIVES)
    with pytest.raises(sl.InputError, match="unobserved_weight is -1"):
        sl.ConstrainedMVGP(unobserved_weight=-1).fit(POSITIVES)


def test_unknown_cells_are_zeros_whatever_the_mean():
    with pytest.raises(sl.InputError, match="use mean='zero'"):
        sl.ConstrainedMVGP(unobserved_weight=0.1, mean="global").fit(POSITIVES)


@pytest.mark.parametrize(
    "settings", [{"random_state": -1}, {"random_state": "a"}, {"refit": "yes"}, {"max_rank": 1.5}]
)
def test_settings_without_meaning_are_refused(settings):
    with pytest.raises(sl.InputError, match=f"{next(iter(settings))} is"):
        sl.ConstrainedMVGP(unobserved_weight=0.1, **settings).fit(POSITIVES)


def test_a_bag_and_a_path_say_what_they_need():
    with pytest.raises(sl.InputError, match="negatives is 5; give a Negatives"):
        sl.Bagged(sl.MVGP(), 5).fit(POSITIVES)
    with pytest.raises(sl.InputError, match="KPMF has no lam"):
        next(sl.regularization_path(sl.KPMF(), POSITIVES))
    with pytest.raises(sl.InputError, match="Bias is nothing without biases"):
        sl.Bias(mean="zero").fit(POSITIVES)
