"""Columns in batches, from text, MatrixMarket and Parquet files, data frames and lists.

Everything that is read passes through here, so that whatever comes after is written once: a
table has a header, yields batches of columns, and knows where a record stands.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw

from sidelight.data.text import read_blocks
from sidelight.errors import InputError, MissingExtraError

Column: TypeAlias = Sequence[object]
Batch: TypeAlias = tuple[int, list[Column]]  # the number of the first record, and the columns

_FIELDS = 300_000  # held as Python objects at a time
_TEXT = {".tsv": "\t", ".csv": ","}
SUFFIXES = (".tsv", ".csv", ".mtx", ".parquet", ".tsv.gz", ".csv.gz", ".mtx.gz")


HEADER = -1  # the record number of the header


class Source:
    """Something that can say where in it a problem is; records count from 0."""

    def __init__(self, name: str) -> None:
        self.name = name

    def error(
        self, problem: str, *, remedy: str, record: int | None = None, column: str | None = None
    ) -> InputError:
        """Return the error for a record, or for the whole when there is no one record."""
        somewhere = record is not None and record != HEADER
        place = f"{self.name}, position {record}" if somewhere else self.name
        return InputError(problem, remedy=remedy, path=place, column=column)


class Table(Source, ABC):
    """Named columns that can be read more than once, a batch at a time."""

    header: tuple[str, ...]
    is_text = False  # ids are text for sure, and numbers are text to be parsed
    has_certain_header = True  # it cannot be a first line of data

    @abstractmethod
    def batches(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Yield the columns asked for, a bounded number of records at a time."""


