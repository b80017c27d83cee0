"""The support vector machine over pairs of Mordelet and Vert (2011)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.covariance import Axis, Covariance, Features, Identity, Sum
from sidelight.errors import InputError
from sidelight.models.base import Floats, Pairs
from sidelight.models.inputs import positive
from sidelight.models.spread import SpreadModel
from sidelight.problem import Pattern, gram_product
from sidelight.solvers import Watch, solve_svm

RowKernel = Literal["dirac", "multitask", "similarity", "similarity+dirac"]


class ProDiGe(SpreadModel):
    """A support vector machine whose kernel of two pairs is ``C_M(m, m') C_N(n, n')``.

    The kernel matrix is never formed: not one of the pairs, not one of an axis. Positives need
    negatives: give entries of two values, or put the model in a ``Bagged`` with
    ``Negatives(value=-1)``, as the method is meant.

    Parameters
    ----------
    row_cov, col_cov
        The kernels of the two axes; None is the identity on the items seen.
    C
        The largest weight of an entry: small is smooth.
    tol
        Relative duality gap at which the fit is certified.

    Attributes
    ----------
    certificate_
        The proof: status, objective, dual, relative_gap, seconds, trace.
    alpha_
        One weight for each fitted entry, of the sign of its class.
    intercept_
        The bias.
    classes_
        The two values: the larger is the positive class.
    """

    def __init__(
        self,
        row_cov: Covariance | None = None,
        col_cov: Covariance | None = None,
        C: float = 1.0,
        tol: float = 1e-4,
    ) -> None:
        self.row_cov, self.col_cov, self.C, self.tol = row_cov, col_cov, C, tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.C, "C")
        positive(self.tol, "tol")

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        self.classes_ = np.unique(values)
        if len(self.classes_) != 2:
            raise InputError(
                f"the entries have {len(self.classes_)} different values",
                remedy="give entries of two values, or put positives in a Bagged",
            )
        pattern = Pattern(pairs, (self.row_cov_.size, self.col_cov_.size))
        found = solve_svm(
            gram_product(pattern, self.row_cov_, self.col_cov_),
            np.where(values == self.classes_[1], 1.0, -1.0)[pattern.order],
            (self.C * weights)[pattern.order],
            min(pattern.shape),
            self.tol,
            watch=watch,
        )
        self.alpha_, self.intercept_ = np.empty(len(pairs)), found.bias
        self.alpha_[pattern.order], self.certificate_ = found.weights, found.certificate

    def decision_function(self, X: ArrayLike, **new: Any) -> Floats:
        """Return the decision for pairs: positive for the larger class; see ``predict``."""
        return np.asarray(self.predict(X, **new))

    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        return super()._means(pairs, rows, cols) + self.intercept_

    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        return super()._table(index, rows, cols) + self.intercept_

    def _mean_parts(self, row: int, col: int, rows: Axis, cols: Axis) -> dict[str, float]:
        parts: dict[str, float] = super()._mean_parts(row, col, rows, cols)
        return parts | {"intercept": float(self.intercept_)}

    def _settings(self) -> dict[str, Any]:
        return {"intercept": self.intercept_, "classes": self.classes_.tolist()}

    def _take_settings(self, settings: dict[str, Any]) -> None:
        self.intercept_, self.classes_ = settings["intercept"], np.array(settings["classes"])


def row_kernel(kind: RowKernel, similarity: Covariance) -> Covariance:
    """Return one of the four kernels that ProDiGe has for diseases.

    Parameters
    ----------
    kind
        "dirac": every row alone; "multitask": all rows share alike, ``1 + dirac``; "similarity": as
        given; "similarity+dirac": half of each.
    similarity
        What is known of the rows.
    """
    alone = Identity(similarity.size)
    kernels: dict[str, Covariance] = {
        "dirac": alone,
        "multitask": Sum([Features(np.ones((similarity.size, 1))), alone]),
        "similarity": similarity,
        "similarity+dirac": Sum([similarity, alone], [0.5, 0.5]),
    }
    if kind not in kernels:
        raise InputError(f"the kernel {kind!r} is unknown", remedy=f"use one of {list(kernels)}")
    return kernels[kind]
