"""The guarantee of split-conformal intervals, group by group, and what the groups are."""

from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from safetensors.numpy import load, save
from scipy.special import erf
from scipy.stats import beta, kstest

from sidelight.errors import InputError
from sidelight.posterior.conformal import Conformal, RowGroups

REPLICATIONS = 4000
SIZES = [19, 20, 37]
SPREADS = np.array([0.2, 1.0, 5.0])  # of the groups with these sizes
GROUPS = np.repeat(np.arange(3), SIZES)
COUNTS = np.array([0, 1, 2, 3, 4, 0, 5, 6])  # fitted entries of eight rows


def rank(n, percent):
    """Return ``ceil((n + 1) percent / 100)`` in whole numbers."""
    return -(-(n + 1) * percent // 100)


def covered(half_widths, spreads):
    """Return the probability that a centred normal is within the half-width."""
    return erf(half_widths / (spreads * np.sqrt(2)))


def shares(level, by_group, seed=0):
    """Return the share of wanted entries that each draw of calibration entries covers."""
    rng = np.random.default_rng(seed)
    codes = GROUPS if by_group else np.zeros_like(GROUPS)
    asked = np.arange(3) if by_group else np.zeros(3, dtype=int)
    draws = np.abs(rng.normal(size=(REPLICATIONS, len(GROUPS)))) * SPREADS[GROUPS]
    return np.array(
        [
            covered(Conformal.calibrate(draw, codes).half_width(asked, level), SPREADS)
            for draw in draws
        ]
    )


@pytest.mark.parametrize("percent", [50, 90])
def test_coverage_has_its_beta_distribution_within_each_group(percent):
    found = shares(percent / 100, by_group=True)
    for n, share in zip(SIZES, found.T, strict=True):
        k = rank(n, percent)
        exact = beta(k, n + 1 - k)
        assert exact.mean() == pytest.approx(k / (n + 1), rel=1e-12)
        assert abs(share.mean() - k / (n + 1)) < 4 * exact.std() / np.sqrt(REPLICATIONS)
        assert percent / 100 <= k / (n + 1) <= percent / 100 + 1 / (n + 1)
        assert kstest(share, exact.cdf).pvalue > 1e-3


def test_without_groups_the_wide_group_is_not_covered():
    share = shares(0.9, by_group=False).mean(axis=0)
    assert share[0] > 0.99
    assert share[2] < 0.9 - 0.05


@pytest.mark.parametrize("percent", [50, 90])
def test_intervals_hold_values_as_often_as_they_should(percent):
    rng = np.random.default_rng(1)
    asked, hits = np.arange(3), np.zeros(3)
    for _ in range(REPLICATIONS):
        mean, wanted = rng.normal(size=len(GROUPS)), rng.normal(size=3)
        values = mean + SPREADS[GROUPS] * rng.standard_t(2, size=len(GROUPS))
        low, high = Conformal.calibrate(np.abs(values - mean), GROUPS).interval(
            wanted, asked, percent / 100
        )
        value = wanted + SPREADS * rng.standard_t(2, size=3)
        hits += (low <= value) & (value <= high)
    exact = np.array([rank(n, percent) / (n + 1) for n in SIZES])
    error = np.sqrt(exact * (1 - exact) / REPLICATIONS)
    assert np.all(np.abs(hits / REPLICATIONS - exact) < 4 * error)


def left_out(scores, percent):
    """Count the scores that the others' half-width covers, each left out in turn."""
    zeros = np.zeros(len(scores) - 1, dtype=int)
    return sum(
        score <= Conformal.calibrate(np.delete(scores, i), zeros).half_width([0], percent / 100)[0]
        for i, score in enumerate(scores)
    )


@pytest.mark.parametrize("n", [1, 4, 9, 19, 20])
@pytest.mark.parametrize("percent", [1, 7, 10, 29, 50, 57, 90, 95, 99])
def test_over_all_orders_exactly_the_rank_is_covered(n, percent):
    rng = np.random.default_rng(n)
    assert left_out(rng.permutation(n + 1) / 7, percent) == rank(n, percent)
    tied = rng.integers(0, 3, n + 1) / 7
    assert left_out(tied, percent) >= rank(n, percent)


@pytest.mark.parametrize("n", [1, 9, 10, 19, 24, 49, 99, 199])
def test_the_rank_does_not_suffer_from_rounding(n):
    made = Conformal.calibrate(np.arange(1.0, n + 1), np.zeros(n, dtype=int))
    for percent in range(1, 100):
        k = rank(n, percent)
        for level in (percent / 100, 1 - (1 - percent / 100), np.float64(percent) * 0.01):
            assert made.half_width([0], level)[0] == (k if k <= n else np.inf)


def test_plain_rounding_would_have_failed_above():
    levels = np.arange(1, 100) / 100
    assert any(
        ceil((n + 1) * level) != rank(n, p)
        for n in (9, 19, 49, 99, 199)
        for p, level in enumerate(levels, 1)
    )


def test_the_least_and_the_greatest_levels():
    made = Conformal.calibrate([3.0, 1.0, 2.0], [0, 0, 0])
    assert made.half_width([0], 1e-12)[0] == 1
    assert made.half_width([0], 1 - 1e-12)[0] == np.inf


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_too_few_entries_make_the_interval_infinite(level):
    enough = round(level / (1 - level))
    sizes = [enough - 1, enough]
    made = Conformal.calibrate(np.ones(sum(sizes)), np.repeat([0, 1], sizes), count=3)
    np.testing.assert_array_equal(made.counts, [*sizes, 0])
    np.testing.assert_array_equal(made.half_width([2, 1, 0, 1], level), [np.inf, 1, np.inf, 1])
    low, high = made.interval([5.0, -5.0, 0.0], [0, 1, 2], level)
    np.testing.assert_array_equal(np.isinf(low), [True, False, True])
    np.testing.assert_array_equal(high[[0, 2]], [np.inf, np.inf])
    np.testing.assert_allclose([low[1], high[1]], [-6, -4], rtol=1e-14)


def test_a_value_at_the_end_of_its_interval_does_not_fall_out_by_rounding():
    rng = np.random.default_rng(2)
    values, mean = rng.integers(-5, 6, 20000).astype(float), rng.normal(0, 3, 20000)
    each = np.arange(len(values))
    made = Conformal.calibrate(np.abs(values - mean), each)
    low, high = made.interval(mean, each, 0.5)
    assert np.all((low <= values) & (values <= high))
    half = np.abs(values - mean)
    assert not np.all((mean - half <= values) & (values <= mean + half))
    np.testing.assert_allclose(high - low, 2 * half, rtol=0, atol=1e-13)


def test_the_order_of_calibration_entries_does_not_matter():
    rng = np.random.default_rng(3)
    scores, order = rng.exponential(size=len(GROUPS)), rng.permutation(len(GROUPS))
    there, back = (
        Conformal.calibrate(scores, GROUPS),
        Conformal.calibrate(scores[order], GROUPS[order]),
    )
    np.testing.assert_array_equal(there.scores, back.scores)
    np.testing.assert_array_equal(there.starts, back.starts)


def test_groups_do_not_touch_each_other():
    scores = np.array([1.0, 10.0, 2.0, 20.0, 3.0, 30.0])
    made = Conformal.calibrate(scores, [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(made.half_width([1, 0], 0.5), [20, 2])
    np.testing.assert_array_equal(made.half_width([1, 0], 0.75), [30, 3])


def entries(per_row):
    """Return the row of each entry."""
    return np.repeat(np.arange(len(per_row)), per_row)


def test_borders_by_activity_are_quantiles_of_calibration_entries():
    rows = entries([0, 10, 10, 10, 10, 0, 10, 10])
    groups = RowGroups.by_activity(COUNTS, rows, 3, least=5)
    np.testing.assert_array_equal(groups.codes, [0, 1, 1, 2, 2, 0, 3, 3])
    assert groups.labels == ("no entries", "1 to 2 entries", "3 to 4 entries", "5 or more entries")
    np.testing.assert_array_equal(np.bincount(groups.of(rows)), [0, 20, 20, 20])


def test_borders_follow_entries_and_not_rows():
    rows = entries([0, 40, 20, 20, 40, 0, 60, 60])
    groups = RowGroups.by_activity(COUNTS, rows, 2, least=1)
    np.testing.assert_array_equal(groups.codes, [0, 1, 1, 1, 1, 0, 2, 2])


@pytest.mark.parametrize(("least", "count"), [(60, 1), (61, 1), (30, 2), (31, 1), (20, 3), (10, 6)])
def test_there_are_fewer_groups_where_entries_do_not_suffice(least, count):
    rows = entries([0, 10, 10, 10, 10, 0, 10, 10])
    groups = RowGroups.by_activity(COUNTS, rows, 6, least=least)
    assert groups.count == 1 + count


@pytest.mark.parametrize("seed", range(20))
def test_every_active_group_has_its_least(seed):
    rng = np.random.default_rng(seed)
    counts = rng.geometric(rng.uniform(0.05, 0.9), 300) - 1  # with many ties
    rows = rng.choice(300, 1000, p=(counts + 0.1) / (counts + 0.1).sum())
    groups = RowGroups.by_activity(counts, rows, 8)
    sizes = np.bincount(groups.of(rows), minlength=groups.count)
    assert sizes[1:].min() >= 50
    assert groups.count <= 1 + 8
    tops = [counts[groups.codes == code] for code in range(1, groups.count)]
    assert all(a.max() < b.min() for a, b in pairwise(tops))
    np.testing.assert_array_equal(groups.codes == 0, counts == 0)


def test_without_ties_the_groups_are_equal_up_to_one():
    groups = RowGroups.by_activity(np.arange(1, 1001), np.arange(1000), 7)
    sizes = np.bincount(groups.codes)[1:]
    assert len(sizes) == 7
    assert np.ptp(sizes) <= 1


def test_new_rows_are_covered_only_by_rows_that_were_new():
    known = entries([0, 10, 10, 10, 10, 0, 10, 10])
    groups = RowGroups.by_activity(COUNTS, known, 2)
    wanted = groups.of([0, 1, 8, 10**12])
    np.testing.assert_array_equal(wanted, [0, 1, 0, 0])
    one = Conformal.calibrate(np.ones(len(known)), groups.of(known), groups.count)
    np.testing.assert_array_equal(one.half_width(wanted, 0.9), [np.inf, 1, np.inf, np.inf])
    rows = np.r_[known, np.full(20, 5), np.full(50, 9)]  # without entries, and new
    other = RowGroups.by_activity(COUNTS, rows, 2)  # they do not make up for active rows
    np.testing.assert_array_equal(other.codes, groups.codes)
    both = Conformal.calibrate(np.r_[np.ones(60), np.full(70, 2)], other.of(rows), other.count)
    np.testing.assert_array_equal(both.half_width(wanted, 0.9), [2, 1, 2, 2])


def test_borders_put_by_fitted_entries_keep_the_guarantee():
    counts = np.array([1, 2, 3, 4, 5])
    groups = RowGroups.by_activity(counts, entries(counts), 2, least=5)
    np.testing.assert_array_equal(groups.codes, [1, 1, 1, 1, 2])
    rng, level, hits = np.random.default_rng(4), 0.8, []
    for _ in range(REPLICATIONS):
        rows = rng.choice(5, 40, p=counts / 15)  # the last is wanted
        scores = np.abs(rng.normal(size=40)) * counts[rows]
        made = Conformal.calibrate(scores[:-1], groups.of(rows[:-1]), groups.count)
        sizes = made.counts[groups.of(rows[-1:])]
        exact = min(ceil((sizes[0] + 1) * 4 / 5) / (sizes[0] + 1), 1)
        hits.append((scores[-1] <= made.half_width(groups.of(rows[-1:]), level)[0]) - exact)
    assert abs(np.mean(hits)) < 4 * np.std(hits) / np.sqrt(REPLICATIONS)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c", "a"],
        np.array(["b", "a", "b", "c", "a"]),
        [2, 1, 2, 3, 1],
        np.array([2, 1, 2, 3, 1]),
        [("x", 2), None, ("x", 2), 1.5, None],
    ],
)
def test_given_labels_make_groups(labels):
    groups = RowGroups.given(labels)
    np.testing.assert_array_equal(groups.codes, [0, 1, 0, 2, 1])
    assert groups.count == 3
    np.testing.assert_array_equal(groups.of([4, 3]), [1, 2])
    np.testing.assert_array_equal(groups.of([6, 0, 5], new=[labels[3], labels[1]]), [1, 0, 2])


@pytest.mark.parametrize(
    "groups",
    [
        RowGroups.given(["b", "a", "b", "é", "a"]),
        RowGroups.given([2, 1, 2, 3, 1]),
        RowGroups.by_activity([0, 1, 2, 3, 4], entries([0, 9, 9, 9, 9]), 2, least=5),
    ],
)
def test_files_keep_groups_and_scores(groups):
    rows = np.arange(5)
    made = Conformal.calibrate(rows**2 + 0.1, groups.of(rows), groups.count)
    parts = load(save({f"groups.{name}": part for name, part in groups.arrays().items()}))
    back = RowGroups.from_arrays({k.removeprefix("groups."): v for k, v in parts.items()})
    np.testing.assert_array_equal(back.codes, groups.codes)
    assert (back.labels, back.fresh) == (groups.labels, groups.fresh)
    again = Conformal.from_arrays(load(save(made.arrays())))
    for level in (0.3, 0.6, 0.9):
        np.testing.assert_array_equal(
            again.half_width(back.of(rows), level), made.half_width(groups.of(rows), level)
        )


def test_an_unseen_label_is_refused():
    groups = RowGroups.given(["b", "a"])
    with pytest.raises(InputError, match="no known row has the label 'd'; use one of the 2 labels"):
        groups.of([2, 3], new=["a", "d"])


def test_a_new_row_without_a_label_is_refused():
    groups = RowGroups.given(["b", "a"])
    with pytest.raises(InputError, match=r"row 2 at position 1 is not in 0\.\.1; label the new"):
        groups.of([0, 2])


@pytest.mark.parametrize("label", [float("nan"), [1], ({},)])
def test_a_label_that_is_no_key_is_refused(label):
    with pytest.raises(InputError, match="at position 1 cannot name a group"):
        RowGroups.given(["a", label])


def test_a_label_that_is_neither_text_nor_number_cannot_be_saved():
    with pytest.raises(InputError, match=r"label \('x', 2\) cannot be saved"):
        RowGroups.given(["a", ("x", 2)]).arrays()


@pytest.mark.parametrize("options", [{"count": 0}, {"count": 1.5}, {"count": 2, "least": 0}])
def test_unusable_numbers_of_groups_are_refused(options):
    with pytest.raises(InputError, match="choose a whole number >= 1"):
        RowGroups.by_activity([1, 2], [0, 1], **options)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, float("nan"), "0.9"])
