"""The second stage: the planted rank, a stationary point, and the first stage's proof kept."""

import numpy as np
import pytest

import sidelight as sl

SIZE, RANK = 300, 4
RNG = np.random.default_rng(0)
U, V = RNG.standard_normal((2, SIZE, RANK)) * 10**-0.25
TABLE = U @ V.T
X = np.column_stack(np.divmod(RNG.choice(SIZE**2, 12_000, replace=False), SIZE))
Y = TABLE[tuple(X.T)] + 0.3 * RNG.standard_normal(len(X))
SIDES = {"row_cov": sl.Identity(SIZE), "col_cov": sl.Identity(SIZE)}


def fitted(kind=sl.TraceGP, refit=True, tau=4.0, sigma2=1.0):
    return kind(**SIDES, sigma2=sigma2, lam=tau / sigma2, refit=refit).fit(X, Y)


def test_the_certificate_is_the_first_stage_s():
    plain, twice = fitted(refit=False), fitted()
    assert plain.refit_ is None
    assert twice.certificate_.objective == plain.certificate_.objective
    assert twice.certificate_.status == "certified"
    assert twice.refit_.certified_rank == plain.certificate_.rank
    np.testing.assert_array_equal(twice.refit_.certified_values, plain.singular_values_)
    assert plain.rank(0).bounds is None
    assert twice.rank(0).bounds is None
    ridge = fitted(sl.ConstrainedMVGP, sigma2=0.05)
    assert ridge.certificate_.bound is not None
    assert ridge.rank(0).bounds is None


@pytest.mark.parametrize("tau", [5.0, 4.0, 2.5])
@pytest.mark.parametrize("kind", [sl.TraceGP, sl.ConstrainedMVGP])
def test_the_planted_rank_is_found_and_the_shrinkage_undone(kind, tau):
    model = fitted(kind, tau=tau, sigma2=0.05)
    assert model.certificate_.status == "certified"
    assert model.refit_.rank == len(model.singular_values_) == RANK
    certified = np.array(model.refit_.certified_values[:RANK])
    truth = np.linalg.svd(TABLE, compute_uv=False)[:RANK]
    assert (np.abs(model.singular_values_ - truth) < np.abs(certified - truth)).all()


def test_the_second_stage_is_stationary_for_its_own_objective():
    model = fitted()
    ridge, slope = model.refit_.ridge, np.zeros((SIZE, SIZE))
    slope[tuple(X.T)] = model.predict(X) - Y
    P, Q = model.row_factors_, model.col_factors_
    np.testing.assert_allclose(slope @ Q, -ridge * P, atol=1e-3 * ridge * np.abs(P).max())
    np.testing.assert_allclose(slope.T @ P, -ridge * Q, atol=1e-3 * ridge * np.abs(Q).max())
    loss = 0.5 * np.sum(slope[tuple(X.T)] ** 2)
    objective = loss + 0.5 * ridge * (np.sum(P**2) + np.sum(Q**2))
    assert model.refit_.objective == pytest.approx(objective, rel=1e-9)


def test_a_mean_of_zero_stays_zero():
    model = sl.TraceGP(lam=1e9, refit=True).fit(X, Y)
    assert model.refit_.rank == model.certificate_.rank == 0
    np.testing.assert_array_equal(model.predict(X), 0.0)


def test_a_path_is_refitted_at_each_step():
    model = sl.TraceGP(**SIDES, refit=True)
    for each in sl.regularization_path(model, X, Y, lams=[5.0, 4.0]):
        alone = fitted(tau=each.lam)
        assert each.refit_.rank == alone.refit_.rank
        np.testing.assert_allclose(each.predict(X), alone.predict(X), atol=0.02)


@pytest.mark.parametrize("seed", range(20))
def test_few_entries_keep_every_direction_that_they_hold_out_nothing_of(seed):
    pairs, values = np.array([[0, 0], [1, 1], [2, 2], [3, 3]]), np.array([5.0, 5.0, 5.0, 5.0])
    model = sl.TraceGP(lam=0.01, refit=True, random_state=seed).fit(pairs, values)
    assert model.refit_.rank == model.refit_.certified_rank == 4
    assert model.refit_.held_out > 0
    alone = sl.TraceGP(lam=0.01, refit=True, random_state=seed).fit(pairs[:1], values[:1])
    assert (alone.refit_.rank, alone.refit_.held_out) == (1, None)


def test_a_bag_of_refits_has_no_bounds():
    model = sl.ConstrainedMVGP(lam=0.8, refit=True)
    positives = X[Y > 1][:60]
    assert sl.Bagged(model, n=2).fit(positives).rank(0).bounds is None
    assert sl.Bagged(model.set_params(refit=False), n=2).fit(positives).rank(0).bounds is not None
