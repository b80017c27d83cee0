"""Which column of a table is what."""

from __future__ import annotations

from collections import Counter

from sidelight.data.columns import is_number
from sidelight.data.tables import HEADER, Table
from sidelight.errors import InputError

ENTRIES = ("row", "col", "value")
EDGES = ("a", "b", "weight")
_NO_VALUE = {"na", "n/a", "null", "none", "missing"}  # data, not labels
_ID_NAMES = ("", "id", "__index_level_0__")  # R and pandas leave the name of the ids out


def find_triple(table: Table, names: tuple[str, str, str], notes: list[str]) -> list[int]:
    """Find the two columns of ids and that of the numbers, if there is one.

    Columns are found by name. Under other names they are found by position, but only in a table
    of three columns whose third label cannot be a value, or whose header cannot be data: so a
    file without a header never loses its first line.
    """
    header = table.header
    _check_distinct(table)
    if set(names[:2]) <= set(header):
        pair = [header.index(name) for name in names[:2]]
        return [*pair, *_find_number(table, pair, names[2], notes)]
    if len(header) == 3 and _is_label(header[2]):
        return [0, 1, 2]
    if len(header) == 2 and table.has_certain_header:
        return [0, 1]
    raise _no_header(table, names)


def find_named(table: Table, names: tuple[str, ...]) -> list[int]:
    """Find columns that the caller named."""
    for name in names:
        if name not in table.header:
            raise table.error(
                f"there is no column {name!r} among {', '.join(table.header)}",
                remedy="name the columns; value=None says that all entries are known positives",
            )
    return [table.header.index(name) for name in names]


def find_ids(table: Table) -> int:
    """Find the column of ids: that named ``id``, or the first when it has no name."""
    _check_distinct(table)
    if "id" in table.header:
        return table.header.index("id")
    if table.header[0] in _ID_NAMES:
        return 0
    raise table.error(
        f"there is no column 'id' among {_shown(table.header)}",
        remedy="write a header whose column of ids is named id",
        record=HEADER,
    )


def _is_label(text: str) -> bool:
    return text[:1].isalpha() and text.lower() not in _NO_VALUE and not is_number(text)


def _check_distinct(table: Table) -> None:
    label, count = Counter(table.header).most_common(1)[0]
    if count > 1:
        raise table.error(
            f"the label {label!r} occurs twice", remedy="name each column once", record=HEADER
        )


def _find_number(table: Table, pair: list[int], name: str, notes: list[str]) -> list[int]:
    others = [k for k in range(len(table.header)) if k not in pair]
    if len(others) <= 1:
        return others
    if name not in table.header:
        raise table.error(
            f"there is no column {name!r} among {_shown(table.header)}",
            remedy=f"name the column of numbers {name!r} or leave the other columns out",
            record=HEADER,
        )
    ignored = [table.header[k] for k in others if table.header[k] != name]
    notes.append(f"{table.name}: columns {_shown(ignored)} ignored")
    return [table.header.index(name)]


def _no_header(table: Table, names: tuple[str, str, str]) -> InputError:
    return table.error(
        f"the first line ({_shown(table.header)}) is no header that can be told from data",
        remedy=f"make the first line {names[0]}, {names[1]} or {', '.join(names)},"
        " tabs between them in .tsv and commas in .csv, without quotes in .tsv",
        record=HEADER,
    )


def _shown(labels: list[str] | tuple[str, ...]) -> str:
    return ", ".join(map(repr, labels[:6])) + (", ..." if len(labels) > 6 else "")
