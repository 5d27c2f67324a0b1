"""Reads files of records: JSON lines with their exact bytes, or one JSON document.

A line nobody can read is kept with the reason; only a file nobody can read at all is an error.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from vmstore.capture.importers.formats.decompress import check, is_packed, unpack
from vmstore.capture.steps import TornLine, UnreadableStep
from vmstore.core.system.safe_files import read_within
from vmstore.core.times import microseconds
from vmstore.errors import InputError

FILE_BYTES_MAX = 2 << 30  # it is read at once, and takes several times as much memory
LINE_BYTES_MAX = 32 << 20  # longer lines are kept but never parsed
NEST_MAX = 200  # deeper values can be read, but not be written back from a deep call stack
AT_MS_MAX = 253_402_300_800_000  # the year 10000, where dates end
BOM = b"\xef\xbb\xbf"
_SOLID = re.compile(rb"\S")


class JsonLine(msgspec.Struct, frozen=True):
    """One line that is not blank: its bytes without the line's end, and its value or its problem."""

    number: int  # 1-based, blank lines counted
    raw: bytes
    value: Any = None
    problem: str | None = None


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as readers see it: its lines, and its document where it is one JSON value."""

    path: Path
    lines: list[JsonLine] = []
    torn: TornLine | None = None
    document: Any = None  # no format of ours is a bare null

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return stem(self.path)


def open_source(path: Path) -> SourceFile:
    """The file at `path`, read; refuses what is no text, before anything is taken from it."""
    try:
        data = read_within(path, FILE_BYTES_MAX)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"{path} cannot be read: {why}; give the path of a session file", code="unreadable-file"
        ) from error
    if is_packed(data):
        small, data = data, unpack(path, data)
        check(path, small, data, LINE_BYTES_MAX)
    if not data.strip():
        raise InputError(f"{path} is empty; give a file that holds a session", code="empty-file")
    lines, torn = split(data)
    document = _document(data, lines)
    if document is not None:
        if too_deep(document):
            raise InputError(f"{path} is nested over {NEST_MAX} levels deep; flatten it before importing")
        if isinstance(document, list) or len(lines) != 1 or lines[0].problem is not None:
            return SourceFile(path=path, document=document)
    if not any(isinstance(line.value, dict) for line in lines):
        _refuse_binary(path, data)
    # One object on one line is a document as well as the only line so far of a growing file.
    return SourceFile(path=path, lines=lines, torn=torn, document=document)


def stem(path: Path) -> str:
    """A file's name without its ending, nor that of the packing around it."""
    return Path(path.name.removesuffix(".zst")).stem


def split(data: bytes) -> tuple[list[JsonLine], TornLine | None]:
    """The lines of a file, and its last one where that ends before its newline and cannot be read."""
    lines: list[JsonLine] = []
    start, number, size = len(BOM) if data.startswith(BOM) else 0, 0, len(data)
    while start < size:
        end = data.find(b"\n", start)
        number += 1
        raw = data[start : size if end < 0 else end].removesuffix(b"\r")
        start = size if end < 0 else end + 1
        if not raw.strip():
            continue
        line = _line(number, raw)
        if end < 0 and line.problem is not None:
            return lines, TornLine(number, len(raw))
        lines.append(line)
    return lines, None


def unread(line: JsonLine, reason: str | None = None) -> UnreadableStep:
    """The step of a line nobody can read, for the line's own reason or one a reader found."""
    return UnreadableStep(raw=line.raw, line=line.number, reason=reason or line.problem or "unknown record")


def moment(value: Any) -> int | None:
    """Microseconds since 1970 of an ISO 8601 text or a number of milliseconds; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return round(value * 1000) if abs(value) < AT_MS_MAX else None
    if not isinstance(value, str):
        return None
    try:
        # A time without a zone is taken as UTC, or the same file would read differently elsewhere.
        return microseconds(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        return None


def too_deep(value: Any, levels: int = NEST_MAX) -> bool:
    """Whether a value is nested over `levels` levels deep."""
    layer = [value] if isinstance(value, (dict, list)) else []
    while layer and levels > 0:
        levels -= 1
        layer = [
            item
            for outer in layer
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, (dict, list))
        ]
    return bool(layer)


def _line(number: int, raw: bytes) -> JsonLine:
    if len(raw) > LINE_BYTES_MAX:
        return JsonLine(number, raw, problem=f"gigantic: {len(raw)} bytes, read up to {LINE_BYTES_MAX}")
    try:
        value = _STRICT.decode(raw.decode())
    except UnicodeDecodeError as error:
        return JsonLine(number, raw, problem=f"not UTF-8: {error.reason} at byte {error.start + 1}")
    except json.JSONDecodeError as error:
        return JsonLine(number, raw, problem=f"not JSON: {error.msg} at column {error.colno}")
    except ValueError as error:  # a number of more digits than Python reads
        return JsonLine(number, raw, problem=f"not JSON that can be read: {error}")
    except RecursionError:
        return JsonLine(number, raw, problem=_deep())
    # Counting brackets is cheap and rules nearly every line out.
    if raw.count(b"[") + raw.count(b"{") > NEST_MAX and too_deep(value):
        return JsonLine(number, raw, problem=_deep())
    return JsonLine(number, raw, value)


def _number(text: str) -> float:
    """A number of JSON's; ValueError where it is beyond all of them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is no number that JSON can hold")
    return value


def _worded(text: str) -> float | str:
    """A number of JSON's; the text itself where it is beyond all of them."""
    value = float(text)
    return value if math.isfinite(value) else text


# Python's reader takes NaN, Infinity and 1e400, which nobody could write back as JSON.
_STRICT = json.JSONDecoder(parse_float=_number, parse_constant=_number)
_LENIENT = json.JSONDecoder(parse_float=_worded, parse_constant=_worded)


def _deep() -> str:
    return f"nested over {NEST_MAX} levels deep"


def _document(data: bytes, lines: list[JsonLine]) -> Any:
    """The one JSON value a file is, or None: not JSON, or a value on each of several lines."""
    first = data.lstrip()[:1]
    if first not in (b"{", b"[") and not data.startswith(BOM):
        return None
    if len(lines) == 1 and lines[0].problem is None:
        return lines[0].value
    end = data.find(b"\n")
    if end >= 0 and _SOLID.search(data, end) is not None and _decoded(data[:end]) is not None:
        return None  # found without a copy of the whole as text, of which each sign may take four bytes
    return _decoded(data)


def _decoded(data: bytes) -> Any:
    try:
        return _LENIENT.decode(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _refuse_binary(path: Path, data: bytes) -> None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            f"{path} is UTF-16; save it as UTF-8: iconv -f UTF-16 -t UTF-8 {path.name} > utf8-{path.name}",
            code="binary-file",
        )
    if b"\0" in data[:1024]:
        raise InputError(
            f"{path} is binary: NUL bytes and no JSON record; give a session file of JSON text", code="binary-file"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start + 1}) and holds no JSON record; "
            "save it as UTF-8"
        ) from error
