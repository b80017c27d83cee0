"""How sure a model is: postdata, calibrated intervals, what a ranking tells of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sidelight.covariance import Covariance
from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.models.inputs import check_entries, check_pairs
from sidelight.posterior import PRECISION, Calibration, Mixture, Postdata, around

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

_MOST_FOR_ALL = 20_000  # entries up to which a ranking has standard deviations unasked


class Uncertain(ABC):
    """A fitted model that says how sure it is, as far as it can."""

    pairs_: Pairs
    row_cov_: Covariance
    calibration_: Calibration | None
    _postdata: Postdata | Mixture | None

    @abstractmethod
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        new_rows: Any = None,
        new_cols: Any = None,
    ) -> Any:
        """Return the mean of pairs, alone or with what is asked beside it."""

    @property
    def postdata_(self) -> Postdata | Mixture:
        """The answer as a distribution; models without one raise AttributeError."""
        check_is_fitted(self)
        if self._postdata is None:
            self._postdata = self.postdata()
        return self._postdata

    def postdata(self, precision: float = PRECISION) -> Postdata | Mixture:
        """Return the answer as a distribution, its variances right to ``precision``.

        That is an error relative to the prior's variance; smaller tables are exact to rounding.
        """
        raise AttributeError(f"{type(self).__name__} has no postdata: it is no Gaussian process")

    def _distribution(self) -> Postdata | Mixture:
        try:
            return self.postdata_
        except AttributeError as reason:
            raise InputError(
                str(reason),
                remedy="use MVGP, or ConstrainedMVGP without unobserved_weight, or calibrate",
            ) from None

    def calibrate(
        self,
        X: ArrayLike | Dataset,
        y: ArrayLike | None = None,
        *,
        groups: Iterable[Hashable] | None = None,
        count: int = 5,
    ) -> Self:
        """Learn conformal intervals from entries that the model was not fitted on.

        Whatever the model, an interval then holds an entry drawn like these, from the same group of
        rows, with the level's probability or more. Hold the entries out at random before the fit.

        Parameters
        ----------
        X, y
            Calibration entries, as in ``fit``.
        groups
            A label for each known row; equal labels share intervals. None: rows with similar
            numbers of fitted entries do.
        count
            The number of such groups, at most; each has at least 50 calibration entries.
        """
        check_is_fitted(self)
        pairs, values, _ = check_entries(X, y, None)
        known = set(map(tuple, self.pairs_.tolist()))
        seen = next((pair for pair in map(tuple, pairs.tolist()) if pair in known), None)
        if seen is not None:
            raise InputError(
                f"the calibration entry {seen} was fitted on",
                remedy="hold calibration entries out before the fit",
            )
        fitted = np.bincount(self.pairs_[:, 0], minlength=self.row_cov_.size)
        missed = values - self.predict(pairs)
        self.calibration_ = Calibration.of(missed, pairs[:, 0], fitted, groups, count)
        return self

    def predict_interval(
        self,
        X: ArrayLike,
        level: float = 0.9,
        intervals: str = "postdata",
        *,
        new_rows: Any = None,
        new_cols: Any = None,
        new_groups: Iterable[Hashable] | None = None,
    ) -> tuple[Floats, Floats]:
        """Return the lower and upper ends of intervals for observations of pairs (row, column).

        Parameters
        ----------
        X
            An (L, 2) integer array.
        level
            The probability that an interval holds the observation.
        intervals
            "postdata": the Gaussian process' own, right as far as the model is; too narrow where
            the nuclear norm shrinks the mean. "conformal": from ``calibrate``, right for any model.
        new_rows, new_cols
            As in ``predict``.
        new_groups
            Labels of new rows, where ``calibrate`` was given labels.
        """
        check_is_fitted(self)
        if intervals == "postdata":
            found = self._distribution()
            return found.interval(X, level, new_rows=new_rows, new_cols=new_cols)
        if intervals != "conformal":
            raise InputError(
                f"intervals is {intervals!r}", remedy='choose "postdata" or "conformal"'
            )
        if self.calibration_ is None:
            raise InputError(
                "conformal intervals are asked for, and the model is not calibrated",
                remedy="call calibrate with entries that were held out",
            )
        mean = self.predict(X, new_rows=new_rows, new_cols=new_cols)
        return self.calibration_.interval(mean, check_pairs(X)[:, 0], level, new_groups)

    def _spread(
        self, row: int, cols: NDArray[np.int64], intervals: str, level: float, new_rows: Any
    ) -> dict[str, Floats | None]:
        """Return standard deviations and ends of intervals for some columns of a row."""
        pairs = np.column_stack([np.full(len(cols), row), cols]).astype(np.int64)
        nothing: dict[str, Floats | None] = {"stds": None, "low": None, "high": None}
        kind = self._kind() if intervals == "auto" else intervals
        if kind == "none":
            return nothing
        if kind != "postdata":
            low, high = self.predict_interval(pairs, level, kind, new_rows=new_rows)
            return nothing | {"low": low, "high": high}
        try:
            mean, std = self.predict(pairs, return_std=True, new_rows=new_rows)
        except InputError:
            if intervals != "auto":
                raise
            return nothing  # the variance of a new row is not known
        low, high = around(mean, std, self._distribution().noise, level)
        return {"stds": std, "low": low, "high": high}

    def _kind(self) -> str:
        """Return the intervals that a ranking has unasked."""
        if self.calibration_ is not None:
            return "conformal"
        cheap = hasattr(self, "postdata_") and len(self.pairs_) <= _MOST_FOR_ALL
        return "postdata" if cheap else "none"
