"""What the command line says: a line while it works, then a table, or JSON, or tabs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from sidelight.models import Carriers, Explanation

Say = Callable[[str], None]

_RANKED = ("rank", "id", "name", "mean", "std", "low", "high", "observed", "ties", "bound")
_PREDICTED = ("row", "col", "prediction")
_ENDS: dict[str | None, tuple[str, ...]] = {
    None: (),
    "postdata": ("std", "low", "high"),
    "conformal": ("low", "high"),
}
_PARTS = ("part", "row", "row_name", "col", "col_name", "value", "amount", "share")
_ALWAYS = {"mean", "amount"}
_TEXTS = {"id", "name", "part", "row", "row_name", "col", "col_name"}


@contextmanager
def progress_line() -> Iterator[Say | None]:
    """Keep one line on a terminal while something works; nothing elsewhere."""
    console = Console(stderr=True)
    if not console.file.isatty():
        yield None
        return
    with console.status("starting") as status:
        yield lambda text: status.update(escape(text))


def progress_text(progress: Any) -> str:
    """Describe a line of a solver's trace."""
    return (
        f"rank {progress.rank}, relative gap {progress.relative_gap:.1e},"
        f" {progress.seconds:.1f} seconds"
    )


def print_json(answer: object, stream: TextIO | None = None) -> None:
    """Write one JSON document; what is not finite, which JSON cannot say, is null."""
    text = json.dumps(_finite(answer), ensure_ascii=False, allow_nan=False)
    (stream or sys.stdout).write(f"{text}\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_fit(report: dict[str, Any]) -> None:
    """Tell what was fitted to what, how far it is proven, and where it is."""
    made = report["certificate"]
    rows, cols = report["shape"]
    _line(f"{rows:,} rows x {cols:,} columns, {report['entries']:,} known entries")
    if report["calibration"] is not None:
        _line(
            f"{report['calibration']:,} of them, drawn with seed {report['seed']}, calibrate the"
            " intervals and were not fitted"
        )
    if report["negatives"] is not None:
        _line(
            f"known positives alone: {report['negatives']:,} unknown cells, drawn with seed"
            f" {report['seed']}, were taken as {report['value']:g}"
        )
        if report["samples"] > 1:
            _line(f"the scores are averages over {report['samples']} such samples")
    for note in report["notes"]:
        _line(f"note: {note}")
    if made is None:
        _line(f"a baseline without a certificate; the model is in {report['model']}")
        return
    _line(_status(made))
    _line(f"rank {made['rank']}, relative gap {made['relative_gap']:.2e}, {_bound(made)}")
    if report["learnt"]:
        _line(_learnt(report["learnt"]))
    if report["refit"]:
        _line("refitted at rank {rank} with a ridge of {ridge:.3g}".format(**report["refit"]))
    _line(f"{made['seconds']:.2f} seconds; the model is in {report['model']}")


def _learnt(made: dict[str, Any]) -> str:
    errors = made["errors"]
    told = [f"{name} {value:.3g} (+-{errors[name]:.0%})" for name, value in made["values"].items()]
    return f"learnt in {made['seconds']:.1f} seconds ({made['status']}): {', '.join(told)}"


def _status(made: dict[str, Any]) -> str:
    if made["status"] == "certified":
        return f"certified: {made['reason']}"
    return f"{made['status']} ({made['reason']}): NOT certified, nothing closer is proven than this"


def _bound(made: dict[str, Any]) -> str:
    return "no bound" if made["bound"] is None else f"bound {made['bound']:.2e}"


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def print_ranking(title: str, records: list[dict[str, Any]]) -> None:
    """Show a table on a terminal, tab-separated lines with all digits elsewhere."""
    if not sys.stdout.isatty():
        _write_lines(sys.stdout, _RANKED, records)
        return
    Console().print(_table(title, _RANKED, records))


def _table(title: str, columns: tuple[str, ...], records: list[dict[str, Any]]) -> Table:
    """Make a table of the columns that have something to say."""
    told = [
        name
        for name in columns
        if any(r.get(name) not in (None, False, 0) or name in _ALWAYS for r in records)
    ]
    table = Table(title=Text(title), title_justify="left")
    for name in told:
        table.add_column(name, justify="left" if name in _TEXTS else "right")
    for record in records:
        table.add_row(*(Text(_short(record.get(name))) for name in told))
    return table


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.4g}" if isinstance(value, float) else _exact(value)


def print_explanation(told: Explanation) -> None:
    """Show tables on a terminal, tab-separated lines with all digits elsewhere."""
    tables = {
        "": [_part("prediction", told.prediction), *starmap(_part, told.parts.items())],
        "entries": [
            *({"part": "entry"} | record for record in told.records()),
            *_others("entries", told.rest_count, told.rest),
        ],
        "carried to the row": _carried("row", told.rows),
        "carried to the column": _carried("col", told.cols),
    }
    if not sys.stdout.isatty():
        lines = [dict.fromkeys(_PARTS) | line for table in tables.values() for line in table]
        _write_lines(sys.stdout, _PARTS, lines)
        return
    console = Console()
    ends = (told.row, told.col)
    cell = ", ".join(f"{each.id}: {each.name}" if each.name else each.id for each in ends)
    for title, lines in tables.items():
        console.print(_table(title or cell, _PARTS, lines))


def _part(name: str, amount: float) -> dict[str, Any]:
    return {"part": name, "amount": amount}


def _others(what: str, count: int, amount: float) -> list[dict[str, Any]]:
    return [_part(f"{count} other {what}", amount)] if count else []


def _carried(axis: str, carriers: Carriers) -> list[dict[str, Any]]:
    return [
        _part(f"{axis} itself", carriers.own),
        *(
            {"part": f"{axis} carrier", axis: each.id, f"{axis}_name": each.name}
            | {"amount": each.amount}
            for each in carriers.items
        ),
        *_others(f"{axis} carriers", carriers.rest_count, carriers.rest),
    ]


def print_predictions(
    records: list[dict[str, Any]], intervals: str | None, out: Path | None, as_json: bool
) -> None:
    """Write predictions to a file, replaced whole, or to the output."""
    header = _PREDICTED + _ENDS[intervals]
    if out is None:
        _write_predictions(sys.stdout, header, records, as_json)
        return
    part = out.with_name(f".{out.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as stream:
        _write_predictions(stream, header, records, as_json)
    part.replace(out)


def _write_predictions(
    stream: TextIO, header: tuple[str, ...], records: list[dict[str, Any]], as_json: bool
) -> None:
    if as_json:
        print_json({"predictions": records}, stream)
    else:
        _write_lines(stream, header, records)


def _write_lines(stream: TextIO, header: tuple[str, ...], records: list[dict[str, Any]]) -> None:
    """Write tab-separated lines; a number keeps all its digits, and nothing is an empty field."""
    stream.write("\t".join(header) + "\n")
    for record in records:
        stream.write("\t".join(_exact(record[name]) for name in header) + "\n")


def _exact(value: object) -> str:
    return "" if value is None else str(value)
