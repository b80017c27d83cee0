"""Learnt parameters: exact slopes, the paper's fixed point, known truth, honest errors."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2, multivariate_normal

import sidelight as sl
from sidelight.posterior import Evidence, Prior, Setting, evidence, learn
from sidelight.posterior.evidence import log_forms

SHAPE = (23, 17)


def graph(size, rng, links=0.15):
    upper = np.triu(rng.random((size, size)) < links, k=1).astype(float)
    return upper + upper.T


def sides(rng, shape=SHAPE):
    rows, cols = shape
    row_cov = sl.Diffusion(graph(rows, rng), a=1.5, b=0.4)
    parts = [sl.RandomWalk(graph(cols, rng), 0.6), sl.Features(rng.normal(size=(cols, 2)), "rbf")]
    return row_cov, sl.Sum(parts, [1.3, 0.7])


def table(row_cov, col_cov, sigma2, share, rng):
    """Entries of a table drawn from the prior, with weights of all sizes."""
    Z = row_cov.draw(col_cov.size, rng)
    root = np.linalg.cholesky(col_cov.dense() + 1e-12 * np.eye(col_cov.size))
    Z = Z @ root.T
    pairs = np.argwhere(rng.random(Z.shape) < share)
    weights = rng.uniform(0.5, 2, len(pairs))
    noise = rng.normal(size=len(pairs)) * np.sqrt(sigma2 / weights)
    return pairs, Z[tuple(pairs.T)] + noise, weights


def made(row_cov, col_cov, lam):
    if lam:
        return sl.ConstrainedMVGP(row_cov, col_cov, sigma2="learn", lam=lam)
    return sl.MVGP(row_cov, col_cov, sigma2="learn")


def small(lam=0.0, seed=0):
    rng = np.random.default_rng(seed)
    row_cov, col_cov = sides(rng)
    pairs, y, weights = table(row_cov, col_cov, 0.3, 0.5, rng)
    order = rng.permutation(len(pairs))
    pairs, y, weights = pairs[order], y[order], weights[order]
    solver = None
    if lam:
        model = sl.ConstrainedMVGP(row_cov, col_cov, lam=lam, tol=1e-12)
        solver = model._mean_solver(pairs, y, weights)
    found = Evidence(pairs, y, weights, SHAPE, solver, rng)
    return found, Setting(0.3, row_cov, col_cov), (pairs, y, weights)


def test_without_a_nuclear_norm_the_cost_is_the_marginal_likelihood():
    cost, setting, (pairs, y, weights) = small()
    C, H = setting.row_cov.dense(), setting.col_cov.dense()
    m, n = pairs.T
    K = C[np.ix_(m, m)] * H[np.ix_(n, n)] + np.diag(0.3 / weights)
    truth = -multivariate_normal(np.zeros(len(y)), K).logpdf(y) - len(y) / 2 * np.log(2 * np.pi)
    assert cost.at(setting, []).value == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("lam", [0.0, 0.5, 4.0])
def test_slopes_equal_differences(lam):
    cost, setting, _ = small(lam)
    names = list(setting.parameters())
    assert len(names) == 7
    slope = cost.at(setting, names).slope
    for name, found in zip(names, slope, strict=True):
        value = setting.parameters()[name]
        step = (1e-5 if lam == 0 else 1e-4) * value
        above, below = (
            cost.at(setting.having({name: value + sign * step}), []).value for sign in (1, -1)
        )
        assert found == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-5)


def test_the_information_is_the_expected_curvature():
    """Fisher's information is the covariance of the slope over tables from the model."""
    rng = np.random.default_rng(1)
    shape = (9, 6)
    row_cov, col_cov = sl.Diffusion(graph(9, rng, 0.4)), sl.Diffusion(graph(6, rng, 0.4))
    setting, names = Setting(0.3, row_cov, col_cov), ["sigma2", "row.a", "col.b"]
    pairs = np.argwhere(np.ones(shape))
    slopes, ones = [], np.ones(len(pairs))
    for _ in range(1500):
        Z = row_cov.draw(6, rng) @ np.linalg.cholesky(col_cov.dense()).T
        y = Z[tuple(pairs.T)] + np.sqrt(0.3) * rng.normal(size=len(pairs))
        point = Evidence(pairs, y, ones, shape, None, rng).at(setting, names)
        slopes.append(point.slope)
    spread = np.cov(np.array(slopes).T)
    scale = np.sqrt(np.outer(point.information.diagonal(), point.information.diagonal()))
    assert np.abs((spread - point.information) / scale).max() < 0.15
    assert np.abs(np.mean(slopes, axis=0) / np.sqrt(spread.diagonal() / 1500)).max() < 4


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_learnt_noise_is_the_papers_fixed_point(lam):
    rng = np.random.default_rng(2)
    row_cov, col_cov = sides(rng)
    pairs, y, weights = table(row_cov, col_cov, 0.3, 0.5, rng)
    kind = (
        sl.ConstrainedMVGP(row_cov, col_cov, "learn", lam)
        if lam
        else sl.MVGP(row_cov, col_cov, "learn")
    )
    model = kind.set_params(tol=1e-11).fit(pairs, y, weights)
    assert model.sigma2 == "learn"
    assert model.learnt_.status == "settled"
    mean, std = model.predict(pairs, return_std=True)
    prior = Prior.of(y)
    squares = np.sum(weights * (y - mean) ** 2) + np.sum(weights * std**2) + 2 * prior.scale
    assert model.sigma2_ == pytest.approx(squares / (len(y) + 2 * (prior.shape + 1)), rel=1e-4)


