"""What all models share: checked input, ids, predictions from scores, ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sidelight.covariance import Covariance, Cross, Identity
from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.models.ranking import Ranking
from sidelight.problem import Problem
from sidelight.solvers import Certificate, Watch

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

_MEANS = ("zero", "global")
_BLOCK = 256  # rows scored at a time


@dataclass(frozen=True)
class Axis:
    """The items of one axis: the known ones, then the new ones of this call."""

    what: str
    cov: Covariance
    new: Cross | None = None

    @classmethod
    def place(cls, what: str, cov: Covariance, new: Any) -> Axis:
        """Put new items, described as the covariance asks, behind the known ones."""
        return cls(what, cov, None if new is None else cov.cross(new))

    @property
    def size(self) -> int:
        """Count known and new items."""
        return self.cov.size + (0 if self.new is None else self.new.size)

    def check(self, index: NDArray[np.int64]) -> None:
        """Refuse an index beyond the items there are."""
        wrong = np.flatnonzero((index < 0) | (index >= self.size))
        if wrong.size:
            raise InputError(
                f"{self.what} {index[wrong[0]]} at position {wrong[0]} is not in"
                f" 0..{self.size - 1}",
                remedy=f"use {self.what} numbers that the covariance knows, or describe new ones",
            )

    def split(self, index: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Say which items are new, and number the new ones from 0."""
        new = index >= self.cov.size
        return new, index[new] - self.cov.size

    def spread(self, weights: Floats, images: Floats, index: NDArray[np.int64]) -> Floats:
        """Return ``C(items, known) weights`` for the items asked.

        ``images`` is ``C weights`` for the known items, which need only be read off.
        """
        new, number = self.split(index)
        out = np.empty((len(index), weights.shape[1]))
        out[~new] = images[index[~new]]
        if new.any() and self.new is not None:
            out[new] = self.new.apply(weights)[number]
        return out

    def rows(self, index: NDArray[np.int64]) -> Floats:
        """Return ``C(items, known)`` for the items asked."""
        new, number = self.split(index)
        out = np.empty((len(index), self.cov.size))
        out[~new] = self.cov.rows(index[~new])
        if new.any() and self.new is not None:
            picks, place = np.unique(number, return_inverse=True)
            out[new] = _cross_rows(self.new, picks)[place]
        return out

    def variances(self, index: NDArray[np.int64]) -> Floats:
        """Return the prior variances of the items asked."""
        new, number = self.split(index)
        out = np.empty(len(index))
        out[~new] = self.cov.diagonal(index[~new])
        if new.any() and self.new is not None:
            out[new] = self.new.diagonal()[number]
        return out


def _cross_rows(new: Cross, index: NDArray[np.int64]) -> Floats:
    """Return rows of ``C(new, known)``, by columns of the known items."""
    out = np.empty((len(index), new.known))
    for at in range(0, new.known, _BLOCK):
        picks = np.eye(new.known, min(_BLOCK, new.known - at), -at)
        out[:, at : at + _BLOCK] = new.apply(picks)[index]
    return out


