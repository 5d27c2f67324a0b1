"""Unpacks compressed files, to a size that memory can hold."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

from vmstore.errors import InputError

MAGIC = b"\x28\xb5\x2f\xfd"  # how a zstd frame begins
UNPACKED_BYTES_MAX = 512 << 20
KEPT_BYTES = 64 << 20  # what any file may hold; lines that are too long to be parsed take memory only once
PARSED_BYTES = 16 << 20  # what any file may hold beside such lines
TIMES_MAX = 24  # as long as it is packed; sessions of agents are 5 to 15 times that
VALUES_MIN = 300_000  # what any file may hold beside such lines; each takes some hundred bytes of memory
PIECE = 1 << 20


def is_packed(data: bytes) -> bool:
    """Whether bytes are those of a compressed file."""
    return data.startswith(MAGIC)


def unpack(path: Path, data: bytes, size_max: int | None = None) -> bytes:
    """What a compressed file holds; one that is cut short gives what was whole of it.

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
        raise InputError(f"{path} is no zstd file that can be read: {error}; unpack it with zstd -d") from error
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
    size = len(unpacked) - sum(end - start for start, end in unparsed)
    values = _values(unpacked, 0, len(unpacked)) - sum(_values(unpacked, *line) for line in unparsed)
    if size > most or values > values_max:
        raise _too_much(path, f"{most:,} bytes or {values_max:,} values")


def _most(small: int, data: bytes) -> int:
    return min(UNPACKED_BYTES_MAX, small + TIMES_MAX * len(data))


def _too_much(path: Path, what: str) -> InputError:
    return InputError(f"{path} holds more than {what} once it is unpacked; unpack it with zstd and split it into files")


def _values(data: bytes, start: int, end: int) -> int:
    """At least how many values JSON between two places has."""
    return sum(data.count(sign, start, end) for sign in (b"[", b"{", b",", b"\n"))


def _long_lines(data: bytes, line_max: int) -> list[tuple[int, int]]:
    """Where lines of over `line_max` bytes begin and end."""
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
