"""What a user names, in a fitted model's terms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sidelight.covariance import (
    Covariance,
    Diffusion,
    Features,
    Identity,
    RandomWalk,
    SharedEntries,
    Sum,
)
from sidelight.data.columns import Index, is_number, read_pairs
from sidelight.data.dataset import near
from sidelight.data.headers import ENTRIES, find_triple
from sidelight.data.tables import Table, open_table
from sidelight.errors import InputError
from sidelight.posterior import around

_GRAPHS = (Diffusion, RandomWalk)


def find_row(model: Any, wanted: str) -> int:
    """Find a row by its id, or by a name that only one row has."""
    return _find(wanted, model.row_ids_, model.row_names_ or (), "row")


def find_col(model: Any, wanted: str) -> int:
    """Find a column by its id, or by a name that only one column has."""
    return _find(wanted, model.col_ids_, model.col_names_ or (), "column")


def _find(wanted: str, every: tuple[str, ...], names: tuple[str, ...], what: str) -> int:
    if wanted in every:
        return every.index(wanted)
    found = [k for k, name in enumerate(names) if name.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        ids = [every[k] for k in found]
        raise InputError(
            f"{len(ids)} {what}s have the name {wanted!r}",
            remedy=f"use an id: {', '.join(ids[:10])}" + (", ..." if len(ids) > 10 else ""),
        )
    raise InputError(
        f"there is no {what} {wanted!r}{near(wanted, (*every, *names))}",
        remedy=f"give the id or the whole name of a {what} that the model was fitted with",
    )


def find_or_place(model: Any, row: str, links: str | None, features: str | None) -> tuple[int, Any]:
    """Return a row's number, and what describes it where it is a new one, else None."""
    if links is None and features is None:
        return find_row(model, row), None
    return len(model.row_ids_), new_row(model, links, features).described(model.row_cov_)


class NewRow:
    """A row that was not there at fit time, by its neighbours, its features, or both.

    Parameters
    ----------
    links
        The positions of its neighbours.
    features
        Its features.
    """

    def __init__(self, links: list[int] | None, features: list[float] | None) -> None:
        self._links, self._features = links, features

    def described(self, covariance: Covariance) -> Any:
        """Return what the covariance's ``cross`` takes, with nothing missing or left over."""
        parts = covariance.parts if isinstance(covariance, Sum) else (covariance,)
        self._check_used(parts)
        made = [self._part(part) for part in parts]
        return made if isinstance(covariance, Sum) else made[0]

    def _check_used(self, parts: tuple[Covariance, ...]) -> None:
        described = any(type(part) is Features for part in parts)
        _check_used("--new-links", self._links, "graph", _has(parts, *_GRAPHS))
        _check_used("--new-features", self._features, "features", described)

    def _part(self, part: Covariance) -> Any:
        if isinstance(part, _GRAPHS):
            links = np.zeros((1, part.size))
            links[0, self._links] = 1.0
            return links
        if isinstance(part, SharedEntries):  # a new row has no entries yet
            return np.zeros((1, part.width))
        if isinstance(part, Features):
            return np.array([self._features])
        if isinstance(part, Identity):
            return 1
        raise InputError(
            "the model's rows have a similarity matrix, which no option describes",
            remedy="load the model in Python and give new_rows= to rank",
        )


def _has(parts: tuple[Covariance, ...], *kinds: type[Covariance]) -> bool:
    return any(isinstance(part, kinds) for part in parts)


def _check_used(option: str, given: object, what: str, there: bool) -> None:
    if there and given is None:
        raise InputError(
            f"the model knows its rows by their {what}, and {option} is missing",
            remedy=f"give {option}",
        )
    if given is not None and not there:
        raise InputError(
            f"{option} is given, and the model's rows have no {what}", remedy="leave it out"
        )


def new_row(model: Any, links: str | None, features: str | None) -> NewRow:
    """Read the description of a new row: neighbours by id or name, features by value."""
    return NewRow(
        None if links is None else [find_row(model, text.strip()) for text in links.split(",")],
        None if features is None else [_number(text.strip()) for text in features.split(",")],
    )


def _number(text: str) -> float:
    if not is_number(text) or not np.isfinite(float(text)):
        raise InputError(
            f"--new-features: {text!r} is not a finite number", remedy="give numbers such as 1,0.5"
        )
    return float(text)


def read_known_pairs(path: Path, model: Any) -> NDArray[np.int64]:
    """Read pairs of ids, all known to the model, from a table with the columns row and col."""
    table = open_table(path)
    columns = find_triple(table, ENTRIES, [])[:2]
    ids = (model.row_ids_, model.col_ids_)
    pairs = read_pairs(table, columns, Index(ids[0]), Index(ids[1]), "drop")
    for axis, codes in enumerate((pairs.first, pairs.second)):
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            raise _unknown(table, columns[axis], int(unknown[0]), ids[axis])
    return np.column_stack([pairs.first, pairs.second]).astype(np.int64)


def _unknown(table: Table, column: int, record: int, ids: tuple[str, ...]) -> InputError:
    text = _text(table, column, record)
    return table.error(
        f"the id {text!r} is not known{near(text, ids)}",
        remedy="give an id that the model was fitted with, or leave the line out",
        record=record,
        column=table.header[column],
    )


def _text(table: Table, column: int, record: int) -> str:
    """Read one id again: of the others, only their positions were kept."""
    batches = table.batches([column])
    start, (texts,) = next(b for b in batches if record < b[0] + len(b[1][0]))
    return str(texts[record - start]).strip()


def check_intervals(model: Any, intervals: str | None) -> None:
    """Refuse conformal intervals of a model that is not calibrated."""
    if intervals == "conformal" and model.calibration_ is None:
        raise InputError(
            "the model is not calibrated for conformal intervals",
            remedy="fit it with --calibrate, or call calibrate in Python",
        )


def predicted(
    model: Any, index: NDArray[np.int64], intervals: str | None, level: float
) -> list[dict[str, Any]]:
    """Predict pairs, with the ids of their rows and columns, and with intervals if asked."""
    if intervals == "postdata":
        mean, std = model.predict(index, return_std=True)
        low, high = around(mean, std, model.postdata_.noise, level)
        found = {"prediction": mean, "std": std, "low": low, "high": high}
    else:
        found = {"prediction": model.predict(index)}
        if intervals is not None:
            low, high = model.predict_interval(index, level, intervals)
            found |= {"low": low, "high": high}
    ids = {
        "row": [model.row_ids_[row] for row in index[:, 0]],
        "col": [model.col_ids_[col] for col in index[:, 1]],
    }
    columns = ids | {name: values.tolist() for name, values in found.items()}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