def test_levels_outside_of_0_to_1_are_refused(level):
    with pytest.raises(InputError, match="choose a level between 0 and 1"):
        Conformal.calibrate([1.0], [0]).half_width([0], level)


@pytest.mark.parametrize(
    ("scores", "groups", "said"),
    [
        ([1.0, -2.0], [0, 0], "residuals_abs is -2 at position 1"),
        ([1.0, np.nan], [0, 0], "residuals_abs is nan at position 1"),
        ([[1.0], [2.0]], [0, 0], "residuals_abs is not a list"),
        ([1.0, 2.0], [0], "there are 2 residuals and 1 groups"),
        ([], [], "there are 0 residuals and 0 groups"),
        ([1.0, 2.0], [0, -1], "groups is not a list of whole numbers"),
        ([1.0, 2.0], [0.0, 1.0], "groups is not a list of whole numbers"),
        ([1.0, 2.0], [0, 3], r"group 3 at position 1 is not in 0\.\.1"),
    ],
)
def test_unusable_calibration_entries_are_refused(scores, groups, said):
    with pytest.raises(InputError, match=said):
        Conformal.calibrate(scores, groups, 2)


def test_unusable_wanted_entries_are_refused():
    made = Conformal.calibrate([1.0, 2.0], [0, 1])
    with pytest.raises(InputError, match=r"group 2 at position 1 is not in 0\.\.1"):
        made.half_width([0, 2], 0.5)
    with pytest.raises(InputError, match=r"mean has shape \(3,\) for 2 groups"):
        made.interval([1.0, 2.0, 3.0], [0, 1], 0.5)