def test_without_its_prior_the_noise_collapses_as_the_paper_saw():
    """Values smaller than the prior expects leave nothing for the noise to explain."""
    rng = np.random.default_rng(3)
    pairs = np.argwhere(rng.random((30, 20)) < 0.5)
    y = 0.7 * rng.normal(size=len(pairs))
    start = Setting(0.3, sl.Identity(30), sl.Identity(20))
    cost = Evidence(pairs, y, np.ones(len(y)), (30, 20), None, rng)
    free, lost = learn(cost, start, ["sigma2"], Prior(0.0, 0.0))
    held, said = learn(cost, start, ["sigma2"], Prior.of(y))
    assert free.sigma2 < 1e-10
    assert "do not determine sigma2" in lost.status
    assert held.sigma2 > 1e-5
    assert said.status == "settled"
    # and with it the mean follows every entry
    assert (
        np.abs(sl.MVGP(sigma2=free.sigma2, tol=1e-12).fit(pairs, y).predict(pairs) - y).max() < 1e-9
    )


@pytest.mark.parametrize("seed", range(20))
def test_known_truth_lies_in_the_posteriors_own_region(seed, monkeypatch):
    """By random signs, from elsewhere; the exact cost judges the region of highest density."""
    rng = np.random.default_rng(100 + seed)
    truth = Setting(
        0.2,
        sl.Diffusion(graph(40, rng, 0.12), a=2.0, b=0.3),
        sl.Diffusion(graph(30, rng, 0.15), a=1.0, b=0.6),
    )
    pairs, y, weights = table(truth.row_cov, truth.col_cov, 0.2, 0.7, rng)
    start = truth.having({"row.a": 1.0, "row.b": 1.0, "col.a": 2.0, "col.b": 0.3})
    names, prior = list(truth.parameters()), Prior.of(y)
    exact = Evidence(pairs, y, weights, (40, 30), None, rng)
    monkeypatch.setattr(evidence, "FEW", 0)
    drawn = Evidence(pairs, y, weights, (40, 30), None, rng)
    found, said = learn(drawn, start, names, prior)
    assert said.status == "settled"
    assert list(said.values) == names

    def cost(setting):
        logs, centre = (np.log(list(each.parameters().values())) for each in (setting, start))
        return prior.add(exact.at(setting, names), names, logs, centre).value

    # the density at the truth: with 95% probability all 20 are in a region of 99.75% each
    assert 2 * (cost(truth) - cost(found)) < chi2.ppf(1 - 0.05 / 20, len(names))
    # and the start is outside of it
    assert 2 * (cost(start) - cost(found)) > chi2.ppf(1 - 0.05 / 20, len(names))


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_random_signs_agree_with_the_exact_minimum(lam, monkeypatch):
    rng = np.random.default_rng(5)
    row_cov, col_cov = sides(rng)
    pairs, y, weights = table(row_cov, col_cov, 0.3, 0.6, rng)
    model = (
        sl.ConstrainedMVGP(row_cov, col_cov, "learn", lam)
        if lam
        else sl.MVGP(row_cov, col_cov, "learn")
    )
    exact = model.set_params(learn="rows").fit(pairs, y, weights).learnt_
    monkeypatch.setattr(evidence, "FEW", 0)
    drawn = model.fit(pairs, y, weights).learnt_
    for name, error in exact.errors.items():
        assert abs(np.log(drawn.values[name] / exact.values[name])) < 0.6 * error
        assert drawn.errors[name] == pytest.approx(error, rel=0.5)


