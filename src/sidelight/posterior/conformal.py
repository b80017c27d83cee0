"""Split-conformal intervals by group of rows, for the predictions of any model.

A score is ``|y - prediction|``. The calibration entries of a group have ``n_g`` scores, and the
half-width of the group at a level is the ``k``-th smallest of them, ``k = ceil((n_g + 1) level)``;
it is infinite when ``k > n_g``, that is with fewer than ``level / (1 - level)`` entries.

The guarantee, for any model, right or wrong: if the scores of the calibration entries of a group
and of a wanted entry of the same group are exchangeable, then

    ``P(y in interval) >= level``,

and without ties the probability is ``k / (n_g + 1) <= level + 1 / (n_g + 1)`` (an infinite interval
holds ``y`` always). Given the calibration entries, the share of wanted entries that are covered is
then itself random, Beta(k, n_g + 1 - k) for scores drawn independently.

What the condition asks. The model saw neither the calibration nor the wanted entries, and is the
same for both: it is not fitted again on all entries afterwards. Wanted entries are drawn as the
calibration entries were: those held out at random speak for known rows; new rows are covered only
if calibration rows were new too. The groups are settled before the calibration entries are drawn.
``RowGroups.by_activity`` puts its borders by the rows of these entries, though never by their
values: the bounds are then approximate, and exact again when it is given the rows of other entries,
such as the fitted ones.

What the guarantee does not say. It is marginal over draws of the calibration entries, and within
each group; it is not conditional on a row, and not simultaneous over many entries.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.errors import InputError

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

LEAST = 50  # calibration entries in a group of active rows
_FINEST = 10**9  # of the denominators of a level
_NOTHING_KNOWN = 0  # the group, by activity, of rows without entries


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The group of each row, known or new.

    Parameters
    ----------
    codes
        The group of each known row, 0 to ``count - 1``.
    labels
        What each group is called.
    fresh
        The group of new rows of which no label is given; None: they need one.
    """

    codes: Index
    labels: tuple[Hashable, ...]
    fresh: int | None = None

    @classmethod
    def by_activity(
        cls, counts: ArrayLike, calibration_rows: ArrayLike, count: int, least: int = LEAST
    ) -> Self:
        """Group rows by the number of entries that they were fitted on.

        The borders are quantiles over calibration entries: groups have about as many of them each,
        and ``least`` or more, or there are fewer groups. Rows without entries, and new rows, are
        the first group; its intervals are infinite unless calibration entries lie there.

        Parameters
        ----------
        counts
            The number of fitted entries of each known row.
        calibration_rows
            The row of each calibration entry; numbers beyond the known rows are new rows. The rows
            of the fitted entries instead settle the borders before calibration.
        count
            The number of groups of rows with entries, at most.
        least
            Calibration entries that such a group needs.
        """
        for name, value in (("count", count), ("least", least)):
            _refuse_small(value, name)
        fitted = _whole(counts, "counts")
        rows = _whole(calibration_rows, "calibration_rows")
        active = _padded(fitted, 0, rows)
        borders = _borders(np.sort(active[active > 0]), count, least)
        codes = np.where(fitted > 0, 1 + np.searchsorted(borders, fitted), _NOTHING_KNOWN)
        return cls(codes.astype(np.int64), _activities(borders), _NOTHING_KNOWN)

    @classmethod
    def given(cls, labels: Iterable[Hashable]) -> Self:
        """Group the known rows by labels, one for each row; equal labels are one group."""
        each = _hashable(labels)
        known = {label: code for code, label in enumerate(dict.fromkeys(each))}
        return cls(np.array([known[label] for label in each], dtype=np.int64), tuple(known))

    @property
    def count(self) -> int:
        """Count the groups."""
        return len(self.labels)

    def of(self, rows: ArrayLike, new: Iterable[Hashable] | None = None) -> Index:
        """Return the groups of rows.

        Row numbers from the number of known rows on count into ``new``, the labels of new rows.
        """
        index = _whole(rows, "rows")
        if new is None and self.fresh is not None:
            return _padded(self.codes, self.fresh, index)
        codes = np.concatenate([self.codes, self._codes_of(() if new is None else new)])
        _refuse_beyond(index, len(codes), "row", "label the new rows, in the order of their number")
        return codes[index]

    def _codes_of(self, labels: Iterable[Hashable]) -> Index:
        known = {label: code for code, label in enumerate(self.labels)}
        each = _hashable(labels)
        unseen = next((label for label in each if label not in known), None)
        if unseen is not None:
            raise InputError(
                f"no known row has the label {unseen!r}",
                remedy=f"use one of the {self.count} labels of the known rows",
            )
        return np.array([known[label] for label in each], dtype=np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the groups, for the file."""
        strange = [x for x in self.labels if not isinstance(x, str | int | float)]
        if strange:
            raise InputError(
                f"the label {strange[0]!r} cannot be saved", remedy="use text or numbers as labels"
            )
        return {
            "codes": self.codes,
            "labels": np.frombuffer(json.dumps(self.labels).encode(), dtype=np.uint8),
            "fresh": np.array([-1 if self.fresh is None else self.fresh]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Take back what ``arrays`` gave."""
        labels = tuple(json.loads(arrays["labels"].tobytes()))
        fresh = int(arrays["fresh"][0])
        return cls(arrays["codes"], labels, None if fresh < 0 else fresh)


@dataclass(frozen=True, eq=False)
class Conformal:
    """The scores of the calibration entries, group after group and sorted in each.

    Parameters
    ----------
    scores
        The absolute residuals.
    starts
        Group ``g`` has the scores from ``starts[g]`` to before ``starts[g + 1]``.
    """

    scores: Floats
    starts: Index

    @classmethod
    def calibrate(
        cls, residuals_abs: ArrayLike, groups: ArrayLike, count: int | None = None
    ) -> Self:
        """Keep the scores of calibration entries.

        Parameters
        ----------
        residuals_abs
            ``|y - prediction|`` of each calibration entry, by a model that did not see it.
        groups
            The group of each, numbered from 0.
        count
            The number of groups, of which some may have no calibration entry; None: those up to
            the last that has one.
        """
        scores, codes = _scores(residuals_abs), _whole(groups, "groups")
        if not 0 < len(scores) == len(codes):
            raise InputError(
                f"there are {len(scores)} residuals and {len(codes)} groups",
                remedy="give the residual and the group of each calibration entry, one or more",
            )
        count = int(codes.max()) + 1 if count is None else count
        _refuse_beyond(codes, count, "group", "count all groups")
        sizes = np.bincount(codes, minlength=count)
        return cls(scores[np.lexsort((scores, codes))], np.r_[0, np.cumsum(sizes)])

    @property
    def counts(self) -> Index:
        """Count the calibration entries of each group."""
        return np.diff(self.starts)

    def half_width(self, groups_of_wanted: ArrayLike, level: float) -> Floats:
        """Return the half-width for each wanted entry, infinite where its group has too few."""
        codes = _whole(groups_of_wanted, "groups")
        _refuse_beyond(codes, len(self.counts), "group", "use the groups of the calibration")
        return self._half_widths(level)[codes]

    def interval(self, mean: ArrayLike, groups: ArrayLike, level: float) -> tuple[Floats, Floats]:
        """Return the ends, both included, of the interval for each wanted entry.

        Parameters
        ----------
        mean
            The prediction of each.
        groups
            The group of each.
        level
            The probability to cover, between 0 and 1.
        """
        centre, half = np.asarray(mean, dtype=np.float64), self.half_width(groups, level)
        if centre.shape != half.shape:
            raise InputError(
                f"mean has shape {centre.shape} for {len(half)} groups",
                remedy="give the mean and the group of each wanted entry",
            )
        # A value that is as far away as the width must not fall out by rounding: it may be a tie.
        half = half + 2 * np.finfo(np.float64).eps * (np.abs(centre) + half)
        return centre - half, centre + half

    def _half_widths(self, level: float) -> Floats:
        """Return the half-width of each group."""
        ranks = [_rank(int(n), level) for n in self.counts]
        widths = [
            self.scores[start + rank - 1] if rank <= n else np.inf
            for start, rank, n in zip(self.starts[:-1], ranks, self.counts, strict=True)
        ]
        return np.array(widths, dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the scores, for the file."""
        return {"scores": self.scores, "starts": self.starts}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Take back what ``arrays`` gave."""
        return cls(arrays["scores"], arrays["starts"])


def _rank(n: int, level: float) -> int:
    """Return ``ceil((n + 1) level)`` for the level that was meant: 9/10, not the double beside."""
    if not (isinstance(level, Real) and 0 < level < 1):
        raise InputError(f"level is {level!r}", remedy="choose a level between 0 and 1")
    meant = Fraction(float(level)).limit_denominator(_FINEST)
    return max(1, ceil((n + 1) * meant))


def _borders(ordered: Index, count: int, least: int) -> Index:
    """Return the highest activity of each group but the last, for the sorted ones of entries."""
    size = len(ordered)
    groups, borders, taken = min(count, size // least), [], 0
    for k in range(1, groups):
        border = ordered[-(-k * size // groups) - 1]
        below = int(np.searchsorted(ordered, border, side="right"))
        if min(below - taken, size - below) >= least:
            borders.append(border)
            taken = below
    return np.array(borders, dtype=np.int64)


def _activities(borders: Index) -> tuple[str, ...]:
    """Name the groups by activity."""
    lows, tops = [1, *(borders + 1).tolist()], borders.tolist()
    between = [f"{low} to {top} entries" for low, top in zip(lows, tops, strict=False)]
    return ("no entries", *between, f"{lows[-1]} or more entries")


def _hashable(labels: Iterable[Hashable]) -> list[Hashable]:
    """Return labels as plain objects, of which each is equal to itself."""
    each = [label.item() if isinstance(label, np.generic) else label for label in labels]
    for position, label in enumerate(each):
        if not _is_key(label):
            raise InputError(
                f"the label {label!r} at position {position} cannot name a group",
                remedy="use text, whole numbers or anything else that a dict takes as a key",
            )
    return each


def _is_key(label: Any) -> bool:
    try:
        hash(label)
        return bool(label == label)
    except TypeError:
        return False


def _scores(residuals_abs: ArrayLike) -> Floats:
    scores = np.asarray(residuals_abs, dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(scores) & (scores >= 0)))
    if scores.ndim != 1 or wrong.size:
        what = f"{scores[wrong[0]]:g} at position {wrong[0]}" if scores.ndim == 1 else "not a list"
        raise InputError(
            f"residuals_abs is {what}", remedy="give |y - prediction| of each calibration entry"
        )
    return scores


def _whole(numbers: ArrayLike, name: str) -> Index:
    array = np.asarray(numbers)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0:
        raise InputError(
            f"{name} is not a list of whole numbers from 0 on", remedy=f"give {name} as integers"
        )
    return array.astype(np.int64)


def _padded(numbers: Index, beyond: int, index: Index) -> Index:
    """Return ``numbers[index]``, and ``beyond`` for what is beyond them."""
    out = np.full(len(index), beyond, dtype=np.int64)
    known = index < len(numbers)
    out[known] = numbers[index[known]]
    return out


def _refuse_small(value: object, name: str) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) and value >= 1):
        raise InputError(f"{name} is {value!r}", remedy=f"choose a whole number >= 1 for {name}")


def _refuse_beyond(index: Index, size: int, what: str, remedy: str) -> None:
    wrong = np.flatnonzero(index >= size)
    if wrong.size:
        raise InputError(
            f"{what} {index[wrong[0]]} at position {wrong[0]} is not in 0..{size - 1}",
            remedy=remedy,
        )
