"""Ids and numbers out of columns, with the exact place of whatever is wrong with them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sidelight.data.dataset import Floats, near
from sidelight.data.tables import Column, Source, Table
from sidelight.errors import InputError

Codes: TypeAlias = NDArray[np.int32]
Unknown: TypeAlias = Literal["error", "drop"]

_UNKNOWN, _EMPTY = -1, -2


class Index(dict[str, int]):
    """Positions of ids, which are stripped of surrounding whitespace.

    A look-up of a known id never leaves C: only the first sight of an id comes to ``__missing__``.

    Parameters
    ----------
    ids
        The ids in order.
    grows
        Whether a new id is added or unknown.
    """

    def __init__(self, ids: Iterable[str] = (), *, grows: bool = False) -> None:
        self.ids = list(ids)
        super().__init__(zip(self.ids, range(len(self.ids)), strict=True))
        self.grows = grows

    def __missing__(self, raw: str) -> int:
        text = raw.strip()
        if not text:
            return _EMPTY
        place = self.get(text, _UNKNOWN)
        if place == _UNKNOWN and self.grows:
            place = self[text] = len(self.ids)
            self.ids.append(text)
        if place != _UNKNOWN:
            self[raw] = place
        return place


@dataclass(frozen=True, slots=True)
class Pairs:
    """Positions on two axes, a number for each pair if there are any, and where they came from."""

    source: Source
    first: Codes
    second: Codes
    numbers: Floats | None
    records: NDArray[np.int64] | None = None  # where some were dropped

    def record(self, place: int) -> int:
        """Return the record that a pair was read from."""
        return place if self.records is None else int(self.records[place])

    def known(self) -> Pairs:
        """Leave out the pairs with an unknown id."""
        kept = np.flatnonzero((self.first >= 0) & (self.second >= 0))
        if len(kept) == len(self.first):
            return self
        numbers = None if self.numbers is None else self.numbers[kept]
        return Pairs(self.source, self.first[kept], self.second[kept], numbers, kept)


def read_pairs(
    table: Table, columns: Sequence[int], first: Index, second: Index, unknown: Unknown
) -> Pairs:
    """Read two columns of ids and, where a third is named, one of numbers."""
    names = [table.header[k] for k in columns]
    parts: list[tuple[Codes, Codes, Floats]] = []
    for start, batch in table.batches(columns):
        codes = [
            _positions(table, start, column, name, index, unknown)
            for column, name, index in zip(batch, names, (first, second), strict=False)
        ]
        parts.append((codes[0], codes[1], read_numbers(table, start, batch[2:], names[2:]).ravel()))
    if not parts:
        raise table.error("there is a header and nothing else", remedy="add data, or leave it out")
    a, b, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Pairs(table, a, b, numbers if len(columns) == 3 else None)


def read_ids(table: Table, column: int) -> list[str]:
    """Read a column of ids that must all differ."""
    index, name = Index(grows=True), table.header[column]
    for start, (ids,) in table.batches([column]):
        codes = _positions(table, start, ids, name, index, "error")
        twice = np.flatnonzero(codes != np.arange(start, start + len(codes)))
        if twice.size:
            place = int(twice[0])
            raise table.error(
                f"the id {index.ids[codes[place]]!r} occurs twice",
                remedy="keep one of the two",
                record=start + place,
                column=name,
            )
    if not index.ids:
        raise table.error("there is a header and nothing else", remedy="add data, or leave it out")
    return index.ids


def read_texts(table: Table, column: int) -> tuple[str, ...]:
    """Read a column of text."""
    name = table.header[column]
    return tuple(
        text
        for start, (texts,) in table.batches([column])
        for text in _as_texts(table, start, texts, name)
    )


def read_matrix(table: Table, columns: Sequence[int]) -> Floats:
    """Read columns of numbers as a dense matrix."""
    names = [table.header[k] for k in columns]
    parts = [read_numbers(table, start, batch, names).T for start, batch in table.batches(columns)]
    return np.concatenate(parts) if parts else np.empty((0, len(names)))


def read_numbers(table: Table, start: int, columns: list[Column], names: Sequence[str]) -> Floats:
    """Turn columns into finite numbers, one line of the result for each column."""
    flat = list(chain.from_iterable(columns))
    numbers = _parse(flat) if table.is_text else _convert(flat)
    if numbers is None or not bool(np.isfinite(numbers).all()):
        place = next(k for k, value in enumerate(flat) if _fault(value, table.is_text))
        problem, remedy = _fault(flat[place], table.is_text) or ("", "")
        column, record = divmod(place, len(columns[0]))
        raise table.error(problem, remedy=remedy, record=start + record, column=names[column])
    return numbers.reshape(len(columns), -1) if columns else np.empty((0, 0))


def unknown_id(
    source: Source, text: str, index: Index, *, record: int | None = None, column: str | None = None
) -> InputError:
    """Return the error for an id outside the index set."""
    return source.error(
        f"the id {text!r} is not known{near(text, index.ids)}",
        remedy="correct it, add it to the index set, or read with unknown='drop'",
        record=record,
        column=column,
    )


def _positions(
    table: Table, start: int, column: Column, name: str, index: Index, unknown: Unknown
) -> Codes:
    texts = _as_texts(table, start, column, name)
    codes = np.fromiter(map(index.__getitem__, texts), np.int32, len(texts))
    if codes.size and codes.min() < 0:
        bad = np.flatnonzero(codes < 0 if unknown == "error" else codes == _EMPTY)
        if bad.size:
            raise _bad_id(table, texts, codes, int(bad[0]), start, name, index)
    return codes


def _bad_id(
    table: Table,
    texts: Sequence[str],
    codes: Codes,
    place: int,
    start: int,
    name: str,
    index: Index,
) -> InputError:
    if codes[place] == _EMPTY:
        return table.error(
            "the id is empty", remedy="write an id", record=start + place, column=name
        )
    return unknown_id(table, texts[place].strip(), index, record=start + place, column=name)


def _as_texts(table: Table, start: int, column: Column, name: str) -> Sequence[str]:
    """Return ids as text; whole numbers will do, but one column holds one kind."""
    kinds = set() if table.is_text else set(map(type, column))
    if all(issubclass(kind, str) for kind in kinds):
        return column  # type: ignore[return-value]
    if all(_is_whole(kind) for kind in kinds):
        return list(map(str, column))
    leading: tuple[type, ...] = (str,) if isinstance(column[0], str) else (int, np.integer)
    place = next(
        k for k, v in enumerate(column) if not isinstance(v, leading) or isinstance(v, bool)
    )
    value = column[place]
    missing = _is_missing(value)
    raise table.error(
        "the id is missing" if missing else f"the id {value!r} is of type {type(value).__name__}",
        remedy="make all ids of the column text, or all whole numbers",
        record=start + place,
        column=name,
    )


def _is_missing(value: object) -> bool:
    """Tell whether this is one of the ways in which frames write that there is nothing."""
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value


def _is_whole(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and not issubclass(kind, bool)


def _parse(texts: list[object]) -> Floats | None:
    if "_" in "".join(texts):  # type: ignore[arg-type]  # Python reads 1_000 as a number
        return None
    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except ValueError:
        return None


def _convert(values: list[object]) -> Floats | None:
    if not all(map(_is_number, set(map(type, values)))):
        return None
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # a Python integer knows no bounds
        return None


def _is_number(kind: type) -> bool:
    return issubclass(kind, int | float | np.number | Decimal) and not issubclass(kind, bool)


def is_number(text: str) -> bool:
    """Tell whether a text reads as a number, finite or not."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fault(value: object, from_text: bool) -> tuple[str, str] | None:
    """Say what is wrong with a value and what to do about it, if anything is."""
    if _is_missing(value) or (isinstance(value, str) and not value.strip()):
        return "there is no value", (
            "fill it in or leave the line out; a set of known positives has no value column at all"
        )
    if from_text:
        return _text_fault(str(value).strip())
    return _not_finite(repr(value), value) if _is_number(type(value)) else _kind_fault(value)


def _text_fault(text: str) -> tuple[str, str] | None:
    if re.fullmatch(r"[+-]?\d+,\d+([eE][+-]?\d+)?", text):
        return f"{text!r} has a decimal comma", f"write {text.replace(',', '.')}"
    if "_" in text or not is_number(text):
        return f"{text!r} is not a number", "write numbers such as 3.5 or 1e-3"
    return _not_finite(repr(text), float(text))


def _kind_fault(value: object) -> tuple[str, str]:
    return (
        f"{value!r} is of type {type(value).__name__}, not a number",
        "make the whole column numbers",
    )


def _not_finite(shown: str, value: Any) -> tuple[str, str] | None:
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    return None if finite else (f"{shown} is not a finite number", "leave out what is not known")
