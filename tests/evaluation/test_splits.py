import numpy as np
import pytest

from sidelight.errors import InputError
from sidelight.evaluation import known_entries, new_rows

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
