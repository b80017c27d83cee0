"""Text files in blocks of whole records, decoded strictly, with the exact place of a bad byte."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, cast

from sidelight.errors import InputError

_BLOCK = 1 << 21
_LONGEST_QUOTE = 1 << 26  # a quoted field of more than 64 MB was never closed
_AS_UTF8 = "save it as UTF-8"


def read_blocks(path: Path, quotes: bool) -> Generator[tuple[int, str], None, None]:
    """Yield the number of its first line and each block, with line ends LF and none at its end.

    A ``.gz`` file is unpacked on the way. With ``quotes``, a block does not end within them.
    """
    line = 1
    for block in _blocks(path, quotes):
        text = _decode(block.removeprefix(BOM_UTF8) if line == 1 else block, path, line)
        yield line, text.removesuffix("\n")
        line += block.count(b"\n")


def _blocks(path: Path, quotes: bool) -> Generator[bytes, None, None]:
    try:
        with _open(path) as stream:
            while block := stream.read(_BLOCK):
                block += stream.readline()
                if quotes and block.count(b'"') % 2:
                    block = _close_quote(block, stream)
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"the gzip file is damaged ({error})", remedy="fetch or pack it again", path=path
        ) from error
    except OSError as error:
        raise InputError(
            f"the file cannot be read ({error.strerror})", remedy="check the path", path=path
        ) from error


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _close_quote(block: bytes, stream: BinaryIO) -> bytes:
    """Add lines until the quotes are even: RFC 4180 doubles those within a field."""
    lines, odd, size = [block], 1, 0
    while odd and size < _LONGEST_QUOTE and (line := stream.readline()):
        lines.append(line)
        odd = (odd + line.count(b'"')) % 2
        size += len(line)
    return b"".join(lines)


def _decode(block: bytes, path: Path, line: int) -> str:
    if line == 1 and block.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise _bad_byte("the file is UTF-16 (its first bytes are a UTF-16 mark)", b"", path, line)
    if (place := block.find(b"\0")) >= 0:
        raise _bad_byte("a NUL byte: the file is binary or UTF-16", block[:place], path, line)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        if (place := block.find(b"\r")) >= 0:
            raise _bad_byte("a carriage return within a line", block[:place], path, line)
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"the byte 0x{block[error.start]:02x} is not UTF-8 (perhaps the file is Latin-1)"
        raise _bad_byte(problem, block[: error.start], path, line) from None


def _bad_byte(problem: str, before: bytes, path: Path, line: int) -> InputError:
    remedy = "end lines with LF or CRLF" if "return" in problem else _AS_UTF8
    return InputError(problem, remedy=remedy, path=path, line=line + before.count(b"\n"))
