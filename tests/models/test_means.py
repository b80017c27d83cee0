"""Mean functions in a model: what they give to entries, tables, new items and files."""

import numpy as np
import pytest

import sidelight as sl

RING = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
RNG = np.random.default_rng(0)
X = np.argwhere(RNG.random((12, 7)) < 0.5)
X = X[X[:, 0] != 5]  # nothing is known of row 5
Y = 3 + RNG.normal(size=12)[X[:, 0]] + RNG.normal(size=7)[X[:, 1]] + 0.3 * RNG.normal(size=len(X))
LINKS = RING[[5]]


def only_mean(mean):
    """Fit a model whose low-rank part is zero."""
    model = sl.ConstrainedMVGP(sl.Diffusion(RING), sl.Identity(7), lam=1e6, mean=mean).fit(X, Y)
    assert model.certificate_.rank == 0
    return model


def test_biases_are_the_ridge_regression():
    model = only_mean("biases")
    phi = model.mean_
    counts = np.bincount(X[:, 0], minlength=12)
    rest = np.bincount(X[:, 0], Y - model.predict(X), minlength=12)
    noise = np.mean(
        [phi.rows.variance * rest[m] / b for m, b in enumerate(phi.rows.images) if counts[m]]
    )
    np.testing.assert_allclose(rest * phi.rows.variance, noise * phi.rows.images, atol=1e-8)
    assert np.sum(Y - model.predict(X)) == pytest.approx(0, abs=1e-8)
    assert phi.rows.images[5] == 0


def test_graph_biases_reach_rows_of_which_nothing_is_known():
    model = only_mean("graph-biases")
    bias = model.mean_.rows.images
    np.testing.assert_allclose(bias, sl.Diffusion(RING).apply(model.mean_.rows.weights), atol=1e-12)
    assert model.mean_.rows.weights[5] == 0
    assert abs(bias[5]) > 1e-3


@pytest.mark.parametrize("mean", ["biases", "graph-biases"])
def test_tables_and_pairs_agree_and_files_keep_them(mean, tmp_path):
    model = only_mean(mean)
    cells = np.argwhere(np.ones((13, 8)))
    new = {"new_rows": LINKS, "new_cols": 1}
    np.testing.assert_allclose(
        model.scores(range(13), **new).ravel(), model.predict(cells, **new), atol=1e-12
    )
    model.save(tmp_path / "model")
    loaded = sl.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(cells, **new), model.predict(cells, **new))


def test_a_new_row_has_the_bias_of_its_neighbours():
    smooth, plain = only_mean("graph-biases"), only_mean("biases")
    expected = sl.Diffusion(RING).cross(LINKS).apply(smooth.mean_.rows.weights)
    cols = smooth.mean_.constant + smooth.mean_.cols.images
    np.testing.assert_allclose(smooth.scores([12], new_rows=LINKS)[0], cols + expected, atol=1e-12)
    cols = plain.mean_.constant + plain.mean_.cols.images
    np.testing.assert_allclose(plain.scores([12], new_rows=LINKS)[0], cols, atol=1e-12)


def test_the_model_explains_what_the_biases_leave():
    covs = sl.Diffusion(RING), sl.Identity(7)
    model = sl.ConstrainedMVGP(*covs, lam=0.2, mean="biases").fit(X, Y)
    rest = sl.ConstrainedMVGP(*covs, lam=0.2).fit(X, Y - only_mean("biases").predict(X))
    assert model.certificate_.rank == rest.certificate_.rank > 0
    total = rest.predict(X) + only_mean("biases").predict(X)
    np.testing.assert_allclose(model.predict(X), total, atol=1e-12)
