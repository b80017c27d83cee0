import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from sidelight.errors import InputError
from sidelight.evaluation import calibration_table, coverage, crps, row_means

LEVELS = (0.5, 0.8, 0.9, 0.95)


def integrated(value, mean, std):
    """Integrate the squared distance of the two distribution functions, on each side of it."""
    wide = 12 * std + abs(value - mean)
    below, _ = quad(lambda x: ndtr((x - mean) / std) ** 2, mean - wide, value, epsabs=1e-12)
    above, _ = quad(lambda x: ndtr((mean - x) / std) ** 2, value, mean + wide, epsabs=1e-12)
    return below + above


def test_coverage_counts_both_ends():
    found = coverage([1.0, 1.0, 1.0, 1.0, 1.0], [1, 0, 1.1, -np.inf, 0], [2, 1, 2, np.inf, 0.9])
    np.testing.assert_array_equal(found, [1, 1, 0, 1, 0])


def test_row_means_are_those_of_each_row():
    rows, means = row_means([4, 0, 4, 2, 4], [1.0, 0.0, 0.0, 3.0, 1.0])
    np.testing.assert_array_equal(rows, [0, 2, 4])
    np.testing.assert_allclose(means, [0, 3, 2 / 3], rtol=1e-15)


@pytest.mark.parametrize("value", [-3.0, 0.4, 0.5, 2.0, 9.0])
@pytest.mark.parametrize("std", [0.3, 1.0, 4.0])
def test_crps_is_its_integral(value, std):
    assert crps([value], [0.5], [std])[0] == pytest.approx(integrated(value, 0.5, std), abs=1e-9)


def test_crps_of_a_point_is_the_absolute_error():
    values, mean = np.array([1.0, -2.0, 3.0, 3.0]), np.array([4.0, 1.0, 3.0, 1.0])
    exact = [3, 3, 0, 2]
    np.testing.assert_array_equal(crps(values, mean, np.zeros(4)), exact)
    np.testing.assert_allclose(crps(values, mean, np.full(4, 1e-300)), exact, atol=1e-15)


def test_crps_moves_and_scales_with_the_values():
    rng = np.random.default_rng(0)
    values, mean, std = rng.normal(size=7), rng.normal(size=7), rng.exponential(size=7)
    expected = 3 * crps(values, mean, std)
    np.testing.assert_allclose(crps(3 * values + 2, 3 * mean + 2, 3 * std), expected, rtol=1e-12)
    np.testing.assert_allclose(crps(-3 * values, -3 * mean, 3 * std), expected, rtol=1e-12)


def test_crps_is_least_in_expectation_for_the_true_spread():
    middles = (np.arange(20000) + 0.5) / 20000
    values = np.interp(middles, ndtr(np.linspace(-6, 6, 20001)), np.linspace(-6, 6, 20001))
    scores = [crps(values, 0 * values, 0 * values + std).mean() for std in (0.9, 1.0, 1.1)]
    assert min(scores) == scores[1] == pytest.approx(1 / np.sqrt(np.pi), abs=1e-4)


def test_a_calibration_table_of_the_true_distribution():
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=40000), rng.exponential(size=40000)
    table = calibration_table(mean + std * rng.normal(size=40000), mean, std)
    assert tuple(line["level"] for line in table) == LEVELS
    for line, z in zip(
        table, (0.6744897502, 1.2815515655, 1.6448536270, 1.9599639845), strict=True
    ):
        error = np.sqrt(line["level"] * (1 - line["level"]) / 40000)
        assert abs(line["coverage"] - line["level"]) < 4 * error
        assert line["width"] == pytest.approx(2 * z * std.mean(), rel=1e-9)


def test_a_calibration_table_shows_a_spread_that_is_too_small():
    values = np.random.default_rng(2).normal(size=40000)
    table = calibration_table(values, 0 * values, np.full(40000, 0.5), levels=[0.9])
    assert table[0]["coverage"] == pytest.approx(2 * ndtr(0.5 * 1.6448536270) - 1, abs=0.01)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([1.0, np.nan], [0, 0], [1, 1]), "values is nan at position 1"),
        (([1.0, np.inf], [0, 0], [1, 1]), "values is inf at position 1"),
        (([1.0, 2.0], [0, 3], [1, 2]), "low is 3 and high is 2 at position 1"),
        (([1.0, 2.0], [0], [1, 1]), r"values \(2,\), low \(1,\), high \(2,\): not lists"),
    ],
)
def test_unusable_intervals_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        coverage(*given)


@pytest.mark.parametrize(
    ("mean", "std", "said"),
    [
        ([0, np.inf], [1, 1], "mean is inf at position 1"),
        ([0, 0], [1, -1], "std is -1 at position 1"),
        ([0, 0], [1, np.nan], "std is nan at position 1"),
    ],
)
def test_unusable_normals_are_refused(mean, std, said):
    for metric in (crps, calibration_table):
        with pytest.raises(InputError, match=said):
            metric([1.0, 2.0], mean, std)


@pytest.mark.parametrize("level", [0, 1, float("nan")])
def test_unusable_levels_are_refused(level):
    with pytest.raises(InputError, match="choose levels between 0 and 1"):
        calibration_table([1.0], [0.0], [1.0], levels=[level])


def test_nothing_to_tabulate_is_refused():
    with pytest.raises(InputError, match="there are no entries"):
        calibration_table([], [], [])


def test_rows_and_numbers_of_two_lengths_are_refused():
    with pytest.raises(InputError, match="not two lists of one length"):
        row_means([0, 1], [1.0])
