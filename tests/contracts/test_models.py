"""What every model must do: name one and how to make it, inherit every check."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sidelight as sl

ROWS, COLS = 12, 7
RING = np.roll(np.eye(ROWS), 1, axis=0) + np.roll(np.eye(ROWS), -1, axis=0)
PATH = np.eye(COLS, k=1) + np.eye(COLS, k=-1)
RNG = np.random.default_rng(3)
PAIRS = np.argwhere(RNG.random((ROWS, COLS)) < 0.4)
PAIRS = PAIRS[PAIRS[:, 0] != 4]  # nothing is known of row 4
LABELS = np.where(RNG.random(len(PAIRS)) < 0.6, 1.0, -1.0)
LINKS = {"new_rows": RING[[4, 7]], "new_cols": PATH[[2]]}


def sides():
    return sl.Diffusion(RING), sl.Diffusion(PATH)


FACTORS = {"sigma2": 0.3, "random_state": 1}
MODELS = {
    "constrained": lambda: sl.ConstrainedMVGP(*sides(), lam=0.3, mean="biases", **FACTORS),
    "trace": lambda: sl.TraceGP(*sides(), lam=0.3, mean="graph-biases", **FACTORS),
    "refit": lambda: sl.TraceGP(*sides(), lam=0.3, refit=True, **FACTORS),
    "whole": lambda: sl.ConstrainedMVGP(*sides(), lam=0.3, unobserved_weight=0.1, **FACTORS),
    "mvgp": lambda: sl.MVGP(*sides(), sigma2=0.3, mean="global"),
    "kpmf": lambda: sl.KPMF(*sides(), n_factors=3, **FACTORS),
    "pmf": lambda: sl.PMF(*sides(), n_factors=3, **FACTORS),
    "prodige": lambda: sl.ProDiGe(*sides(), C=0.7),
    "popularity": lambda: sl.Popularity(*sides()),
    "bias": lambda: sl.Bias(*sides(), mean="graph-biases"),
    "propagation": lambda: sl.Propagation(*sides(), alpha=0.6),
    "bagged": lambda: sl.Bagged(sl.KPMF(*sides(), n_factors=2, **FACTORS), n=2),
    "bagged svm": lambda: sl.Bagged(sl.ProDiGe(*sides()), sl.Negatives(0.5, -1.0, seed=4), n=3),
    "bagged pmf": lambda: sl.Bagged(sl.PMF(n_factors=1, sigma2=0.3), n=2),
}


@pytest.fixture(params=MODELS)
def made(request):
    return MODELS[request.param]()


@pytest.fixture
def model(made):
    return made.fit(PAIRS, LABELS)


def plain(model):
    return {k: v for k, v in model.get_params().items() if not k.endswith("_cov") and k != "model"}


def test_fit_writes_no_parameter(made):
    before = made.get_params()
    made.fit(PAIRS, LABELS)
    assert made.get_params() == before


def test_a_clone_is_not_fitted_and_learns_the_same(made, model):
    again = clone(model)
    assert not hasattr(again, "pairs_")
    np.testing.assert_array_equal(again.fit(PAIRS, LABELS).predict(PAIRS), model.predict(PAIRS))


def test_the_order_of_the_entries_does_not_matter(made, model):
    if isinstance(made, sl.Bagged):
        return  # sampled cells come behind the entries
    order = np.random.default_rng(0).permutation(len(PAIRS))
    first = model.predict(PAIRS)
    again = clone(made).fit(PAIRS[order], LABELS[order]).predict(PAIRS)
    np.testing.assert_allclose(again, first, atol=2e-2 * np.abs(first).max())


def test_entries_without_weight_do_not_count(made):
    if isinstance(made, sl.Bagged):
        return  # a cell without weight is unknown, and can be sampled
    kept = np.arange(len(PAIRS)) % 5 > 0
    some = clone(made).fit(PAIRS[kept], LABELS[kept]).predict(PAIRS)
    found = made.fit(PAIRS, LABELS, sample_weight=kept.astype(float)).predict(PAIRS)
    np.testing.assert_allclose(found, some, atol=1e-12)


def test_scores_and_predictions_agree_for_known_and_new_items(model):
    new = {} if plain(model).get("n_factors") == 1 else LINKS
    if isinstance(model, sl.PMF):
        new = {"new_rows": 2, "new_cols": 1}  # its items are independent
    if isinstance(model, sl.Bagged) and isinstance(model.model, sl.PMF):
        new = {"new_rows": 2, "new_cols": 1}
    rows, cols = (ROWS + 2, COLS + 1) if new else (ROWS, COLS)
    cells = np.argwhere(np.ones((rows, cols)))
    table = model.scores(range(rows), **new)
    assert np.isfinite(table).all()
    np.testing.assert_allclose(table.ravel(), model.predict(cells, **new), atol=1e-10)


def test_ranks_are_by_score_then_popularity(model):
    scores, popularity = model.scores([4])[0], np.bincount(PAIRS[LABELS > 0, 1], minlength=COLS)
    order = sorted(range(COLS), key=lambda n: (-scores[n], -popularity[n], n))
    assert model.rank(4).cols.tolist() == order
    assert set(model.rank(0).cols) == set(range(COLS)) - set(PAIRS[PAIRS[:, 0] == 0, 1])


def test_a_file_answers_alike_bit_for_bit(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = sl.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert plain(loaded) == plain(model)
    np.testing.assert_array_equal(loaded.scores(range(ROWS)), model.scores(range(ROWS)))
    cells = np.argwhere(np.ones((ROWS, COLS)))
    np.testing.assert_array_equal(loaded.predict(cells), model.predict(cells))
    assert loaded.rank(0).records() == model.rank(0).records()
    assert loaded.certificate_ == model.certificate_
    for mine, theirs in zip(
        getattr(loaded, "models_", ()), getattr(model, "models_", ()), strict=True
    ):
        assert mine.rank(1).records() == theirs.rank(1).records()


def new_sides(model):
    """Say how a model's new items are described."""
    one = model.model if isinstance(model, sl.Bagged) else model
    return {"new_rows": 2, "new_cols": 1} if isinstance(one, sl.PMF) else LINKS


