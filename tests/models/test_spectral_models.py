"""The models with a nuclear norm: consistent answers, names, paths, refusals."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import sidelight as sl

PAIRS = np.array([[0, 0], [0, 2], [1, 1], [2, 0], [3, 2], [4, 1], [4, 2]])
VALUES = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -1.0, 2.0])
GRAPH = np.array(
    [[0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 2], [0, 0, 0, 0, 0], [0, 0, 2, 0, 0]], float
)


def small(**settings):
    given = {"sigma2": 0.2, "lam": 0.5, "tol": 1e-10} | settings
    return sl.ConstrainedMVGP(sl.Diffusion(GRAPH), None, **given)


@pytest.mark.parametrize("kind", [sl.ConstrainedMVGP, sl.TraceGP])
def test_the_mean_satisfies_the_optimality_conditions(kind):
    """S = G'[alpha]G has B's singular vectors, with values lam + h s on them and no more off."""
    cov = sl.Diffusion(GRAPH)
    model = kind(cov, None, sigma2=0.2, lam=0.5, tol=1e-12).fit(PAIRS, VALUES)
    h = 1.0 if kind is sl.ConstrainedMVGP else 0.0
    root = cov.root(np.eye(5))
    alpha = np.zeros((5, 3))
    alpha[tuple(PAIRS.T)] = (VALUES - model.predict(PAIRS)) / 0.2
    S = root.T @ alpha
    B = np.linalg.inv(root) @ model.scores(range(5))
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    rank = model.certificate_.rank
    assert rank == np.sum(s > 1e-6)
    np.testing.assert_allclose(s[:rank], model.singular_values_, rtol=1e-6)
    U, s, V = U[:, :rank], s[:rank], Vt[:rank].T
    np.testing.assert_allclose(S @ V, U * (0.5 + h * s), atol=2e-5)
    np.testing.assert_allclose(U.T @ S, (V * (0.5 + h * s)).T, atol=2e-5)
    rest = S - (U * (0.5 + h * s)) @ V.T
    assert np.linalg.norm(rest, 2) <= 0.5 * (1 + 1e-4)


def test_scores_predict_and_rank_agree():
    model = small().fit(PAIRS, VALUES)
    table = model.scores(range(5))
    cells = np.argwhere(np.ones((5, 3)))
    np.testing.assert_allclose(model.predict(cells), table.ravel(), atol=1e-14)
    ranking = model.rank(4, top=3, exclude_observed=False)
    assert list(ranking.cols) == list(np.argsort(-table[4], kind="stable"))
    assert list(ranking.observed) == [n in (1, 2) for n in ranking.cols]
    assert [r["id"] for r in model.rank(4)] == ["0"]


def test_rank_gives_the_bound_of_each_pair():
    model = small(tol=1e-3).fit(PAIRS, VALUES)
    ranking = model.rank(2, exclude_observed=False)
    variance = sl.Diffusion(GRAPH).diagonal()[2]
    np.testing.assert_allclose(ranking.bounds, model.certificate_.bound * np.sqrt(variance))


def test_a_new_row_is_the_covariance_with_its_neighbours():
    model = small().fit(PAIRS, VALUES)
    links = np.array([[0, 0, 1.0, 0, 0], [0, 0, 0, 0, 0]])
    cross = sl.Diffusion(GRAPH).cross(links).apply(model.row_weights_)
    expected = cross @ model.col_factors_.T
    np.testing.assert_allclose(model.scores([5, 6], new_rows=links), expected, atol=1e-14)
    assert model.rank(5, new_rows=links).row_id == "new row 0"
    np.testing.assert_array_equal(expected[1], 0.0)  # nothing is known of a row without links


def test_ids_and_names_come_back_in_every_answer():
    data = sl.Dataset(
        row_ids=("d1", "d2", "d3", "d4", "d5"), col_ids=("g1", "g2", "g3"), pairs=PAIRS,
        values=VALUES, cols=sl.Side(names=("Alpha", "Beta", "Gamma")),
    )  # fmt: skip
    model = sl.ConstrainedMVGP(sigma2=0.2, lam=0.5).fit(data)
    assert model.rank("d5").ids == ("g1",)
    assert model.rank("d5").names == ("Alpha",)
    assert model.rank("d5").records()[0]["name"] == "Alpha"
    with pytest.raises(sl.InputError, match="no row with the id 'd9'"):
        model.rank("d9")


def test_covariances_follow_the_side_information():
    graph, features = nx.from_numpy_array(GRAPH), np.arange(15.0).reshape(5, 3)
    ids = [str(n) for n in range(5)]
    graph = nx.relabel_nodes(graph, dict(enumerate(ids)))
    entries = sp.coo_array((VALUES, PAIRS.T), shape=(5, 3))
    data = sl.dataset_from_sparse(entries, row_ids=ids, row_edges=graph, row_features=features)
    rows, cols = sl.covariances(data, row_heat=(2.0, 0.5))
    expected = sl.Diffusion(GRAPH, 2.0, 0.5).dense() + features @ features.T
    np.testing.assert_allclose(rows.dense(), expected, atol=1e-12)
    assert isinstance(cols, sl.Identity)
    assert cols.size == 3


def test_covariances_mix_in_the_entries_in_common():
    ids = tuple("abcde"), tuple("xyz")
    data = sl.Dataset(*ids, PAIRS, VALUES, rows=sl.Side(graph=sp.csr_array(GRAPH)))
    rows, cols = sl.covariances(data, shared_entries=0.25)
    known = np.zeros((5, 3))
    known[tuple(PAIRS.T)] = 1.0
    unit = known / np.sqrt(known.sum(axis=1, keepdims=True))
    expected = 0.75 * sl.Diffusion(GRAPH).dense() + 0.25 * unit @ unit.T
    np.testing.assert_allclose(rows.dense(), expected, atol=1e-12)
    unit = known.T / np.sqrt(known.sum(axis=0)[:, None])
    np.testing.assert_allclose(cols.dense(), 0.75 * np.eye(3) + 0.25 * unit @ unit.T, atol=1e-12)
    with pytest.raises(sl.InputError, match=r"shared_entries is 1\.5"):
        sl.covariances(data, shared_entries=1.5)


def test_the_path_equals_separate_fits():
    rng = np.random.default_rng(0)
    X = np.argwhere(rng.random((30, 12)) < 0.5)
    y = rng.standard_normal(len(X))
    model = sl.ConstrainedMVGP(sigma2=0.5, tol=1e-9)
    fitted = list(sl.regularization_path(model, X, y, count=4, ratio=0.05))
    assert [f.lam for f in fitted] == sorted((f.lam for f in fitted), reverse=True)
    assert fitted[0].certificate_.rank == 0
    for each in fitted:
        alone = sl.ConstrainedMVGP(sigma2=0.5, tol=1e-9, lam=each.lam).fit(X, y)
        assert each.certificate_.objective == pytest.approx(alone.certificate_.objective, rel=2e-9)
        assert each.certificate_.status == "certified"
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize(
    ("X", "y", "settings", "words"),
    [
        ([[0, 0, 0]], [1.0], {}, "shape"),
        ([[0, 0.5]], [1.0], {}, "whole numbers"),
        ([[0, 0]], [np.nan], {}, "nan at position 0"),
        ([[0, 0], [1, 1]], [1.0], {}, r"shape \(1,\) for 2 entries"),
        ([[0, 0]], ["a"], {}, "not numeric"),
        ([[7, 0]], [1.0], {}, "row 7 at position 0 is not in 0..4"),
        ([[0, -1]], [1.0], {}, "column -1"),
        (np.zeros((0, 2), int), [], {}, "no entries"),
        ([[0, 0]], [1.0], {"sigma2": 0.0}, "sigma2 is 0.0"),
        ([[0, 0]], [1.0], {"lam": -1.0}, "lam is -1.0"),
        ([[0, 0]], [1.0], {"mean": "median"}, "mean is 'median'"),
        ([[0, 0]], [1.0], {"max_rank": 0}, "max_rank is 0"),
        ([[0, 0]], None, {}, "target y is None"),
    ],
)
def test_bad_input_is_one_clear_sentence(X, y, settings, words):
    with pytest.raises(sl.InputError, match=words):
        small(**settings).fit(X, y)


def test_negative_weights_are_refused():
    with pytest.raises(sl.InputError, match="sample_weight -1 is negative"):
        small().fit(PAIRS, VALUES, -np.ones(7))


def test_watch_sees_the_trace():
    lines = []
    model = small().fit(PAIRS, VALUES, watch=lines.append)
    assert tuple(lines) == model.certificate_.trace
    assert lines[-1].relative_gap == model.certificate_.relative_gap


def test_a_row_of_which_nothing_is_known_is_ordered_by_popularity(tmp_path):
    """Counts 1, 2, 0 and 2 entries above zero: the ties keep the columns' order."""
    pairs = [[0, 0], [0, 1], [1, 1], [1, 2], [2, 3], [3, 3], [3, 2]]
    values = [1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 0.0]
    model = sl.ConstrainedMVGP(sl.Identity(5), sl.Identity(4), lam=0.1).fit(pairs, values)
    assert list(model.rank(4).cols) == [1, 3, 0, 2]
    model.save(tmp_path / "model")
    assert list(sl.load(tmp_path / "model").rank(4).cols) == [1, 3, 0, 2]
