from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sidelight.errors import InputError
from sidelight.evaluation import (
    KS,
    hits_at,
    indicator,
    measure_rows,
    precision_at,
    recall_at,
    rmse,
)

SHAPES = [(5, 3), (4, 6)]


def brute_hits(ks, scores, relevant, known):
    """Average, over every order of the candidates, the hits of a stable sort."""
    candidates = np.flatnonzero(~known)
    orders = [
        sorted(order, key=lambda column: -scores[column]) for order in permutations(candidates)
    ]
    return [np.mean([relevant[order[:k]].sum() for order in orders]) for k in ks]


def tables(shape, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, shape).astype(float)  # many ties
    state = rng.integers(0, 3, shape)
    return scores, state == 1, state == 2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_hits_are_the_mean_over_all_orders_of_ties(shape, seed):
    scores, relevant, known = tables(shape, seed)
    ks = range(1, shape[1] + 2)
    expected = [brute_hits(ks, *row) for row in zip(scores, relevant, known, strict=True)]
    found = hits_at(ks, scores, csr_array(relevant * 1.0), csr_array(known * 1.0))
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_constant_score_gets_the_random_ranking(shape):
    _, relevant, known = tables(shape, 7)
    ks = np.arange(1, shape[1] + 1)
    candidates = (~known).sum(axis=1)[:, None]
    expected = relevant.sum(axis=1)[:, None] * np.minimum(ks / np.maximum(candidates, 1), 1.0)
    sparse = csr_array(relevant * 1.0), csr_array(known * 1.0)
    np.testing.assert_allclose(hits_at(ks, np.full(shape, 2.5), *sparse), expected, atol=1e-14)


def test_precision_and_recall_of_a_ranking_written_by_hand():
    scores = np.array([[5.0, 4.0, 3.0, 2.0], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 2.0]])
    relevant = indicator(np.array([[0, 1], [0, 3], [1, 0]]), (3, 4))
    known = indicator(np.array([[0, 0], [1, 3]]), (3, 4))
    precision = precision_at([1, 2, 3], scores, relevant, known)
    recall = recall_at([1, 2, 3], scores, relevant, known)
    np.testing.assert_allclose(precision, [[1, 1 / 2, 2 / 3], [0, 0, 1 / 3], [0, 0, 0]])
    np.testing.assert_allclose(recall, [[1 / 2, 1 / 2, 1], [0, 0, 1], [np.nan] * 3])


def test_infinite_scores_rank_first_and_last():
    scores = np.array([[-np.inf, 0.0, np.inf, -np.inf]])
    relevant = indicator(np.array([[0, 0], [0, 2]]), (1, 4))
    known = indicator(np.array([[0, 1]]), (1, 4))
    np.testing.assert_allclose(hits_at([1, 2, 3], scores, relevant, known), [[1.0, 1.5, 2.0]])


def test_lists_do_not_depend_on_the_order_of_columns():
    scores, relevant, known = tables((5, 3), 11)
    order = np.array([2, 0, 1])
    there = hits_at([1, 2], scores, csr_array(relevant * 1.0), csr_array(known * 1.0))
    back = hits_at(
        [1, 2],
        scores[:, order],
        csr_array(relevant[:, order] * 1.0),
        csr_array(known[:, order] * 1.0),
    )
    np.testing.assert_array_equal(there, back)


def test_measure_rows_skips_rows_without_a_test_pair_and_works_in_blocks(monkeypatch):
    monkeypatch.setattr("sidelight.evaluation.metrics._BLOCK", 2)
    scores, relevant, known = tables((5, 3), 3)
    asked = []

    def score_rows(rows):
        asked.append(rows.tolist())
        return scores[rows]

    found = measure_rows(
        score_rows, np.argwhere(relevant), np.argwhere(known), (5, 3), ks=range(1, 4)
    )
    rows = np.flatnonzero(relevant.any(axis=1))
    sparse = csr_array(relevant * 1.0), csr_array(known * 1.0)
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.ks, [1, 2, 3])
    np.testing.assert_array_equal(found.recall, recall_at(found.ks, scores, *sparse)[rows])
    np.testing.assert_array_equal(found.precision, precision_at(found.ks, scores, *sparse)[rows])
    assert asked == [rows[i : i + 2].tolist() for i in range(0, len(rows), 2)]


def test_the_paper_measures_lists_of_one_to_twenty():
    assert tuple(range(1, 21)) == KS


def test_repeated_pairs_count_once():
    pairs = np.array([[4, 2], [0, 1], [4, 2]])
    expected = np.zeros((5, 3))
    expected[[4, 0], [2, 1]] = 1.0
    np.testing.assert_array_equal(indicator(pairs, (5, 3)).toarray(), expected)


def test_rmse_of_known_errors():
    assert rmse([1.0, 2.0, 3.0], [1.0, 5.0, -1.0]) == pytest.approx(np.sqrt(25 / 3), rel=1e-15)


def empty(shape):
    return indicator(np.empty((0, 2), dtype=int), shape)


def test_a_score_that_is_not_a_number_is_refused_at_its_place():
    scores = np.zeros((5, 3))
    scores[3, 1] = np.nan
    with pytest.raises(InputError, match=r"\(row, column\) \(3, 1\) of the block is not a number"):
        hits_at([1], scores, empty((5, 3)), empty((5, 3)))


def test_a_pair_both_to_find_and_known_is_refused_at_its_place():
    pairs = indicator(np.array([[4, 2]]), (5, 3))
    with pytest.raises(InputError, match=r"\(row, column\) \(4, 2\) of the block is both"):
        hits_at([1], np.zeros((5, 3)), pairs, pairs)


def test_scores_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"scores \(3, 5\), relevant \(5, 3\), known \(5, 3\)"):
        hits_at([1], np.zeros((3, 5)), empty((5, 3)), empty((5, 3)))


@pytest.mark.parametrize("ks", [[], [0, 1]])
def test_unusable_list_lengths_are_refused(ks):
    with pytest.raises(InputError, match="list lengths"):
        hits_at(ks, np.zeros((5, 3)), empty((5, 3)), empty((5, 3)))


def test_nothing_to_find_is_refused():
    none = np.empty((0, 2), dtype=int)
    with pytest.raises(InputError, match="no test pair"):
        measure_rows(lambda rows: np.zeros((len(rows), 3)), none, none, (5, 3))
