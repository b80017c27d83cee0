from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from sidelight.errors import InputError
from sidelight.evaluation import known_entries, new_rows, sample_unknown

PAIRS = np.array([[0, 0], [0, 2], [1, 1], [2, 0], [2, 1], [2, 2], [4, 0], [4, 2], [9, 1]])


@pytest.mark.parametrize("split", [known_entries, new_rows])
def test_every_pair_is_tested_once_and_trains_otherwise(split):
    folds = list(split(PAIRS, 3, seed=1))
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate([t for _, t in folds])), np.arange(9))
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(9))


def test_entry_folds_differ_by_at_most_one_pair():
    assert sorted(len(test) for _, test in known_entries(PAIRS, 4, seed=0)) == [2, 2, 2, 3]


def test_new_rows_have_no_training_pair_and_are_shared_out_evenly():
    sizes = []
    for train, test in new_rows(PAIRS, 2, seed=3):
        assert not set(PAIRS[train, 0]) & set(PAIRS[test, 0])
        sizes.append(len(set(PAIRS[test, 0].tolist())))
    assert sorted(sizes) == [2, 3]


@pytest.mark.parametrize("split", [known_entries, new_rows])
def test_the_seed_decides_the_split(split):
    def tests(seed):
        return [test.tolist() for _, test in split(PAIRS, 3, seed)]

    assert tests(5) == tests(5)
    assert any(tests(5) != tests(seed) for seed in range(6, 12))


@pytest.mark.parametrize("folds", [1, 6])
def test_folds_that_the_rows_cannot_fill_are_refused(folds):
    with pytest.raises(InputError, match=f"5 rows with pairs cannot make {folds} folds"):
        list(new_rows(PAIRS, folds, seed=0))


def test_a_single_row_cannot_be_split():
    with pytest.raises(InputError, match="give two or more rows with pairs"):
        list(new_rows(PAIRS[:2], 2, seed=0))


def test_no_pairs_cannot_be_split():
    with pytest.raises(InputError, match="0 pairs cannot make 2 folds"):
        list(known_entries(PAIRS[:0], 2, seed=0))


def cells(pairs):
    return {tuple(pair) for pair in pairs.tolist()}


@pytest.mark.parametrize("count", range(8))
def test_samples_are_distinct_and_unknown_up_to_the_full_table(count):
    pairs = np.array([[4, 2], [0, 0], [0, 1], [0, 1], [3, 0], [2, 2], [1, 1], [2, 0], [2, 1]])
    drawn = sample_unknown(pairs, (5, 3), count, seed=2)
    assert drawn.shape == (count, 2)
    assert len(cells(drawn)) == count
    assert not cells(drawn) & cells(pairs)
    assert cells(drawn) <= {(m, n) for m in range(5) for n in range(3)}


def test_a_full_draw_is_every_unknown_cell_in_order():
    pairs = np.array([[1, 2], [0, 0], [4, 2]])
    unknown = [(m, n) for m in range(5) for n in range(3) if (m, n) not in cells(pairs)]
    np.testing.assert_array_equal(sample_unknown(pairs, (5, 3), 12, seed=0), unknown)


def test_every_set_of_cells_is_equally_likely():
    pairs = np.array([[m, n] for m in range(5) for n in range(3) if (m, n) not in FREE])
    draws = Counter(frozenset(cells(sample_unknown(pairs, (5, 3), 2, s))) for s in range(3000))
    assert set(draws) == {frozenset(pair) for pair in combinations(FREE, 2)}
    chi_squared = sum((count - 500) ** 2 / 500 for count in draws.values())
    assert chi_squared < 20.5  # the 0.999 quantile for 5 degrees of freedom; seeds are fixed


FREE = [(0, 0), (1, 2), (3, 1), (4, 2)]


def test_a_large_table_is_never_enumerated():
    pairs = np.array([[0, 0], [2_999_999, 1_999_999]])
    drawn = sample_unknown(pairs, (3_000_000, 2_000_000), 1000, seed=0)
    assert len(cells(drawn) - cells(pairs)) == 1000


def test_the_seed_decides_the_sample():
    first, second, other = (sample_unknown(PAIRS, (10, 3), 5, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert cells(first) != cells(other)


@pytest.mark.parametrize("count", [-1, 22])
def test_more_cells_than_are_unknown_are_refused(count):
    with pytest.raises(InputError, match=f"{count} cells cannot be drawn from 21 unknown ones"):
        sample_unknown(PAIRS, (10, 3), count, seed=0)
