"""Averages over samples of negatives."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sidelight.covariance import Axis, Covariance
from sidelight.data import Negatives
from sidelight.errors import InputError
from sidelight.models.base import Floats, PairModel, Pairs
from sidelight.models.inputs import whole
from sidelight.posterior import PRECISION, Mixture, Support, mean_support
from sidelight.solvers import Certificate, Watch


class Bagged(PairModel):
    """The same model fitted several times, each with other sampled negatives; scores averaged.

    Two of them with equal negatives, fitted to the same positives, see the same samples: compare
    models that way. The known entries keep the values they are given, 1 where none are.

    Parameters
    ----------
    model
        The model to fit; it is cloned, not fitted itself.
    negatives
        What to sample; as many zeros as there are known entries when not given.
    n
        How many samples to average over.

    Attributes
    ----------
    models_
        The fitted models.
    certificate_
        The one with the largest relative gap, with the largest bound and the time of all.
    """

    def __init__(self, model: Any = None, negatives: Negatives | None = None, n: int = 5) -> None:
        self.model, self.negatives, self.n = model, negatives, n

    @property
    def row_cov(self) -> Covariance | None:  # type: ignore[override]
        """The model's."""
        return None if self.model is None else self.model.row_cov

    @property
    def col_cov(self) -> Covariance | None:  # type: ignore[override]
        """The model's."""
        return None if self.model is None else self.model.col_cov

    def takes_positives(self) -> bool:
        """Say that known positives alone are what it is for."""
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.model, PairModel) or isinstance(self.model, Bagged):
            raise InputError(
                f"model is {self.model!r}", remedy="give one of the package's other models"
            )
        whole(self.n, "n")
        if self.negatives is not None and not isinstance(self.negatives, Negatives):
            raise InputError(f"negatives is {self.negatives!r}", remedy="give a Negatives, or None")

    def _learn(self, pairs: Pairs, values: Floats, weights: Floats, watch: Watch | None) -> None:
        negatives = Negatives() if self.negatives is None else self.negatives
        given: dict[str, Any] = {"row_cov": self.row_cov_, "col_cov": self.col_cov_}
        shape = self.row_cov_.size, self.col_cov_.size
        self.models_ = []
        for number in range(self.n):
            drawn = negatives.draw(pairs, shape, number)
            self.models_.append(
                clone(self.model)
                .set_params(**given)
                .fit(
                    np.vstack([pairs, drawn]),
                    np.r_[values, np.full(len(drawn), negatives.value)],
                    np.r_[weights, np.ones(len(drawn))],
                    watch=watch,
                )
            )
            _name_alike(self.models_[-1], self)
            given |= _learnt(self.models_[0])
            proof = self.models_[-1].certificate_
            if proof is not None and proof.reason == "interrupted":
                break  # and average what there is
        first = self.models_[0]  # a model may use less of the covariances than it is given
        self.row_cov_, self.col_cov_ = first.row_cov_, first.col_cov_
        self.certificate_ = _worst([model.certificate_ for model in self.models_])

    def _kind(self) -> str:
        """Return "none": cells that were drawn as zeros are no observations of a deviation."""
        return "none" if self.calibration_ is None else "conformal"

    def postdata(self, precision: float = PRECISION) -> Mixture:
        """Return the mixture of the models' postdata."""
        return Mixture([model.postdata(precision) for model in self.models_])

    def _means(self, pairs: Pairs, rows: Axis, cols: Axis) -> Floats:
        found = [m.mean_.at(pairs, rows, cols) + m._means(pairs, rows, cols) for m in self.models_]
        return np.asarray(np.mean(found, axis=0))

    def _table(self, index: NDArray[np.int64], rows: Axis, cols: Axis) -> Floats:
        total = np.zeros((len(index), cols.size))
        for model in self.models_:
            total += model.mean_.table(index, rows, cols) + model._table(index, rows, cols)
        return total / len(self.models_)

    def _mean_parts(self, row: int, col: int, rows: Axis, cols: Axis) -> dict[str, float]:
        found = [model._mean_parts(row, col, rows, cols) for model in self.models_]
        names = dict.fromkeys(name for parts in found for name in parts)
        return {name: float(np.mean([parts.get(name, 0.0) for parts in found])) for name in names}

    def _support(self, row: int, col: int, rows: Axis, cols: Axis) -> Support:
        return mean_support([model._support(row, col, rows, cols) for model in self.models_])

    def _bounds(self, row: int, cols: NDArray[np.int64], rows: Axis) -> Floats | None:
        """Bound the average, where every model has a bound of its own."""
        found = [model._bounds(row, cols, rows) for model in self.models_]
        known = [bounds for bounds in found if bounds is not None]
        return np.asarray(np.mean(known, axis=0)) if len(known) == len(found) else None

    def _settings(self) -> dict[str, Any]:
        return {"negatives": None if self.negatives is None else asdict(self.negatives)}

    def _take_settings(self, settings: dict[str, Any]) -> None:
        made = settings["negatives"]
        self.negatives = None if made is None else Negatives(**made)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}  # the file keeps the models themselves

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        pass


def _learnt(model: PairModel) -> dict[str, Any]:
    """Return as parameters what the first model has learnt: the others take it as given."""
    if getattr(model, "learnt_", None) is None:
        return {}
    names = {"row_cov": "row_cov_", "col_cov": "col_cov_", "sigma2": "sigma2_"}
    return {name: getattr(model, learnt) for name, learnt in names.items()} | {"learn": "none"}


def _name_alike(member: PairModel, bag: PairModel) -> None:
    """Give a model the ids and names of a bag, which it was fitted without."""
    member.row_ids_, member.col_ids_ = bag.row_ids_, bag.col_ids_
    member.row_names_, member.col_names_ = bag.row_names_, bag.col_names_


def _worst(proofs: list[Certificate | None]) -> Certificate | None:
    """Return the proof that holds for the average: the least of all."""
    found = [proof for proof in proofs if proof is not None]
    if not found:
        return None
    worst = max(found, key=lambda proof: (proof.status != "certified", proof.relative_gap))
    bounds = [proof.bound for proof in found if proof.bound is not None]
    return replace(
        worst,
        bound=max(bounds) if len(bounds) == len(found) else None,
        seconds=sum(proof.seconds for proof in found),
    )
