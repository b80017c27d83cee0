"""Postdata is the dense Gaussian process, by every way of solving, inside the table and outside."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm as normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import sidelight as sl
from sidelight.posterior import Entries, Postdata, iterative, kept, postdata
from sidelight.problem import gram

SHAPE = (12, 7)
NEW = (3, 2)


def graph(size, rng, links=0.3):
    upper = np.triu(rng.random((size, size)) < links, k=1).astype(float)
    return upper + upper.T


def axis(kind, size, new, rng):
    """A covariance, what describes its new items, and the dense truth over both."""
    if kind == "graph":
        cov = sl.Diffusion(graph(size, rng), a=1.3, b=0.4)
        described = (rng.random((new, size)) < 0.4).astype(float)
        described[:, 0] = 1
    elif kind == "features":
        X = rng.normal(size=(size + new, 3))
        cov, described = sl.Features(X[:size], "rbf", length_scale=1.5), X[size:]
    elif kind == "linear":
        X = rng.normal(size=(size + new, 3))
        cov, described = sl.Features(X[:size]), X[size:]
    elif kind == "dense":
        X = rng.normal(size=(size + new, size + new))
        C = X @ X.T / (size + new)
        cov, described = sl.Dense(C[:size, :size]), (C[size:, :size], C[size:, size:])
    elif kind == "identity":
        cov, described = sl.Identity(size), new
    else:
        X = rng.normal(size=(size + new, 3))
        first, links, _ = axis("graph", size, new, rng)
        cov = sl.Sum([first, sl.Features(X[:size], "rbf")], [0.7, 2.0])
        described = [links, X[size:]]
    cross = cov.cross(described)
    links = cross.apply(np.eye(size))
    truth = np.block([[cov.dense(), links.T], [links, cross.block()]])
    return cov, described, truth


KINDS = [
    ("graph", "features"),
    ("identity", "graph"),
    ("dense", "identity"),
    ("linear", "linear"),
    ("sum", "dense"),
]
ITERATIVE = {"_FEATURES": 0, "FEW": 0, "_MANY": np.inf}
UNFACTORED = ITERATIVE | {"inner FEW": 0}
WAYS = {
    "as chosen": {},
    "factored": {"_FEATURES": 0},
    "iterative": ITERATIVE,
    "iterative without factors": UNFACTORED,
    "iterative in single precision": UNFACTORED | {"single": 0},
    "iterative at observed places": UNFACTORED | {"sampled": np.inf},
    "iterative without dense parts": UNFACTORED | {"kept": 0},
}


def by(way, monkeypatch):
    for name, value in WAYS[way].items():
        place, name = {
            "inner FEW": (iterative, "FEW"),
            "single": (kept, "_SINGLE"),
            "sampled": (gram, "_SAMPLED"),
            "kept": (kept, "_MOST"),
        }.get(name, (postdata, name))
        monkeypatch.setattr(place, name, value)


class Dense:
    """The posterior written out."""

    def __init__(self, C, H, pairs, y, noise, wanted):
        def block(left, right):
            return C[np.ix_(left[:, 0], right[:, 0])] * H[np.ix_(left[:, 1], right[:, 1])]

        joint, cross = block(pairs, pairs) + np.diag(noise), block(pairs, wanted)
        self.mean = cross.T @ np.linalg.solve(joint, y)
        self.prior = block(wanted, wanted).diagonal()
        self.cov = block(wanted, wanted) - cross.T @ np.linalg.solve(joint, cross)


def case(kinds, seed=0):
    rng = np.random.default_rng(seed)
    (row_cov, new_rows, C), (col_cov, new_cols, H) = (
        axis(kind, size, new, rng) for kind, size, new in zip(kinds, SHAPE, NEW, strict=True)
    )
    pairs = np.argwhere(rng.random(SHAPE) < 0.5)
    pairs = rng.permutation(np.vstack([pairs, pairs[:2]]))  # two entries were observed twice
    y, weights = rng.normal(size=len(pairs)), rng.uniform(0.5, 2, len(pairs))
    wanted = np.argwhere(np.ones(np.add(SHAPE, NEW)))
    truth = Dense(C, H, pairs, y, 0.2 / weights, wanted)
    model = sl.MVGP(row_cov, col_cov, sigma2=0.2, tol=1e-14).fit(pairs, y, weights)
    return model, wanted, {"new_rows": new_rows, "new_cols": new_cols}, truth


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("way", WAYS)
def test_mean_deviation_and_covariance_equal_the_dense_process(kinds, way, monkeypatch):
    by(way, monkeypatch)
    model, wanted, new, truth = case(kinds)
    found = model.postdata(1e-12)
    tol = 1e-5 if "single" in way else 1e-6
    std = np.sqrt(np.maximum(truth.cov.diagonal(), 0))
    np.testing.assert_allclose(found.mean(wanted, **new), truth.mean, atol=1e-6)
    np.testing.assert_allclose(found.std(wanted, **new) ** 2, std**2, atol=tol)
    np.testing.assert_allclose(found.cov(wanted, **new), truth.cov, atol=tol)
    assert found.residual <= 1e-4
    mean, cov = model.predict(wanted, return_cov=True, **new)
    np.testing.assert_allclose(cov, truth.cov, atol=2e-6)
    np.testing.assert_array_equal(mean, model.predict(wanted, **new))


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("way", ["iterative without factors", "iterative at observed places"])
def test_variances_keep_the_precision_asked_for(kinds, way, monkeypatch):
    by(way, monkeypatch)
    model, wanted, new, truth = case(kinds)
    rough = model.postdata(1e-3)
    missed = rough.std(wanted, **new) ** 2 - truth.cov.diagonal()
    assert np.all(np.abs(missed) <= rough.error * truth.prior + 1e-12)
    assert rough.error <= 2e-3


def test_the_bound_holds_where_entries_repeat(monkeypatch):
    """Reading a cell off many times makes what is sent to it longer."""
    by("iterative without factors", monkeypatch)
    C = np.array([[1, 0.6, 0], [0.6, 1, 0.03], [0, 0.03, 1]])
    pairs = np.repeat([[1, 0], [2, 0]], 100, axis=0)
    entries = Entries(pairs, np.full(200, 100.0), sl.Dense(C), sl.Dense([[1.0]]))
    found = Postdata(entries, lambda query: np.zeros(len(query)), 100.0)
    K = C[np.ix_(pairs[:, 0], pairs[:, 0])] + 100 * np.eye(200)
    k = C[pairs[:, 0], 0]
    truth = 1 - k @ np.linalg.solve(K, k)
    assert abs(found.std([[0, 0]])[0] ** 2 - truth) <= found.error <= 1e-6


@pytest.mark.parametrize("way", ["as chosen", "factored", "iterative"])
def test_nothing_asked_is_answered_with_nothing(way, monkeypatch):
    by(way, monkeypatch)
    model, wanted, _, _ = case(KINDS[3])
    found, none = model.postdata_, np.zeros((0, 2), int)
    assert found.std(none).shape == (0,)
    assert found.cov(none).shape == (0, 0)
    assert found.sample(none, 3).shape == (3, 0)
    assert found.sample(wanted[:2], 0).shape == (0, 2)


def test_a_ranking_of_a_new_row_whose_variance_is_not_known():
    rng = np.random.default_rng(0)
    C = np.eye(5) + 0.1
    pairs = np.argwhere(rng.random((5, 4)) < 0.7)
    model = sl.MVGP(sl.Dense(C), sl.Identity(4)).fit(pairs, rng.normal(size=len(pairs)))
    links = C[:1] * 0.5
    assert model.rank(5, new_rows=links).stds is None
    with pytest.raises(sl.InputError, match="among the new items"):
        model.rank(5, new_rows=links, intervals="postdata")
    assert model.rank(5, new_rows=(links, [[1.0]])).stds is not None
    with pytest.raises(sl.InputError, match="level is 3"):
        model.rank(0, level=3)


def test_noise_too_small_is_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 1))
    cov = sl.Features(X, "rbf", length_scale=3.0)
    pairs = np.argwhere(np.ones((40, 2)))
    entries = Entries(pairs, np.full(80, 1e-17), cov, sl.Identity(2))
    for features in (4096, 0):
        monkeypatch.setattr(postdata, "_FEATURES", features)
        found = Postdata(entries, lambda query: np.zeros(len(query)), 1e-17)
        with pytest.raises(sl.InputError, match="noise is too small"):
            found.std(pairs)


def test_one_cell_of_a_wide_table_takes_little_memory():
    rng = np.random.default_rng(0)
    size = 20_000
    pairs = np.column_stack([rng.permutation(size)[:300], rng.integers(40, size=300)])
    entries = Entries(pairs, np.ones(300), sl.Identity(size), sl.Identity(40))
    found = Postdata(entries, lambda query: np.zeros(len(query)), 1.0)
    tracemalloc.start()
    found.std([[0, 0]])
    found.std(np.column_stack([np.arange(2000), np.zeros(2000, int)]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * size * 2000 / 2  # not a row of the covariance for each


def test_scikit_learn_says_the_same():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(9, 2)), rng.normal(size=(6, 3))
    pairs = np.argwhere(rng.random((9, 6)) < 0.6)
    y = rng.normal(size=len(pairs))
    model = sl.MVGP(
        sl.Features(X, "rbf", length_scale=1.7), sl.Features(Z, "rbf", length_scale=1.7),
        sigma2=0.1, tol=1e-14,
    ).fit(pairs, y)  # fmt: skip
    both = lambda index: np.hstack([X[index[:, 0]], Z[index[:, 1]]])  # noqa: E731
    peer = GaussianProcessRegressor(RBF(1.7, "fixed"), alpha=0.1, optimizer=None)
    cells = np.argwhere(np.ones((9, 6)))
    peer.fit(both(pairs), y)
    mean, std = peer.predict(both(cells), return_std=True)
    _, cov = peer.predict(both(cells), return_cov=True)
    ours, ours_std = model.predict(cells, return_std=True)
    np.testing.assert_allclose(ours, mean, atol=1e-6)
    np.testing.assert_allclose(ours_std, std, atol=1e-6)
    np.testing.assert_allclose(model.predict(cells, return_cov=True)[1], cov, atol=1e-6)


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("way", ["as chosen", "iterative"])
def test_draws_have_the_mean_and_the_covariance(kinds, way, monkeypatch):
    by(way, monkeypatch)
    model, wanted, new, truth = case(kinds)
    count = 4000
    drawn = model.postdata(1e-10).sample(wanted, count, random_state=5, **new)
    assert drawn.shape == (count, len(wanted))
    std = np.sqrt(np.maximum(truth.cov.diagonal(), 1e-18))
    z = (drawn.mean(axis=0) - truth.mean) / std * np.sqrt(count)
    assert np.abs(z).max() < 5.5
    scatter = np.cov(drawn.T)
    # the entry (i, j) of a sample covariance has variance (S_ii S_jj + S_ij^2) / count
    error = np.sqrt((np.outer(std, std) ** 2 + truth.cov**2) / count)
    assert np.abs((scatter - truth.cov) / error).max() < 6.5


def test_draws_repeat_with_their_seed():
    model, wanted, new, _ = case(KINDS[0])
    first = model.postdata_.sample(wanted, 3, random_state=1, **new)
    np.testing.assert_array_equal(model.postdata_.sample(wanted, 3, random_state=1, **new), first)
    assert not np.allclose(model.postdata_.sample(wanted, 3, random_state=2, **new), first)


def test_draws_in_small_pieces_have_the_same_covariance(monkeypatch):
    model, wanted, new, truth = case(KINDS[0])
    monkeypatch.setattr("sidelight.posterior.draws._NUMBERS", 1)
    drawn = model.postdata_.sample(wanted, 4000, random_state=5, **new)
    std = np.sqrt(truth.cov.diagonal())
    assert np.abs((drawn.var(axis=0) / std**2 - 1) * np.sqrt(2000)).max() < 5.5


def test_probabilities_and_intervals_follow_from_both():
    model, wanted, new, truth = case(KINDS[0])
    std, found = np.sqrt(truth.cov.diagonal()), model.postdata_
    np.testing.assert_allclose(
        found.exceed(wanted, 0.3, **new), normal.sf(0.3, truth.mean, std), atol=1e-6
    )
    noisy = np.sqrt(std**2 + 0.2)
    np.testing.assert_allclose(
        found.exceed(wanted, 0.3, noise=True, **new), normal.sf(0.3, truth.mean, noisy), atol=1e-6
    )
    for noise, spread in ((True, noisy), (False, std)):
        low, high = found.interval(wanted, 0.8, noise=noise, **new)
        np.testing.assert_allclose(low, normal.ppf(0.1, truth.mean, spread), atol=1e-5)
        np.testing.assert_allclose(high, normal.ppf(0.9, truth.mean, spread), atol=1e-5)


def test_the_constraint_acts_on_the_mean_alone():
    free, wanted, new, truth = case(KINDS[0])
    bound = sl.ConstrainedMVGP(free.row_cov, free.col_cov, sigma2=0.2, lam=3.0)
    bound.fit(free.pairs_, free.values_, free.weights_)
    np.testing.assert_allclose(
        bound.postdata_.std(wanted, **new) ** 2, truth.cov.diagonal(), atol=1e-8
    )
    mean = bound.predict(wanted, **new)
    np.testing.assert_array_equal(bound.postdata_.mean(wanted, **new), mean)
    assert np.abs(mean - truth.mean).max() > 0.01
    drawn = bound.postdata_.sample(wanted, 4000, random_state=0, **new)
    z = (drawn.mean(axis=0) - mean) / np.sqrt(truth.cov.diagonal() / 4000)
    assert np.abs(z).max() < 5.5


def test_a_bag_is_the_mixture_of_its_models():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random(SHAPE) < 0.3)
    side = sl.Diffusion(graph(12, rng)), sl.Diffusion(graph(7, rng))
    bag = sl.Bagged(sl.MVGP(*side, sigma2=0.3, tol=1e-12), n=3).fit(pairs)
    cells = np.argwhere(np.ones(SHAPE))
    means = np.array([model.predict(cells) for model in bag.models_])
    covs = [model.postdata_.cov(cells) for model in bag.models_]
    truth = np.mean(covs, axis=0) + np.cov(means.T, bias=True)
    np.testing.assert_allclose(bag.postdata_.cov(cells), truth, atol=1e-12)
    mean, std = bag.predict(cells, return_std=True)
    np.testing.assert_allclose(mean, means.mean(axis=0))
    np.testing.assert_allclose(std**2, truth.diagonal(), atol=1e-12)
    drawn = bag.postdata_.sample(cells, 6000, random_state=0)
    z = (drawn.mean(axis=0) - mean) / (std / np.sqrt(6000))
    assert np.abs(z).max() < 5
    assert np.abs((drawn.var(axis=0) / std**2 - 1) * np.sqrt(3000)).max() < 5.5
    above = np.mean([m.postdata_.exceed(cells, 0.1) for m in bag.models_], axis=0)
    np.testing.assert_allclose(bag.postdata_.exceed(cells, 0.1), above)


def test_models_without_a_distribution_say_so():
    pairs = np.argwhere(np.ones((5, 3)))[::2]
    y = np.arange(len(pairs), dtype=float)
    for made, why in (
        (sl.TraceGP(), "without a prior"),
        (sl.KPMF(n_factors=1), "without a prior"),
        (sl.ConstrainedMVGP(unobserved_weight=0.1), "every cell would count"),
        (sl.Bias(), "no Gaussian process"),
    ):
        model = made.fit(pairs, y)
        assert not hasattr(model, "postdata_")
        with pytest.raises(sl.InputError, match=why):
            model.predict(pairs, return_std=True)
        assert model.rank(0).stds is None


def test_bad_questions_get_one_sentence():
    model, wanted, _, _ = case(KINDS[0])
    with pytest.raises(sl.InputError, match=r"level is 1\.2"):
        model.predict_interval(wanted[:1], 1.2)
    with pytest.raises(sl.InputError, match="both asked for"):
        model.predict(wanted[:1], return_std=True, return_cov=True)
    with pytest.raises(sl.InputError, match="row 99"):
        model.postdata_.std([[99, 0]])
    with pytest.raises(sl.InputError, match=r"give a \(k, 2\) array"):
        model.postdata_.std([1, 2])
    with pytest.raises(sl.InputError, match="not calibrated"):
        model.predict_interval(wanted[:1], intervals="conformal")
    with pytest.raises(sl.InputError, match="intervals is 'exact'"):
        model.predict_interval(wanted[:1], intervals="exact")


def test_the_factor_of_blocks_is_choleskys(monkeypatch):
    from sidelight.posterior import systems

    monkeypatch.setattr(systems, "_BLOCK", 3)
    X = np.random.default_rng(0).normal(size=(11, 11))
    K = X @ X.T + np.eye(11)
    np.testing.assert_allclose(np.tril(systems.factor(K.copy())), np.linalg.cholesky(K), atol=1e-12)


@pytest.mark.parametrize("size", [30, 200])
def test_the_norm_is_never_underestimated(size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        cov = sl.Diffusion(graph(size, rng, 3 / size), a=rng.uniform(0.1, 4), b=rng.uniform(0, 1))
        top = np.linalg.eigvalsh(cov.dense())[-1]
        assert top * (1 - 1e-12) <= kept.norm(cov, rng) <= 1.5 * top


@pytest.mark.skipif("SIDELIGHT_DATA" not in os.environ, reason="SIDELIGHT_DATA is not set")
def test_davis_equals_the_dense_process():
    data = sl.read_dataset(Path(os.environ["SIDELIGHT_DATA"]) / "davis")
    rng = np.random.default_rng(3)
    C = sl.Dense(data.rows.similarity, repair="clip").dense()
    H = sl.Dense(data.cols.similarity, repair="clip").dense()
    chosen = rng.permutation(len(data.pairs))
    pairs, y = data.pairs[chosen[:3000]], data.values[chosen[:3000]]
    wanted = data.pairs[chosen[3000:3400]]
    truth = Dense(C, H, pairs, y - y.mean(), np.full(len(y), 0.2), wanted)
    sides = sl.Dense(C, repair="clip"), sl.Dense(H, repair="clip")
    model = sl.MVGP(*sides, sigma2=0.2, tol=1e-15, mean="global").fit(pairs, y)
    mean, std = model.predict(wanted, return_std=True)
    np.testing.assert_allclose(mean, truth.mean + y.mean(), atol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(truth.cov.diagonal()), atol=1e-6)
    np.testing.assert_allclose(model.predict(wanted, return_cov=True)[1], truth.cov, atol=1e-6)


def test_white_noise_is_in_observations_alone():
    """A WhiteKernel in scikit-learn's process adds to the deviation what an observation has."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9, 2))
    pairs = np.column_stack([np.arange(8), np.zeros(8, int)])
    y = rng.normal(size=8)
    model = sl.MVGP(sl.Features(X, "rbf"), sl.Dense([[1.0]]), sigma2=0.3, tol=1e-14).fit(pairs, y)
    peer = GaussianProcessRegressor(RBF(1.0, "fixed") + WhiteKernel(0.3, "fixed"), alpha=0)
    mean, std = peer.fit(X[:8], y).predict(X, return_std=True)
    low, high = model.predict_interval(np.column_stack([np.arange(9), np.zeros(9, int)]), 0.9)
    np.testing.assert_allclose((low + high) / 2, mean, atol=1e-6)
    np.testing.assert_allclose((high - low) / 2 / normal.ppf(0.95), std, atol=1e-6)


def test_entries_of_a_postdata_can_be_given_directly():
    model, wanted, new, truth = case(KINDS[0])
    entries = Entries(model.pairs_, 0.2 / model.weights_, model.row_cov_, model.col_cov_)
    found = Postdata(entries, lambda query: np.zeros(len(query)), 0.2)
    np.testing.assert_allclose(found.cov(wanted, **new), truth.cov, atol=1e-8)
