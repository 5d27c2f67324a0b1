"""Unpacks compressed files, to a size that memory can hold."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path

from vmstore.errors import InputError

MAGIC = b"\x28\xb5\x2f\xfd"  # how a zstd frame begins
UNPACKED_BYTES_MAX = 512 << 20
KEPT_BYTES = 64 << 20  # what any file may hold; lines that are too long to be parsed take memory only once
PARSED_BYTES = 16 << 20  # what any file may hold beside such lines
TEXT_BYTES, TEXT_TIMES = 6 << 20, 4  # what one text may be, which is copied some times as it is taken in
TIMES_MAX = 24  # as long as it is packed; sessions of agents are 5 to 15 times that
VALUES_MIN = 300_000  # what any file may hold beside such lines; each takes some hundred bytes of memory
PIECE = 1 << 20
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+')  # of JSON, to its end or that of the line
_LATER = bytes(range(0x80, 0xC0))  # of a sign in UTF-8 all bytes but its first
_WIDE, _BEYOND = 0xC4, 0xF0  # how signs begin that take two bytes in memory, and four


def is_packed(data: bytes) -> bool:
    """Whether bytes are those of a compressed file."""
    return data.startswith(MAGIC)


def unpack(path: Path, data: bytes, size_max: int | None = None) -> bytes:
    """Decompresses a file; of one that is cut short it gives the part that is whole.

    Refuses more than UNPACKED_BYTES_MAX, and so much more than was packed that it was made to fill memory, as
    soon as it is met. Where `size_max` is given it reads about as many bytes and leaves the rest.
    """
    import zstandard

    most = _most(KEPT_BYTES, data)
    unpacked = BytesIO()
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
            while piece := stream.read(PIECE):
                unpacked.write(piece)
                if size_max is not None and unpacked.tell() >= size_max:
                    break
                if unpacked.tell() > most:
                    raise _too_much(path, f"{most:,} bytes")
    except (zstandard.ZstdError, MemoryError) as error:
        raise InputError(
            f"{path} is no zstd file that can be read: {error}; unpack it with zstd -d", code="damaged-file"
        ) from error
    return unpacked.getvalue()


def check(path: Path, data: bytes, unpacked: bytes, line_max: int) -> None:
    """Raises InputError where parsing what a compressed file holds would fill memory.

    Lines of over `line_max` bytes are not parsed, unless they are part of a document: where the first line is no
    record by itself they count too.
    """
    long = _long_lines(unpacked, line_max)
    _bound(path, data, unpacked, long)
    if long and not _is_record(unpacked[: long[0][0]].partition(b"\n")[0]):
        _bound(path, data, unpacked, [])


def _bound(path: Path, data: bytes, unpacked: bytes, unparsed: list[tuple[int, int]]) -> None:
    most, values_max = _most(PARSED_BYTES, data), VALUES_MIN + len(data)
    size = _width(unpacked) - sum(_width(unpacked[start:end]) for start, end in unparsed)
    values = _values(unpacked, 0, len(unpacked)) - sum(_values(unpacked, *line) for line in unparsed)
    if size > most or values > values_max:
        raise _too_much(path, f"{most:,} bytes or {values_max:,} values")
    text_max = TEXT_BYTES + TEXT_TIMES * len(data)
    if _has_text(unpacked, text_max, [start for start, _ in unparsed]):
        raise _too_much(path, f"{text_max:,} bytes in one text")


def _most(small: int, data: bytes) -> int:
    return min(UNPACKED_BYTES_MAX, small + TIMES_MAX * len(data))


def _too_much(path: Path, what: str) -> InputError:
    return InputError(
        f"{path} holds more than {what} once it is unpacked; unpack it with zstd and split it into files",
        code="too-large",
    )


def _width(data: bytes) -> int:
    """How many bytes the lines of a text take in memory, where each sign of one takes as many as its widest."""
    return sum(_width_of(line) for line in BytesIO(data))


def _has_text(data: bytes, size_max: int, unparsed: list[int]) -> bool:
    """Whether a JSON text takes more bytes in memory than a size, in a line that is parsed."""
    start = 0
    for line in BytesIO(data):
        if start not in unparsed and _width_of(line) > size_max:
            spans = (text.span() for text in _TEXT.finditer(line))
            if any(4 * (end - at) > size_max and _width_of(line[at:end]) > size_max for at, end in spans):
                return True
        start += len(line)
    return False


def _width_of(line: bytes) -> int:
    if line.isascii():
        return len(line)
    signs = len(line.translate(None, _LATER))
    widest = max(line)
    return signs * (4 if widest >= _BEYOND else 2 if widest >= _WIDE else 1)


def _values(data: bytes, start: int, end: int) -> int:
    """At least how many values JSON between two places has."""
    return sum(data.count(sign, start, end) for sign in (b"[", b"{", b",", b"\n"))


def _long_lines(data: bytes, line_max: int) -> list[tuple[int, int]]:
    """Start and end of each line of over `line_max` bytes."""
    found: list[tuple[int, int]] = []
    start = 0
    while len(data) - start > line_max:
        # The last end of a line within reach: all lines before it are shorter.
        end = data.rfind(b"\n", start, start + line_max + 1)
        if end < 0:
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            found.append((start, end))
        start = end + 1
    return found


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False