class TextTable(Table):
    """A ``.tsv`` file, without quoting, or a ``.csv`` file as in RFC 4180."""

    is_text = True
    has_certain_header = False

    def __init__(self, path: Path, delimiter: str) -> None:
        super().__init__(path.name)
        self.path, self._delimiter = path, delimiter
        self._other_bytes = bytes(set(range(256)) - set(f"{delimiter}\n".encode()))
        self._steps: list[tuple[int, int]] = []  # from this record on, lines count from here
        with closing(self._blocks()) as blocks:
            _, text = next(blocks, (1, ""))
        if not text:
            raise self.error("the file is empty", remedy="give a header line and data")
        self.header, self._head_lines = self._read_head(text)

    def error(
        self, problem: str, *, remedy: str, record: int | None = None, column: str | None = None
    ) -> InputError:
        """Return the error with the path and the line of a record."""
        line = None if record is None else self._line(record)
        return InputError(problem, remedy=remedy, path=self.path, line=line, column=column)

    def batches(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Yield the columns asked for, a bounded number of records at a time."""
        record, self._steps = 0, []
        for line, text in self._blocks():
            if line == 1:
                line += self._head_lines
                text = "".join(text.split("\n", self._head_lines)[self._head_lines :])
            fields = self._split(text, record, line) if text else []
            if fields:
                yield record, [fields[k] for k in columns]
                record += len(fields[0])

    def _blocks(self) -> Generator[tuple[int, str], None, None]:
        return read_blocks(self.path, quotes=self._delimiter == ",")

    def _read_head(self, text: str) -> tuple[tuple[str, ...], int]:
        """Return the header and the number of lines it takes."""
        reader = self._reader(text)
        header = tuple(name.strip() for name in self._parse(reader, 1, 1)[0])
        if not any(header):
            raise self._at(1, "the line is empty", "make it the header, with a name per column")
        return header, reader.line_num

    def _split(self, text: str, record: int, line: int) -> list[Column]:
        """Return all columns of a block."""
        if self._is_regular(text):
            self._step(record, line)
            flat = text.replace(self._delimiter, "\n").split("\n")
            return [flat[k :: len(self.header)] for k in range(len(self.header))]
        reader = self._reader(text)
        kept: list[list[str]] = []
        for fields in self._parse(reader, line, None):
            if fields:
                self._check_width(len(fields), line)
                self._step(record + len(kept), line)
                kept.append(fields)
            line += 1 + sum(field.count("\n") for field in fields)
        return list(zip(*kept, strict=True))

    def _is_regular(self, text: str) -> bool:
        """Tell whether every line is full and plain, so that it splits without a parser.

        What is left of the text without all other characters is then a repetition.
        """
        if (self._delimiter == "," and '"' in text) or "\n\n" in text:
            return False
        if text.startswith("\n") or text.endswith("\n"):
            return False
        marks = text.encode().translate(None, self._other_bytes)
        whole = (self._delimiter * (len(self.header) - 1) + "\n").encode()
        return marks + b"\n" == whole * (marks.count(b"\n") + 1)

    def _reader(self, text: str) -> Any:
        quoting: Any = csv.QUOTE_MINIMAL if self._delimiter == "," else csv.QUOTE_NONE
        lines = StringIO(text, newline="\n")
        return csv.reader(lines, delimiter=self._delimiter, quoting=quoting, strict=True)

    def _parse(self, reader: Any, line: int, count: int | None) -> list[list[str]]:
        try:
            return list(islice(reader, count))
        except csv.Error as error:
            raise self._at(
                line + reader.line_num - 1,
                f"the line cannot be split into fields ({error})",
                'close every quote and write " as "" within quotes',
            ) from error

    def _check_width(self, count: int, line: int) -> None:
        if count != len(self.header):
            between = {"\t": "tabs", ",": "commas"}.get(self._delimiter, "spaces")
            raise self._at(
                line,
                f"the line has {count} fields, the header {len(self.header)}",
                f"write as many fields as the header has, with {between} between them",
            )

    def _at(self, line: int, problem: str, remedy: str) -> InputError:
        return InputError(problem, remedy=remedy, path=self.path, line=line)

    def _step(self, record: int, line: int) -> None:
        if not self._steps or line - record != self._steps[-1][1] - self._steps[-1][0]:
            self._steps.append((record, line))

    def _line(self, record: int) -> int:
        if record == HEADER:
            return 1
        start, line = self._steps[bisect(self._steps, record, key=lambda step: step[0]) - 1]
        return line + record - start


class MatrixMarketTable(TextTable):
    """A coordinate MatrixMarket file: a table of row, column and, unless a pattern, value."""

    has_certain_header = True

    def __init__(self, path: Path) -> None:
        super().__init__(path, " ")

    def batches(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Yield the columns asked for; the announced number of entries must be there."""
        count = 0
        for record, batch in super().batches(columns):
            yield record, batch
            count = record + len(batch[0])
        if count != self._announced:
            raise self.error(
                f"{self._announced:,} entries are announced, {count:,} are there",
                remedy="write the file again: it may be cut off",
            )

    def _blocks(self) -> Generator[tuple[int, str], None, None]:
        for line, text in super()._blocks():
            yield line, "\n".join(map(" ".join, map(str.split, text.split("\n"))))

    def _read_head(self, text: str) -> tuple[tuple[str, ...], int]:
        lines = text.split("\n")
        header = self._read_banner(lines[0].lower().split())
        for number, line in enumerate(lines[1:], start=2):
            if line and not line.startswith("%"):
                self.shape, self._announced = self._read_sizes(line.split(), number)
                return header, number
        raise self.error("there is no size line", remedy="write the file again")

    def _read_banner(self, words: list[str]) -> tuple[str, ...]:
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise self._at(
                1, "this is no MatrixMarket header", "start with %%MatrixMarket matrix coordinate"
            )
        layout, number, symmetry = words[2:]
        if layout != "coordinate" or number not in {"real", "integer", "pattern"}:
            raise self._at(
                1,
                f"a MatrixMarket file of kind {layout} {number}",
                "write it as coordinate real, integer or pattern: known entries alone",
            )
        if symmetry not in {"general", "symmetric"}:
            raise self._at(1, f"the symmetry is {symmetry!r}", "write the matrix as general")
        self.is_symmetric = symmetry == "symmetric"
        return ("row", "col") if number == "pattern" else ("row", "col", "value")

    def _read_sizes(self, words: list[str], line: int) -> tuple[tuple[int, int], int]:
        if len(words) != 3 or not all(word.isdecimal() for word in words):
            raise self._at(
                line, "this is no size line", "write the numbers of rows, columns and entries there"
            )
        rows, cols, entries = map(int, words)
        return (rows, cols), entries


class ParquetTable(Table):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        try:
            from pyarrow import ArrowException, parquet
        except ImportError as error:
            raise MissingExtraError("Reading Parquet", "parquet") from error
        try:
            with parquet.ParquetFile(path) as file:
                self.header = tuple(file.schema_arrow.names)
        except (ArrowException, OSError) as error:
            raise self.error("this is no Parquet file", remedy="write it again") from error
        self.path = path

    def batches(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Yield the columns asked for, a bounded number of records at a time."""
        from pyarrow import parquet

        names = [self.header[k] for k in columns]
        record, size = 0, max(1, _FIELDS // len(names))
        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(size, columns=names):
                yield record, [batch.column(name).to_pylist() for name in names]
                record += batch.num_rows


class FrameTable(Table):
    """A pandas, polars or other eager data frame that narwhals knows.

    With ``index_is_id``, the index of a pandas frame without a column ``id`` is that column.
    """

    def __init__(self, frame: Any, name: str, *, index_is_id: bool = False) -> None:
        super().__init__(name)
        made = self._from_native(frame)
        self.header = tuple(map(str, made.columns))
        self._series: list[Any] = list(made.iter_columns())
        index = nw.maybe_get_index(made)
        if index_is_id and index is not None and "id" not in self.header:
            self.header, self._series = ("id", *self.header), [index, *self._series]
        self._count = len(made)

    def _from_native(self, frame: Any) -> nw.DataFrame[Any]:
        try:
            return nw.from_native(frame, eager_only=True)
        except (TypeError, nw.exceptions.NarwhalsError) as error:
            raise self.error(
                f"{type(frame).__name__} cannot be used as a table ({error})",
                remedy="give an eager data frame with distinct column names",
            ) from error

    def batches(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Yield the columns asked for, a bounded number of records at a time."""
        series = [self._series[k] for k in columns]
        size = max(1, _FIELDS // len(series))
        for start in range(0, self._count, size):
            yield start, [part[start : start + size].to_list() for part in series]


class ListTable(Table):
    """Columns that are lists in memory."""

    def __init__(self, name: str, **columns: Column) -> None:
        super().__init__(name)
        self.header, self._columns = tuple(columns), list(columns.values())

    def batches(self, columns: Sequence[int]) -> Iterator[Batch]:
        """Yield the columns asked for, all at once: they are in memory already."""
        if len(self._columns[0]):
            yield 0, [self._columns[k] for k in columns]


def open_table(path: Path) -> Table:
    """Open a file by its suffix."""
    suffix = _suffix(path)
    if not path.is_file():
        raise InputError("there is no such file", remedy="check the path", path=path)
    if suffix == ".parquet":
        return ParquetTable(path)
    return MatrixMarketTable(path) if suffix == ".mtx" else TextTable(path, _TEXT[suffix])


def find_table(folder: Path, stem: str) -> Path | None:
    """Find the one file of this name in a folder, whatever its suffix."""
    found = [path for suffix in SUFFIXES if (path := folder / f"{stem}{suffix}").is_file()]
    if len(found) > 1:
        raise InputError(
            f"there is both {found[0].name} and {found[1].name}",
            remedy="keep one of them",
            path=folder,
        )
    return found[0] if found else None


def _suffix(path: Path) -> str:
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if suffix not in SUFFIXES:
        raise InputError(
            f"the suffix of {path.name} is not known",
            remedy=f"use one of {', '.join(SUFFIXES)}",
            path=path,
        )
    return suffix.removesuffix(".gz")
