"""MVGP is the exact Gaussian process, inside the table and outside it."""

import os
from pathlib import Path

import numpy as np
import pytest

import sidelight as sl


def kernel(size, rng, width=3):
    """A positive definite matrix with nothing symmetric about its items' order."""
    points = rng.standard_normal((size, width))
    distance = ((points[:, None] - points[None]) ** 2).sum(-1)
    return np.exp(-distance / 4) + 0.1 * np.eye(size)


def exact(row_kernel, col_kernel, pairs, y, noise, wanted):
    """The dense posterior mean at ``wanted`` pairs; ``noise`` is one variance for each entry."""
    joint = row_kernel[np.ix_(pairs[:, 0], pairs[:, 0])]
    joint = joint * col_kernel[np.ix_(pairs[:, 1], pairs[:, 1])]
    cross = row_kernel[np.ix_(wanted[:, 0], pairs[:, 0])]
    cross = cross * col_kernel[np.ix_(wanted[:, 1], pairs[:, 1])]
    return cross @ np.linalg.solve(joint + np.diag(noise), y)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (23, 40), (40, 23)])
@pytest.mark.parametrize("identity", ["neither", "rows", "cols"])
def test_known_and_new_items_equal_the_dense_posterior(shape, identity):
    rng = np.random.default_rng(0)
    (rows, cols), extra = shape, 2
    K = np.eye(rows + extra) if identity == "rows" else kernel(rows + extra, rng)
    H = np.eye(cols + extra) if identity == "cols" else kernel(cols + extra, rng)
    pairs = np.argwhere(rng.random(shape) < 0.6)
    y, weights = rng.standard_normal(len(pairs)), rng.uniform(0.5, 2, len(pairs))
    row_cov = sl.Identity(rows) if identity == "rows" else sl.Dense(K[:rows, :rows])
    col_cov = sl.Identity(cols) if identity == "cols" else sl.Dense(H[:cols, :cols])
    model = sl.MVGP(row_cov, col_cov, sigma2=0.3, tol=1e-14).fit(pairs, y, weights)
    new_rows = extra if identity == "rows" else K[rows:, :rows]
    new_cols = extra if identity == "cols" else H[cols:, :cols]
    wanted = np.argwhere(np.ones((rows + extra, cols + extra)))
    truth = exact(K, H, pairs, y, 0.3 / weights, wanted)
    found = model.predict(wanted, new_rows=new_rows, new_cols=new_cols)
    np.testing.assert_allclose(found, truth, atol=1e-6)
    table = model.scores(np.arange(rows + extra), new_rows=new_rows, new_cols=new_cols)
    np.testing.assert_allclose(table.ravel(), truth, atol=1e-6)
    assert model.certificate_.status == "certified"


def test_bound_holds_for_every_cell_of_a_coarse_fit():
    rng = np.random.default_rng(1)
    K, H = kernel(23, rng), kernel(11, rng)
    pairs = np.argwhere(rng.random((23, 11)) < 0.5)
    y = rng.standard_normal(len(pairs))
    cells = np.argwhere(np.ones((23, 11)))
    truth = exact(K, H, pairs, y, np.full(len(pairs), 0.01), cells)
    model = sl.MVGP(sl.Dense(K), sl.Dense(H), sigma2=0.01, tol=1e-2).fit(pairs, y)
    scale = np.sqrt(np.outer(K.diagonal(), H.diagonal())).ravel()
    error = np.abs(model.predict(cells) - truth)
    assert error.max() > 1e-9  # the fit is coarse, or this test shows nothing
    assert np.all(error <= model.certificate_.bound * scale)


def test_global_mean_is_the_weighted_mean_and_is_added_back():
    rng = np.random.default_rng(2)
    pairs = np.argwhere(np.ones((5, 3)))
    y, weights = rng.standard_normal(15) + 7, rng.uniform(0, 1, 15)
    weights[4] = 0.0
    model = sl.MVGP(sigma2=2.0, tol=1e-14, mean="global").fit(pairs, y, weights)
    mean = np.average(y, weights=weights)
    assert model.mean_.constant == pytest.approx(mean, rel=1e-14)
    shrunk = mean + (y - mean) * weights / (weights + 2.0)
    np.testing.assert_allclose(model.predict(pairs), shrunk, atol=1e-7)


@pytest.mark.skipif("SIDELIGHT_DATA" not in os.environ, reason="SIDELIGHT_DATA is not set")
def test_davis_new_drugs_and_new_kinases():
    data = sl.read_dataset(Path(os.environ["SIDELIGHT_DATA"]) / "davis")
    rng = np.random.default_rng(3)
    K = sl.Dense(data.rows.similarity, repair="clip").dense()
    H = sl.Dense(data.cols.similarity, repair="clip").dense()
    drugs, kinases = rng.permutation(68), rng.permutation(442)
    K, H = K[np.ix_(drugs, drugs)], H[np.ix_(kinases, kinases)]
    table = np.zeros((68, 442))
    table[tuple(data.pairs.T)] = data.values
    table = table[np.ix_(drugs, kinases)]
    known = np.argwhere(np.ones((54, 353)))
    pairs = known[rng.permutation(len(known))[:3000]]
    y = table[tuple(pairs.T)]
    model = sl.MVGP(
        sl.Dense(K[:54, :54], repair="clip"), sl.Dense(H[:353, :353], repair="clip"),
        sigma2=0.2, tol=1e-15, mean="global",
    ).fit(pairs, y)  # fmt: skip
    wanted = np.argwhere(np.ones((68, 442)))
    truth = exact(K, H, pairs, y - y.mean(), np.full(len(y), 0.2), wanted) + y.mean()
    found = model.predict(wanted, new_rows=K[54:, :54], new_cols=H[353:, :353])
    np.testing.assert_allclose(found, truth, atol=1e-6)
