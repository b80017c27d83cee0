"""Sampled negatives: exact draws, and the same ones for everybody who asks."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from sidelight.data import Negatives, sample_unknown
from sidelight.errors import InputError

PAIRS = np.array([[0, 0], [0, 2], [1, 1], [2, 0], [2, 1], [2, 2], [4, 0], [4, 2], [9, 1]])


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


def test_a_sample_is_its_seed_and_its_number():
    negatives = Negatives(ratio=0.6, seed=3)
    samples = [negatives.draw(PAIRS, (10, 3), number) for number in range(3)]
    assert [len(sample) for sample in samples] == [5, 5, 5]  # 0.6 * 9, rounded
    np.testing.assert_array_equal(samples[0], sample_unknown(PAIRS, (10, 3), 5, seed=3))
    assert len({frozenset(cells(sample)) for sample in samples}) == 3
    for number, sample in enumerate(samples):
        again = Negatives(ratio=0.6, value=-1.0, seed=3).draw(PAIRS, (10, 3), number)
        np.testing.assert_array_equal(again, sample)
        assert not cells(sample) & cells(PAIRS)


def test_too_many_negatives_are_refused_with_the_most_there_can_be():
    with pytest.raises(InputError, match=r"27 negatives .* 21 unknown cells; draw 2.333 or less"):
        Negatives(ratio=3.0).draw(PAIRS, (10, 3))
    assert len(Negatives(ratio=2.333).draw(PAIRS, (10, 3))) == 21


@pytest.mark.parametrize(
    "settings", [{"ratio": -1}, {"value": np.nan}, {"seed": -1}, {"seed": None}, {"seed": 1.5}]
)
def test_settings_without_meaning_are_refused(settings):
    with pytest.raises(InputError, match=f"{next(iter(settings))} is"):
        Negatives(**settings)
