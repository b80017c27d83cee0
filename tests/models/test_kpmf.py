"""Fixed rank: stationary, seeded, and certified exactly when the best of any rank was found."""

import numpy as np
import pytest

import sidelight as sl

RING = np.roll(np.eye(20), 1, axis=0) + np.roll(np.eye(20), -1, axis=0)
RNG = np.random.default_rng(1)
X = np.argwhere(RNG.random((20, 12)) < 0.6)
TABLE = 2 * RNG.standard_normal((20, 2)) @ RNG.standard_normal((2, 12))
Y = TABLE[tuple(X.T)] + 0.1 * RNG.standard_normal(len(X))
COV = sl.Diffusion(RING)


def test_a_rank_that_suffices_finds_the_certified_optimum():
    convex = sl.TraceGP(COV, None, sigma2=0.2, lam=1.0, tol=1e-8).fit(X, Y)
    enough = convex.certificate_.rank + 1
    model = sl.KPMF(COV, None, n_factors=enough, sigma2=0.2, tol=1e-6, restarts=3).fit(X, Y)
    assert model.certificate_.status == "certified"
    assert model.certificate_.objective == pytest.approx(convex.certificate_.objective, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), convex.predict(X), atol=1e-3)


def test_a_rank_too_small_is_stationary_and_not_certified():
    model = sl.KPMF(COV, sl.Identity(12), n_factors=1, sigma2=0.2, tol=1e-8).fit(X, Y)
    proof = model.certificate_
    assert (proof.status, proof.rank, proof.bound) == ("stopped", 1, None)
    assert "stationary point of rank 1" in proof.reason
    slope = np.zeros((20, 12))
    slope[tuple(X.T)] = (model.predict(X) - Y) / 0.2
    A, P, B, Q = model.row_weights_, model.row_factors_, model.col_weights_, model.col_factors_
    np.testing.assert_allclose(slope @ Q, -A, atol=1e-4 * np.abs(A).max())
    np.testing.assert_allclose(slope.T @ P, -B, atol=1e-4 * np.abs(B).max())
    loss = np.sum((Y - model.predict(X)) ** 2) / 0.4
    ridge = 0.5 * (np.sum(A * P) + np.sum(B * Q))
    assert proof.objective == pytest.approx(loss + ridge, rel=1e-9)


def test_restarts_only_lower_the_objective():
    found = [
        sl.KPMF(COV, None, n_factors=2, sigma2=0.2, restarts=k, random_state=5).fit(X, Y)
        for k in (1, 4)
    ]
    first, best = (model.certificate_.objective for model in found)
    assert best <= first * (1 + 1e-12)


def test_the_seed_decides():
    one, same, other = (
        sl.PMF(n_factors=2, sigma2=0.2, random_state=s).fit(X, Y).row_factors_ for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_pmf_is_kpmf_without_side_information():
    given = {"n_factors": 3, "sigma2": 0.2}
    plain = sl.KPMF(sl.Identity(20), sl.Identity(12), **given).fit(X, Y)
    model = sl.PMF(COV, None, **given).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.row_cov is COV
    np.testing.assert_array_equal(model.scores([20], new_rows=1), 0.0)


@pytest.mark.parametrize("settings", [{"n_factors": 0}, {"restarts": 0}, {"n_factors": 1.5}])
def test_settings_without_meaning_are_refused(settings):
    name = next(iter(settings))
    with pytest.raises(sl.InputError, match=f"{name} is"):
        sl.KPMF(**settings).fit(X, Y)


def test_pmf_has_no_graph_to_smooth_biases_over():
    with pytest.raises(sl.InputError, match="PMF has no covariances; use 'biases'"):
        sl.PMF(COV, mean="graph-biases").fit(X, Y)


def test_numbers_of_a_search_can_be_saved(tmp_path):
    model = sl.KPMF(n_factors=np.int64(2), sigma2=np.float32(0.5)).fit(X, Y)
    model.save(tmp_path / "model")
    assert sl.load(tmp_path / "model").get_params()["n_factors"] == 2
    bag = sl.Bagged(model, sl.Negatives(0.5, seed=np.int64(1)), n=np.int64(2)).fit(X[:40])
    bag.save(tmp_path / "bag")
    assert sl.load(tmp_path / "bag").negatives.seed == 1


def test_steps_that_ran_out_are_said(monkeypatch):
    monkeypatch.setattr("sidelight.solvers.fixed._OUTER", 2)
    model = sl.KPMF(COV, None, n_factors=2, sigma2=0.01).fit(X, Y)
    assert "did not reach a stationary point" in model.certificate_.reason


def test_factors_that_are_not_needed_go_and_the_optimum_is_recognised():
    convex = sl.TraceGP(sigma2=0.2, lam=1.0, tol=1e-8).fit(X, Y)
    for seed in range(4):
        model = sl.PMF(n_factors=12, sigma2=0.2, random_state=seed).fit(X, Y)
        assert model.certificate_.status == "certified"
        assert model.certificate_.rank == convex.certificate_.rank
        assert model.row_factors_.shape[1] == convex.certificate_.rank


def test_an_item_without_entries_is_exactly_zero():
    kept = X[:, 0] != 3
    for model in (sl.PMF(COV, n_factors=3, sigma2=0.2), sl.KPMF(COV, n_factors=3, sigma2=0.2)):
        model.fit(X[kept], Y[kept])
        np.testing.assert_array_equal(model.row_weights_[3], 0.0)
    plain = sl.PMF(COV, None, n_factors=3, sigma2=0.2).fit(X[kept], Y[kept])
    np.testing.assert_array_equal(plain.scores([3]), 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_one_entry_is_found_from_any_start(seed):
    model = sl.KPMF(n_factors=1, random_state=seed).fit([[0, 0]], [3.0])
    assert model.predict([[0, 0]])[0] == pytest.approx(2.0, rel=1e-4)