@pytest.mark.parametrize("steep", [10.0, 1e4, 1e6])
def test_logarithms_by_lanczos(steep):
    rng = np.random.default_rng(6)
    values = np.geomspace(1, steep, 400)
    Z = rng.choice([-1.0, 1.0], (400, 8))
    logs = log_forms(lambda X: values[:, None] * X, Z)
    truth = np.log(values) @ Z**2
    np.testing.assert_allclose(logs, truth, rtol=1e-2 if steep > 1e5 else 1e-5)


def test_preconditioned_or_not_the_cost_is_the_same(monkeypatch):
    """Smooth kernels and little noise: a few pivots stand for most of the covariance."""
    monkeypatch.setattr(evidence, "FEW", 0)
    rng = np.random.default_rng(12)
    row_cov, col_cov = (sl.Features(rng.normal(size=(n, 1)), "rbf") for n in SHAPE)
    pairs, y, weights = table(row_cov, col_cov, 1e-3, 0.7, rng)
    setting = Setting(1e-3, row_cov, col_cov)
    names = list(setting.parameters())
    drawn = Evidence(pairs, y, weights, SHAPE, None, np.random.default_rng(0))
    assert drawn._preconditioner(setting, np.sqrt(1e-3 / drawn.weights)) is not None
    found = drawn.at(setting, names)
    monkeypatch.setattr(evidence, "_DENSE", 0)
    plain = drawn.at(setting, names)
    monkeypatch.setattr(evidence, "FEW", 10**6)
    exact = Evidence(pairs, y, weights, SHAPE, None, rng).at(setting, names)
    assert found.value == pytest.approx(exact.value, abs=1.0)
    np.testing.assert_allclose(found.slope, plain.slope, rtol=2e-3)
    assert abs(found.value - exact.value) <= abs(plain.value - exact.value) + 1e-6


def test_what_does_not_settle_is_labelled(monkeypatch):
    """A smooth kernel and hardly any noise: the systems need more steps than are allowed."""
    monkeypatch.setattr(evidence, "FEW", 0)
    monkeypatch.setattr(evidence, "_MOST", 3)
    rng = np.random.default_rng(11)
    row_cov, col_cov = sides(rng)
    pairs, y, weights = table(row_cov, col_cov, 1e-4, 0.5, rng)
    model = made(row_cov, col_cov, 0.0).fit(pairs, y, weights)
    assert model.learnt_.status.startswith("stopped")


def test_values_without_variation_are_refused():
    pairs = np.argwhere(np.ones((4, 3)))
    for y, mean in ((np.full(12, 3.7), "global"), (np.zeros(12), "zero")):
        with pytest.raises(sl.InputError, match="leaves nothing of the values"):
            sl.MVGP(sigma2="learn", mean=mean).fit(pairs, y)


