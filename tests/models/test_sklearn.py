"""The models are scikit-learn estimators, as far as that makes sense for pairs."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import sidelight as sl

rng = np.random.default_rng(0)
X = np.argwhere(rng.random((30, 12)) < 0.6)
Y = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 12))
y = Y[tuple(X.T)]
FEATURES = rng.standard_normal((30, 2))


def test_clone_and_set_params():
    cov = sl.Features(FEATURES)
    model = sl.ConstrainedMVGP(cov, lam=2.0).fit(X, y)
    copy = clone(model)
    assert copy.row_cov is cov
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "certificate_")
    assert model.set_params(lam=3.0).lam == 3.0


def test_fit_does_not_write_its_parameters():
    model = sl.ConstrainedMVGP(mean="global")
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before


@pytest.mark.parametrize("splits", [KFold(3, shuffle=True, random_state=0), GroupKFold(3)])
@pytest.mark.parametrize("kind", [sl.ConstrainedMVGP, sl.TraceGP, sl.MVGP])
def test_grid_search_known_rows_and_new_rows(kind, splits):
    row_cov = sl.Features(FEATURES, kernel="rbf") + 0.1 * sl.Identity(30)
    grid = {"sigma2": [0.1, 10.0]}
    search = GridSearchCV(
        kind(row_cov, sl.Identity(12)), grid, cv=splits, scoring="neg_mean_squared_error"
    )
    groups = X[:, 0] if isinstance(splits, GroupKFold) else None
    search.fit(X, y, groups=groups)
    by_hand = [
        cross_val_score(
            kind(row_cov, sl.Identity(12), sigma2=s), X, y, groups=groups, cv=splits,
            scoring="neg_mean_squared_error",
        ).mean()
        for s in grid["sigma2"]
    ]  # fmt: skip
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_hand, rtol=1e-6)
    assert search.best_params_["sigma2"] == grid["sigma2"][int(np.argmax(by_hand))]


def test_threads_and_processes_give_the_same_answer():
    model = sl.ConstrainedMVGP(sl.Identity(30), sl.Identity(12), sigma2=0.1)
    alone = cross_val_score(model, X, y, cv=3)
    np.testing.assert_allclose(cross_val_score(model, X, y, cv=3, n_jobs=2), alone, rtol=1e-12)


TABLES = "sends a table of features, and X is a list of pairs (row, column)"
SIZES = "asks for scikit-learn's words about a number of features, and X always has two columns"
NOISE = "sends real numbers as X, and X is made of row and column numbers"
FAILS = {
    "check_all_zero_sample_weights_error": TABLES,
    "check_dict_unchanged": TABLES,
    "check_dont_overwrite_parameters": TABLES,
    "check_dtype_object": TABLES,
    "check_estimators_dtypes": TABLES,
    "check_estimators_empty_data_messages": SIZES,
    "check_estimators_fit_returns_self": NOISE,
    "check_estimators_nan_inf": "fits a table of features first",
    "check_estimators_overwrite_params": NOISE,
    "check_estimators_pickle": TABLES,
    "check_f_contiguous_array_estimator": TABLES,
    "check_fit2d_1feature": SIZES,
    "check_fit2d_1sample": SIZES,
    "check_fit2d_predict1d": TABLES,
    "check_fit_check_is_fitted": NOISE,
    "check_fit_idempotent": NOISE,
    "check_fit_score_takes_y": TABLES,
    "check_methods_sample_order_invariance": TABLES,
    "check_methods_subset_invariance": TABLES,
    "check_n_features_in": NOISE,
    "check_n_features_in_after_fitting": TABLES,
    "check_pipeline_consistency": TABLES,
    "check_positive_only_tag_during_fit": "sends negative numbers as X",
    "check_readonly_memmap_input": NOISE,
    "check_regressor_data_not_an_array": TABLES,
    "check_regressors_int": TABLES,
    "check_regressors_no_decision_function": TABLES,
    "check_regressors_train": TABLES,
    "check_sample_weight_equivalence_on_dense_data": TABLES,
    "check_sample_weights_list": TABLES,
    "check_requires_y_none": NOISE,
    "check_supervised_y_2d": TABLES,
}


@pytest.mark.parametrize("kind", [sl.ConstrainedMVGP, sl.TraceGP, sl.MVGP])
def test_check_estimator(kind):
    """Every check that fails is listed in FAILS with its reason, and every listed one fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(kind(), expected_failed_checks=FAILS, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(FAILS)


def test_what_the_excluded_checks_ask_holds_for_pairs():
    """Lists and permutations of pairs, weights against repetition, zero weights, idempotence."""
    model = sl.ConstrainedMVGP(sl.Identity(30), sl.Identity(12), sigma2=0.5, tol=1e-10)
    first = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(X.tolist(), y.tolist()).predict(X.tolist()), first)
    order = rng.permutation(len(X))
    np.testing.assert_allclose(model.fit(X[order], y[order]).predict(X), first, atol=1e-4)
    twice = model.fit(np.vstack([X, X[:9]]), np.r_[y, y[:9]]).predict(X)
    weights = np.where(np.arange(len(X)) < 9, 2.0, 1.0)
    np.testing.assert_allclose(model.fit(X, y, weights).predict(X), twice, atol=1e-4)
    some = model.fit(X, y, np.where(np.arange(len(X)) < 9, 0.0, 1.0)).predict(X)
    np.testing.assert_allclose(model.fit(X[9:], y[9:]).predict(X), some, atol=1e-4)
    with pytest.raises(sl.InputError, match="weights are zero"):
        model.fit(X, y, np.zeros(len(X)))
