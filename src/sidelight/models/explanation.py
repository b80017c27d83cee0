"""Why a model predicts what it predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import Carried
from sidelight.posterior import Support

Ids = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """A row or a column, by its id and, where it has one, its name."""

    id: str
    name: str | None


@dataclass(frozen=True)
class Reason:
    """One entry behind a prediction.

    Attributes
    ----------
    row, col
        Where it is.
    value
        What was observed; a mean where several samples are averaged.
    amount
        What it adds to the prediction.
    share
        The size of the amount, as a share of the sizes of all entries' amounts.
    """

    row: Item
    col: Item
    value: float
    amount: float
    share: float


@dataclass(frozen=True)
class Carrier:
    """A row or a column, and what it carries."""

    id: str
    name: str | None
    amount: float


@dataclass(frozen=True)
class Carriers:
    """Who carries a prediction to an item: its own entries, its neighbours, those similar to it.

    Attributes
    ----------
    own
        What comes without another: from the item's own entries.
    items
        The items that carry most, largest first.
    rest
        What ``rest_count`` others carry together.
    """

    own: float
    items: tuple[Carrier, ...]
    rest: float
    rest_count: int


@dataclass(frozen=True)
class Explanation:
    """A prediction, taken apart.

    Attributes
    ----------
    row, col
        The cell.
    prediction
        What ``predict`` returns.
    parts
        What adds up to the prediction, by name: "constant", "row bias", "column bias" and
        "intercept" as the model has them; "entries" for all entries together; "unobserved cells"
        where they count as zeros; "not traced" for what the factors of a fit that ended early have
        and no entry brings.
    entries
        The entries that bring most, largest first.
    rest
        What the ``rest_count`` other entries bring together.
    rows, cols
        Who carries all but the mean function and the intercept to the row, and to the column.
    """

    row: Item
    col: Item
    prediction: float
    parts: dict[str, float]
    entries: tuple[Reason, ...]
    rest: float
    rest_count: int
    rows: Carriers
    cols: Carriers

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each entry listed.

        Its keys: row, row_name, col, col_name, value, amount, share.
        """
        return [
            {
                "row": reason.row.id,
                "row_name": reason.row.name,
                "col": reason.col.id,
                "col_name": reason.col.name,
                "value": reason.value,
                "amount": reason.amount,
                "share": reason.share,
            }
            for reason in self.entries
        ]


@dataclass(frozen=True)
class Labels:
    """The ids and names of one axis."""

    what: str
    ids: Ids
    names: Ids | None

    def of(self, item: int) -> Item:
        """Return an item, which may be new."""
        if item >= len(self.ids):
            return Item(f"new {self.what} {item - len(self.ids)}", None)
        return Item(self.ids[item], None if self.names is None else self.names[item])


def explanation(
    cell: tuple[int, int],
    mean: dict[str, float],
    support: Support,
    carried: tuple[Carried, Carried],
    labels: tuple[Labels, Labels],
    top: int,
) -> Explanation:
    """Name what a prediction is made of, and list what matters most."""
    parts = _parts(mean, support)
    chosen = largest(support.amounts, top)
    rows, cols = labels
    whole = float(np.abs(support.amounts).sum())
    reasons = tuple(
        Reason(
            rows.of(int(support.pairs[k, 0])),
            cols.of(int(support.pairs[k, 1])),
            float(support.values[k]),
            float(support.amounts[k]),
            abs(float(support.amounts[k])) / whole if whole else 0.0,
        )
        for k in chosen
    )
    return Explanation(
        row=rows.of(cell[0]),
        col=cols.of(cell[1]),
        prediction=sum(parts.values()),
        parts=parts,
        entries=reasons,
        rest=parts["entries"] - sum(reason.amount for reason in reasons),
        rest_count=len(support.amounts) - len(reasons),
        rows=_carriers(carried[0], rows, top),
        cols=_carriers(carried[1], cols, top),
    )


def _parts(mean: dict[str, float], support: Support) -> dict[str, float]:
    untraced, elsewhere = support.untraced, support.elsewhere
    parts = mean | {"entries": support.total - untraced - (elsewhere or 0.0)}
    parts |= {} if elsewhere is None else {"unobserved cells": elsewhere}
    return parts | ({"not traced": untraced} if untraced else {})


def _carriers(carried: Carried, labels: Labels, top: int) -> Carriers:
    chosen = largest(carried.amounts, top)
    found = [(labels.of(int(carried.items[k])), float(carried.amounts[k])) for k in chosen]
    items = tuple(Carrier(item.id, item.name, amount) for item, amount in found)
    others = np.delete(carried.amounts, chosen)
    return Carriers(carried.own, items, float(others.sum()), len(others))


def largest(amounts: NDArray[np.float64], top: int) -> NDArray[np.int64]:
    """Return where the largest amounts are, by size, largest first; those of 0 are left out."""
    order = np.argsort(-np.abs(amounts), kind="stable")[: max(int(top), 0)]
    return np.asarray(order[amounts[order] != 0])
