"""JSON as cells hold it, read the same by every process: UTF-8, lone surrogates as they stand, finite numbers.

How many digits Python reads and how deep it nests depend on the process. What is written stays within
what every process reads; what an earlier version or another program wrote is read all the same.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

import msgspec

DIGITS_MAX = 4_300  # of a whole number: what Python reads where nobody raised its limit
DEPTH_MAX = 250
_CHUNK = 600  # digits: below the lowest limit a process can have
assert sys.int_info.str_digits_check_threshold > _CHUNK, "a piece is read whatever the limit is set to"


def loads(data: bytes | str, **hooks: Any) -> Any:
    """The value of JSON, however many digits this process allows a number; raises ValueError where it is none."""
    try:
        return json.loads(data, **hooks)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        return json.loads(data, parse_int=_whole, **hooks)  # a number longer than this process reads


def _whole(digits: str) -> int:
    """A whole number of any length."""
    if len(digits) <= _CHUNK:
        return int(digits)
    sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits)
    value = 0
    for start in range(0, len(digits), _CHUNK):
        piece = digits[start : start + _CHUNK]
        value = value * 10 ** len(piece) + int(piece)
    return sign * value


def strict(data: bytes) -> Any:
    """The value of JSON that every process and every reader of JSON reads alike; ValueError says why it is none."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _slowly(data)
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and _is_deep(value):
        raise ValueError(f"it is nested over {DEPTH_MAX} levels deep")
    return value


def _slowly(data: bytes) -> Any:
    """JSON with lone surrogates, and why something is none."""
    try:
        text = data.decode("utf-8", "surrogatepass")
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_readable)
    except RecursionError as error:
        raise ValueError(f"it is nested over {DEPTH_MAX} levels deep") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number:.20} is beyond every float")
    return value


def _readable(digits: str) -> int:
    if len(digits.lstrip("-")) > DIGITS_MAX:
        raise ValueError(f"a number has over {DIGITS_MAX:,} digits")
    return _whole(digits)


def _is_deep(value: Any) -> bool:
    """Whether a value nests deeper than may be written."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


def shown(value: Any) -> str:
    """A value as the text of JSON: lone surrogates escaped, so that they read back, no number that JSON has not."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, ValueError, OverflowError, RecursionError):
        text = json.dumps(_sayable(value), ensure_ascii=False, separators=(",", ":"))
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _sayable(value: Any) -> Any:
    """A value without the numbers that this process cannot write, or no JSON."""
    if isinstance(value, dict):
        return {key: _sayable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sayable(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if type(value) is int and value.bit_length() > DIGITS_MAX * 3:
        return f"[a number of {value.bit_length():,} bits]"
    return value


def as_text(value: Any) -> str | None:
    """A value as a column of text has it: a text without lone surrogates, what is none as JSON, null as nothing."""
    if value is None:
        return None
    return (value if isinstance(value, str) else shown(value)).encode("utf-8", "replace").decode()


_SURROGATE = re.compile("[\ud800-\udfff]")


def is_text(data: bytes) -> bool:
    """Whether bytes are text: UTF-8, lone surrogates as they stand."""
    if data.isascii():
        return True
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def reads_every_number() -> bool:
    """Whether this process writes numbers that others cannot read: its limit of digits was raised."""
    limit = sys.get_int_max_str_digits()
    return limit == 0 or limit > DIGITS_MAX


def plain(text: object) -> str | None:
    """A text as a view can hold it: lone surrogates become question marks; what is no text is left out."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else None