def test_at_scale_nothing_dense_is_made(monkeypatch):
    """4,000 entries of a 3,000 x 3,000 table: neither is ever squared or multiplied out."""
    monkeypatch.setattr(evidence, "_SIGNS", 4)
    rng = np.random.default_rng(7)
    size = 3000
    ring = np.roll(np.eye(size), 1, axis=0)
    ring = sp.csr_array(ring + ring.T)
    pairs = np.column_stack([rng.integers(size, size=4000), rng.integers(size, size=4000)])
    pairs = np.unique(pairs, axis=0)
    y = rng.normal(size=len(pairs))
    model = sl.MVGP(sl.Diffusion(ring), sl.Identity(size), sigma2="learn", learn="rows")
    model.fit(pairs[:2100], y[:2100])  # compiles
    tracemalloc.start()
    model.fit(pairs, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * size * size / 2  # half of what a table would take
    assert model.learnt_.status == "settled"


def test_what_was_learnt_is_kept_and_used(tmp_path):
    rng = np.random.default_rng(8)
    row_cov, col_cov = sides(rng)
    pairs, y, weights = table(row_cov, col_cov, 0.3, 0.5, rng)
    model = sl.ConstrainedMVGP(row_cov, col_cov, "learn", 1.0, mean="biases", learn="both")
    model.fit(pairs, y, weights)
    assert model.row_cov is row_cov
    assert model.row_cov_.a == model.learnt_.values["row.a"] != row_cov.a
    model.save(tmp_path / "model")
    loaded = sl.load(tmp_path / "model")
    assert loaded.learnt_ == model.learnt_
    assert loaded.sigma2_ == model.sigma2_
    np.testing.assert_array_equal(loaded.postdata_.std(pairs), model.postdata_.std(pairs))
    given = sl.ConstrainedMVGP(model.row_cov_, model.col_cov_, model.sigma2_, 1.0, mean="biases")
    np.testing.assert_allclose(
        given.fit(pairs, y, weights).predict(pairs), model.predict(pairs), atol=1e-8
    )


def test_a_bag_learns_once():
    rng = np.random.default_rng(9)
    pairs = np.argwhere(rng.random(SHAPE) < 0.2)
    bag = sl.Bagged(sl.MVGP(sl.Diffusion(graph(23, rng)), sigma2="learn", learn="rows"), n=3).fit(
        pairs
    )
    first, *others = bag.models_
    assert first.learnt_ is not None
    for other in others:
        assert other.learnt_ is None
        assert other.sigma2_ == first.sigma2_
        assert other.row_cov_ is first.row_cov_ is bag.row_cov_


def test_parameters_at_zero_stay_there():
    rng = np.random.default_rng(10)
    pairs, y, _ = table(*sides(rng), 0.3, 0.5, rng)
    model = sl.MVGP(sl.Diffusion(graph(23, rng), b=0.0), sigma2="learn", learn="both").fit(pairs, y)
    assert model.row_cov_.b == 0.0
    assert set(model.learnt_.values) == {"sigma2", "row.a"}


def test_refusals():
    pairs = np.argwhere(np.ones((3, 2)))
    for made in (
        sl.TraceGP(sigma2="learn"),
        sl.KPMF(n_factors=1, sigma2="learn"),
        sl.ConstrainedMVGP(sigma2="learn", unobserved_weight=0.1),
    ):
        with pytest.raises(sl.InputError, match="nothing can be learnt here"):
            made.fit(pairs, np.arange(6.0))
    with pytest.raises(sl.InputError, match="learn is 'all'"):
        sl.MVGP(learn="all").fit(pairs, np.arange(6.0))
    with pytest.raises(sl.InputError, match="sigma2 is 'some'"):
        sl.MVGP(sigma2="some").fit(pairs, np.arange(6.0))
    with pytest.raises(sl.InputError, match="no covariance there has a parameter"):
        sl.MVGP(sigma2="learn", learn="both").fit(pairs, np.arange(6.0))
