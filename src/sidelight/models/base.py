"""What all models share: checked input, ids, predictions from scores, ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sidelight.covariance import Axis, Covariance, Identity
from sidelight.data import Dataset
from sidelight.errors import InputError
from sidelight.models.explanation import Explanation, Labels, explanation
from sidelight.models.inputs import check_entries, check_pairs, find_id, whole
from sidelight.models.means import MeanFunction, check_mean, fit_mean
from sidelight.models.ranking import Ranking
from sidelight.models.uncertain import Uncertain
from sidelight.posterior import Support
from sidelight.solvers import Certificate, Watch

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]


class PairModel(Uncertain, RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A model of a table, fitted to pairs (row, column) and their values."""

    row_cov: Covariance | None
    col_cov: Covariance | None
    mean: str = "zero"
    mean_: MeanFunction
    certificate_: Certificate | None

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
            The value of each entry; a model that can learn from known positives alone takes None
            for all ones.
        sample_weight
            Multiplies the weight of each entry; entries of weight 0 do not count.
        watch
            Called with the solver's progress, line by line.
        """
        self._learn(*self._prepare(X, y, sample_weight), watch)
        return self

    def _prepare(
        self, X: ArrayLike | Dataset, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Pairs, Floats, Floats]:
        """Check everything; return pairs, what the mean function leaves of the values, weights."""
        data = X if isinstance(X, Dataset) else None
        self._check_parameters()
        pairs, values, weights = check_entries(X, y, sample_weight, self.takes_positives())
        self._name(data, pairs)
        rows, cols = self._rows(), self._cols()
        rows.check(pairs[:, 0])
        cols.check(pairs[:, 1])
        counted = weights > 0
        pairs, values, weights = pairs[counted], values[counted], weights[counted]
        self.pairs_, self.n_features_in_ = pairs, 2
        self.values_, self.weights_ = values, weights
        self.calibration_, self._postdata = None, None
        self.popularity_ = np.bincount(pairs[values > 0, 1], minlength=cols.size)
        self.mean_ = fit_mean(self.mean, pairs, values, weights, rows, cols)
        return pairs, values - self.mean_.at(pairs, rows, cols), weights

    def takes_positives(self) -> bool:
        """Say whether known positives alone teach something."""
        return False

    def _check_parameters(self) -> None:
        check_mean(self.mean)

    def _name(self, data: Dataset | None, pairs: Pairs) -> None:
        """Settle covariances, ids and names."""
        for side in ("row_cov", "col_cov"):
            given = getattr(self, side)
            if given is not None and not isinstance(given, Covariance):
                raise InputError(
                    f"{side} is a {type(given).__name__}, not a covariance",
                    remedy="wrap it: Diffusion(adjacency), Features(X) or Dense(similarities)",
                )
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
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        new_rows: Any = None,
        new_cols: Any = None,
    ) -> Any:
        """Return the mean for pairs (row, column).

        Row numbers from the number of known rows on count into ``new_rows``, which describes rows
        that were not there at fit time as the row covariance's ``cross`` asks; columns alike.

        Parameters
        ----------
        X
            An (L, 2) integer array.
        return_std
            Return a pair, with the standard deviations of the latent values.
        return_cov
            Return a pair, with the covariance between the latent values.
        """
        check_is_fitted(self)
        pairs = check_pairs(X)
        rows, cols = self._rows(new_rows), self._cols(new_cols)
        rows.check(pairs[:, 0])
        cols.check(pairs[:, 1])
        mean = self._mean_at(pairs, rows, cols)
        if not (return_std or return_cov):
            return mean
        if return_std and return_cov:
            raise InputError(
                "return_std and return_cov are both asked for",
                remedy="ask for one; the covariance has the variances on its diagonal",
            )
        ask = self._distribution().std if return_std else self._distribution().cov
        return mean, ask(pairs, new_rows=new_rows, new_cols=new_cols)

    def _mean_at(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        return self.mean_.at(pairs, rows, cols) + self._means(pairs, rows, cols)

    def scores(
        self, rows: ArrayLike, *, new_rows: Any = None, new_cols: Any = None
    ) -> NDArray[np.float64]:
        """Return the mean for whole rows: one line for each row asked, one column for each item."""
        check_is_fitted(self)
        index = _row_numbers(rows)
        row_axis, col_axis = self._rows(new_rows), self._cols(new_cols)
        row_axis.check(index)
        phi = self.mean_.table(index, row_axis, col_axis)
        return phi + self._table(index, row_axis, col_axis)

    def rank(
        self,
        row: int | str,
        top: int = 20,
        exclude_observed: bool = True,
        *,
        intervals: str = "auto",
        level: float = 0.9,
        new_rows: Any = None,
    ) -> Ranking:
        """Rank the columns of one row, best first.

        Columns with equal means, as in a row of which nothing is known, come in the order of
        their popularity, the number of fitted entries with a positive value; then in their own.

        Parameters
        ----------
        row
            A row's number or id; with ``new_rows``, numbers from the number of known rows on.
        top
            How many columns to return at most.
        exclude_observed
            Leave out the columns that this row was fitted on.
        intervals
            "postdata", with standard deviations, "conformal" or "none"; see ``predict_interval``.
            "auto" is conformal where the model is calibrated, else postdata where the model has
            it and at most 20,000 entries: larger ones take seconds. A bag's are asked for.
        level
            The probability that an interval holds an observation.
        new_rows
            Describes rows that were not there at fit time.
        """
        check_is_fitted(self)
        number = self.row_index(row) if isinstance(row, str) else int(_row_numbers(row)[0])
        means = self.scores([number], new_rows=new_rows)[0]
        observed = np.zeros(len(means), dtype=bool)
        observed[self.pairs_[self.pairs_[:, 0] == number, 1]] = True
        order = np.lexsort((-self.popularity_, -means))
        order = order[~observed[order]] if exclude_observed else order
        cols = order[: max(int(top), 0)]
        known = number < len(self.row_ids_)
        equal = dict(zip(*np.unique(means[order], return_counts=True), strict=True))
        return Ranking(
            row_id=self.row_ids_[number] if known else f"new row {number - len(self.row_ids_)}",
            cols=cols,
            ids=tuple(self.col_ids_[n] for n in cols),
            names=None if self.col_names_ is None else tuple(self.col_names_[n] for n in cols),
            means=means[cols],
            **self._spread(number, cols, intervals, level, new_rows),
            observed=observed[cols],
            ties=np.array([equal[value] - 1 for value in means[cols]], dtype=np.int64),
            bounds=self._known_bounds(number, cols, self._rows(new_rows)),
        )

    def _known_bounds(self, row: int, cols: NDArray[np.int64], rows: Axis) -> Floats | None:
        try:
            return self._bounds(row, cols, rows)
        except InputError:
            return None  # the variance of a new row is not known

    def explain(
        self,
        row: int | str,
        col: int | str,
        top: int = 10,
        *,
        new_rows: Any = None,
        new_cols: Any = None,
    ) -> Explanation:
        """Take one prediction apart: what each entry adds to it, and by whom that is carried.

        The parts add up to what ``predict`` returns. Models that are no product of covariances
        have no explanations.

        Parameters
        ----------
        row, col
            Numbers or ids; with ``new_rows`` or ``new_cols``, numbers from the number of known
            items on.
        top
            How many entries, and how many carriers of each axis, to list.
        new_rows, new_cols
            As in ``predict``.
        """
        check_is_fitted(self)
        whole(top, "top", least=0)
        rows, cols = self._rows(new_rows), self._cols(new_cols)
        m = self.row_index(row) if isinstance(row, str) else int(_numbers(row, "row")[0])
        n = self.col_index(col) if isinstance(col, str) else int(_numbers(col, "column")[0])
        rows.check(np.array([m]))
        cols.check(np.array([n]))
        support = self._support(m, n, rows, cols)
        return explanation(
            (m, n),
            self._mean_parts(m, n, rows, cols),
            support,
            (rows.carriers(m, support.row_weights), cols.carriers(n, support.col_weights)),
            (
                Labels("row", self.row_ids_, self.row_names_),
                Labels("column", self.col_ids_, self.col_names_),
            ),
            top,
        )

    def _mean_parts(self, row: int, col: int, rows: Axis, cols: Axis) -> dict[str, float]:
        """Return what a prediction has beside its support, by name."""
        return self.mean_.parts(row, col, rows, cols)

    def _support(self, row: int, col: int, rows: Axis, cols: Axis) -> Support:
        """Take apart a mean without the mean function."""
        raise InputError(
            f"{type(self).__name__} has no explanations: it is no product of covariances",
            remedy="use a model that is, such as ConstrainedMVGP or MVGP",
        )

    def row_index(self, row_id: str) -> int:
        """Return the number of the row with this id."""
        return find_id(row_id, self.row_ids_, "row")

    def col_index(self, col_id: str) -> int:
        """Return the number of the column with this id."""
        return find_id(col_id, self.col_ids_, "column")

    def _bounds(self, row: int, cols: NDArray[np.int64], rows: Axis) -> Floats | None:
        proof = self.certificate_
        if proof is None or proof.bound is None:
            return None
        variance = rows.variances(np.array([row]))[0] * self._cols().variances(cols)
        return np.asarray(proof.bound * np.sqrt(variance))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, whole or not at all; nothing in it is pickled."""
        from sidelight.models.storage import save

        check_is_fitted(self)
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
    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        """Learn from entries of positive weight and keep the answer."""

    @abstractmethod
    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        """Return the mean of pairs, without the mean function."""

    @abstractmethod
    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        """Return the mean of whole rows, without the mean function."""

    def _settings(self) -> dict[str, Any]:
        """Return what else was learnt, as plain values for the file."""
        return {}

    def _take_settings(self, settings: dict[str, Any]) -> None:
        """Take back what ``_settings`` gave."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learnt, for the file."""

    @abstractmethod
    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what was learnt."""


def _row_numbers(rows: ArrayLike) -> NDArray[np.int64]:
    return _numbers(rows, "row")


def _numbers(items: ArrayLike, what: str) -> NDArray[np.int64]:
    index = np.atleast_1d(np.asarray(items))
    if index.dtype.kind not in "iu" and index.size:
        raise InputError(
            f"{items!r} is not a {what} number, or a list of them",
            remedy="use whole numbers; row_index gives that of an id",
        )
    return index.astype(np.int64)