def test_an_explanation_adds_up_to_the_prediction(model):
    if isinstance(model, (sl.Popularity, sl.Bias)):
        with pytest.raises(sl.InputError, match=r"has no explanations: it is no product of covar"):
            model.explain(0, 0)
        return
    new = new_sides(model)
    for cell in [(0, 1), (4, 2), (ROWS, 3), (2, COLS), (ROWS + 1, COLS)]:
        told = model.explain(*cell, 3, **new)
        mean = model.predict([cell], **new)[0]
        assert told.prediction == pytest.approx(mean, abs=1e-8)
        assert sum(told.parts.values()) == pytest.approx(mean, abs=1e-8)
        assert "not traced" not in told.parts
        listed = sum(reason.amount for reason in told.entries)
        assert listed + told.rest == pytest.approx(told.parts["entries"], abs=1e-8)
        left = told.parts["entries"] + told.parts.get("unobserved cells", 0.0)
        for side in (told.rows, told.cols):
            carried = side.own + sum(each.amount for each in side.items) + side.rest
            assert carried == pytest.approx(left, abs=1e-8)
            assert len(side.items) <= 3


def test_a_file_explains_alike(model, tmp_path):
    if isinstance(model, (sl.Popularity, sl.Bias)):
        return
    model.save(tmp_path / "model")
    assert sl.load(tmp_path / "model").explain(4, 2) == model.explain(4, 2)


def test_a_loaded_model_fits_again(model, tmp_path):
    model.save(tmp_path / "model")
    again = clone(sl.load(tmp_path / "model")).fit(PAIRS, LABELS)
    np.testing.assert_allclose(again.predict(PAIRS), model.predict(PAIRS), atol=1e-10)


def test_a_dataset_gives_its_ids(made):
    ids = tuple(f"r{m}" for m in range(ROWS)), tuple(f"c{n}" for n in range(COLS))
    model = made.fit(sl.Dataset(*ids, PAIRS, LABELS))
    assert model.rank("r4").row_id == "r4"
    assert model.rank("r4").ids == tuple(f"c{n}" for n in model.rank(4).cols)


def test_bad_pairs_are_refused(made):
    with pytest.raises(sl.InputError, match=r"row 99 at position 0 is not in|99"):
        made.set_params().fit([[99, 0], [0, 0]], [1.0, -1.0]).predict([[100, 0]])


def test_what_is_no_covariance_is_refused(made):
    if isinstance(made, sl.Bagged):
        made = made.model
    with pytest.raises(sl.InputError, match="row_cov is a ndarray, not a covariance; wrap it"):
        made.set_params(row_cov=RING).fit(PAIRS, LABELS)


def test_rows_are_whole_numbers(model):
    for wrong in (1.5, None, ["r1"]):
        with pytest.raises(sl.InputError, match="is not a row number"):
            model.scores(wrong)
    with pytest.raises(sl.InputError, match="is not a row number"):
        model.rank(1.5)


def test_what_is_not_fitted_is_not_saved(made, tmp_path):
    with pytest.raises(NotFittedError):
        made.save(tmp_path / "model")