class PairModel(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A model of a table, fitted to pairs (row, column) and their values."""

    row_cov: Covariance | None
    col_cov: Covariance | None
    sigma2: float
    mean: str
    certificate_: Certificate

    def fit(
        self,
        X: ArrayLike | Dataset,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        watch: Watch | None = None,
    ) -> Self:
        """Fit to known entries.

        Parameters
        ----------
        X
            An (L, 2) integer array of (row, column), or a Dataset: then ``y`` is its own, and its
            ids and names come back in every answer.
        y
            The value of each entry.
        sample_weight
            Multiplies the weight ``1 / sigma2`` of each entry; entries of weight 0 do not count.
        watch
            Called with the solver's progress, line by line.
        """
        self._solve(self._prepare(X, y, sample_weight), watch)
        return self

    def _prepare(
        self, X: ArrayLike | Dataset, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Problem:
        """Check everything, settle ids and the mean function, and state the problem."""
        data = X if isinstance(X, Dataset) else None
        pairs, values, weights = _entries(X, y, sample_weight)
        self._check_parameters()
        self._name(data, pairs)
        for column, axis in enumerate((self._rows(), self._cols())):
            axis.check(pairs[:, column])
        counted = weights > 0
        pairs, values, weights = pairs[counted], values[counted], weights[counted]
        self.mean_ = float(np.average(values, weights=weights)) if self.mean == "global" else 0.0
        self.pairs_, self.n_features_in_ = pairs, 2
        return Problem(
            pairs, values - self.mean_, weights / self.sigma2, self.row_cov_, self.col_cov_,
            self._ridge(),
        )  # fmt: skip

    def _check_parameters(self) -> None:
        positive(self.sigma2, "sigma2")
        if self.mean not in _MEANS:
            raise InputError(
                f"mean is {self.mean!r}", remedy=f"choose one of {', '.join(map(repr, _MEANS))}"
            )

    def _name(self, data: Dataset | None, pairs: Pairs) -> None:
        """Settle covariances, ids and names."""
        seen = (1 + pairs.max(axis=0, initial=-1)) if data is None else data.shape
        self.row_cov_ = Identity(int(seen[0])) if self.row_cov is None else self.row_cov
        self.col_cov_ = Identity(int(seen[1])) if self.col_cov is None else self.col_cov
        for axis, cov, k in (("row", self.row_cov_, 0), ("col", self.col_cov_, 1)):
            if data is not None and cov.size != data.shape[k]:
                raise InputError(
                    f"{axis}_cov has {cov.size} items and the dataset {data.shape[k]} {axis}s",
                    remedy=f"make {axis}_cov from this dataset, see sidelight.covariances",
                )
        sizes = (self.row_cov_.size, self.col_cov_.size)
        numbers = tuple(tuple(map(str, range(size))) for size in sizes)
        self.row_ids_, self.col_ids_ = numbers if data is None else (data.row_ids, data.col_ids)
        self.row_names_ = None if data is None else data.rows.names
        self.col_names_ = None if data is None else data.cols.names

    def predict(
        self, X: ArrayLike, *, new_rows: Any = None, new_cols: Any = None
    ) -> NDArray[np.float64]:
        """Return the mean for pairs (row, column).

        Row numbers from the number of known rows on count into ``new_rows``, which describes rows
        that were not there at fit time as the row covariance's ``cross`` asks; columns alike.
        """
        check_is_fitted(self)
        pairs = _pairs(X)
        rows, cols = self._rows(new_rows), self._cols(new_cols)
        rows.check(pairs[:, 0])
        cols.check(pairs[:, 1])
        return self.mean_ + self._means(pairs, rows, cols)

    def scores(
        self, rows: ArrayLike, *, new_rows: Any = None, new_cols: Any = None
    ) -> NDArray[np.float64]:
        """Return the mean for whole rows: one line for each row asked, one column for each item."""
        check_is_fitted(self)
        index = np.atleast_1d(np.asarray(rows, dtype=np.int64))
        row_axis, col_axis = self._rows(new_rows), self._cols(new_cols)
        row_axis.check(index)
        return self.mean_ + self._table(index, row_axis, col_axis)

    def rank(
        self,
        row: int | str,
        top: int = 20,
        exclude_observed: bool = True,
        *,
        new_rows: Any = None,
    ) -> Ranking:
        """Rank the columns of one row, best first; equal scores keep the columns' order.

        Parameters
        ----------
        row
            A row's number or id; with ``new_rows``, numbers from the number of known rows on.
        top
            How many columns to return at most.
        exclude_observed
            Leave out the columns that this row was fitted on.
        new_rows
            Describes rows that were not there at fit time.
        """
        check_is_fitted(self)
        number = self.row_index(row) if isinstance(row, str) else int(row)
        scores = self.scores([number], new_rows=new_rows)[0]
        observed = np.zeros(len(scores), dtype=bool)
        observed[self.pairs_[self.pairs_[:, 0] == number, 1]] = True
        order = np.argsort(-scores, kind="stable")
        order = order[~observed[order]] if exclude_observed else order
        cols = order[: max(int(top), 0)]
        known = number < len(self.row_ids_)
        return Ranking(
            row_id=self.row_ids_[number] if known else f"new row {number - len(self.row_ids_)}",
            cols=cols,
            ids=tuple(self.col_ids_[n] for n in cols),
            names=None if self.col_names_ is None else tuple(self.col_names_[n] for n in cols),
            scores=scores[cols],
            observed=observed[cols],
            bounds=self._bounds(number, cols, self._rows(new_rows)),
        )

    def row_index(self, row_id: str) -> int:
        """Return the number of the row with this id."""
        return _index(row_id, self.row_ids_, "row")

    def col_index(self, col_id: str) -> int:
        """Return the number of the column with this id."""
        return _index(col_id, self.col_ids_, "column")

    def _bounds(self, row: int, cols: NDArray[np.int64], rows: Axis) -> Floats | None:
        factor = self.certificate_.bound
        if factor is None:
            return None
        variance = rows.variances(np.array([row]))[0] * self._cols().variances(cols)
        return np.asarray(factor * np.sqrt(variance))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, whole or not at all; nothing in it is pickled."""
        from sidelight.models.storage import save

        save(self, Path(path))

    def _rows(self, new: Any = None) -> Axis:
        return Axis.place("row", self.row_cov_, new)

    def _cols(self, new: Any = None) -> Axis:
        return Axis.place("column", self.col_cov_, new)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.regressor_tags.poor_score = True  # not on features, which is what the checks send
        return tags

    @abstractmethod
    def _ridge(self) -> float:
        """Return h."""

    @abstractmethod
    def _solve(self, problem: Problem, watch: Watch | None) -> None:
        """Solve and keep the answer."""

    @abstractmethod
    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        """Return the mean of pairs, without the mean function."""

    @abstractmethod
    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        """Return the mean of whole rows, without the mean function."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learnt, for the file."""

    @abstractmethod
    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what was learnt."""


def positive(value: float, name: str) -> None:
    """Refuse a parameter that is not a positive finite number."""
    if not (isinstance(value, Real) and 0 < value < np.inf):
        raise InputError(
            f"{name} is {value!r}", remedy=f"choose a positive finite number for {name}"
        )


def _entries(
    X: ArrayLike | Dataset, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Pairs, Floats, Floats]:
    if isinstance(X, Dataset):
        y = X.values if y is None else y
    pairs = _pairs(X.pairs if isinstance(X, Dataset) else X)
    if y is None:
        raise InputError(
            "fit requires y to be passed, but the target y is None",
            remedy="give the value of each entry, or a Dataset as X",
        )
    values = _numbers(y, "y", len(pairs))
    weights = np.ones(len(pairs))
    if sample_weight is not None:
        weights = _numbers(sample_weight, "sample_weight", len(pairs))
        if (weights < 0).any():
            raise InputError(
                f"sample_weight {weights.min():g} is negative", remedy="use weights >= 0"
            )
    if not (weights > 0).any():
        raise InputError(
            "there are no entries, or all their weights are zero",
            remedy="give at least one entry to fit on",
        )
    return pairs, values, weights


def _pairs(X: ArrayLike) -> Pairs:
    if issparse(X):
        raise InputError(
            "X is a sparse matrix and must be a list of pairs",
            remedy="use sidelight.dataset_from_sparse for a sparse table",
        )
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported", remedy="give row and column numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError("X contains NaN or inf", remedy="give row and column numbers")
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"X has shape {array.shape}", remedy="give an (L, 2) array of (row, column)"
        )
    if array.dtype.kind not in "iuf" or (array.size and not np.all(array == np.floor(array))):
        raise InputError(
            f"X is not made of whole numbers (its dtype is {array.dtype})",
            remedy="give row and column numbers; a Dataset turns ids into numbers",
        )
    return array.astype(np.int64)


def _numbers(values: ArrayLike, name: str, count: int) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not numeric", remedy="give numbers") from None
    if array.shape != (count,):
        raise InputError(
            f"{name} has shape {array.shape} for {count} entries",
            remedy="give one number for each entry",
        )
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise InputError(
            f"{name} is {array[wrong[0]]} at position {wrong[0]}",
            remedy="leave out entries whose value is not known",
        )
    return array


def _index(wanted: str, ids: tuple[str, ...], what: str) -> int:
    try:
        return ids.index(wanted)
    except ValueError:
        raise InputError(
            f"there is no {what} with the id {wanted!r}",
            remedy=f"use one of the model's {len(ids)} {what} ids",
        ) from None
