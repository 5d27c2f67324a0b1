"""What SQL over the relations can call beside SQLite's own functions, and those of SQLite's that could take for ever.

LIKE, GLOB, instr and trim of SQLite take the square of a text's length, or more, without once
looking up; these take it once through.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import apsw

from vmstore.vmql.functions import ORDERED, matches
from vmstore.vmql.scalars import learn
from vmstore.vmql.text_cache import cached

Pieces = tuple[tuple[re.Pattern[str], ...], bool, bool]
"""The fixed parts of a pattern, each as long as what it matches; whether it begins and ends with any signs."""


def _pieces(units: list[tuple[str, str]], flags: re.RegexFlag) -> Pieces:
    """A pattern cut at what stands for any number of signs: units are `*`, or a sign with its expression."""
    parts, part = [], ""
    for kind, expression in (*units, ("*", "")):
        if kind != "*":
            part += expression
        elif part:
            parts.append(re.compile(part, flags))
            part = ""
    ends = bool(units) and units[-1][0] == "*"
    return tuple(parts), bool(units) and units[0][0] == "*", ends


@cached(64)
def _like(pattern: str, escape: str | None) -> Pieces:
    units, signs = [], iter(pattern)
    for sign in signs:
        if sign == escape:
            units.append(("", re.escape(next(signs, ""))))
        else:
            units.append(("*", "") if sign == "%" else ("", "." if sign == "_" else re.escape(sign)))
    return _pieces(units, re.DOTALL | re.IGNORECASE | re.ASCII)


@cached(64)
def _glob(pattern: str) -> Pieces:
    units = []
    for unit in re.findall(r"\[\^?\]?[^\]]*\]|.", pattern, re.DOTALL):
        if len(unit) > 1:
            inverted = unit[1] == "^"
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", unit[1 + inverted : -1])
            units.append(("", f"[{'^' * inverted}{inner}]"))
        else:
            units.append(("*", "") if unit == "*" else ("", "." if unit == "?" else re.escape(unit)))
    return _pieces(units, re.DOTALL)


def _fits(pieces: Pieces, text: str) -> int:
    """Whether a text is what a pattern says: each part is taken where it first is, the last at the end."""
    parts, begins, ends = pieces
    if not parts:
        return int(begins or not text)
    if len(parts) == 1 and not begins and not ends:
        return int(parts[0].fullmatch(text) is not None)
    at = 0
    if not begins:
        first = parts[0].match(text)
        if first is None:
            return 0
        at, parts = first.end(), parts[1:]
    last = None if ends or not parts else parts[-1]
    for part in parts if last is None else parts[:-1]:
        found = part.search(text, at)
        if found is None:
            return 0
        at = found.end()
    return int(last is None or _ends(last, text, at))


def _ends(part: re.Pattern[str], text: str, at: int) -> bool:
    """Whether a text ends with a part of fixed length, which does not begin before a place."""
    width = len(re.sub(r"\[\^?\\?.[^\]]*\]|\\.|.", "x", part.pattern, flags=re.DOTALL))
    start = len(text) - width
    return start >= at and part.fullmatch(text, start) is not None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def like(pattern: Any, text: Any, escape: Any = None) -> int | None:
    """LIKE as SQLite has it: `%`, `_` and ASCII in any case."""
    wanted, of = _text(pattern), _text(text)
    return None if wanted is None or of is None else _fits(_like(wanted, _text(escape)), of)


def glob(pattern: Any, text: Any) -> int | None:
    """GLOB as SQLite has it: `*`, `?` and sets of signs."""
    wanted, of = _text(pattern), _text(text)
    return None if wanted is None or of is None else _fits(_glob(wanted), of)


def instr(text: Any, part: Any) -> int | None:
    """Where a part first is in a text, from 1; 0 where it is not."""
    of, wanted = _text(text), _text(part)
    return None if of is None or wanted is None else of.find(wanted) + 1


def _trimmed(strip: Callable[[str, str], str]) -> Callable[..., str | None]:
    def trimmed(text: Any, signs: Any) -> str | None:
        of, without = _text(text), _text(signs)
        return None if of is None or without is None else strip(of, without) if without else of

    return trimmed


def register(db: apsw.Connection) -> None:
    """Has a connection know them; regular expressions are those that take each sign once."""
    scalars: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
        "like": (like, (2, 3)),
        "glob": (glob, (2,)),
        "instr": (instr, (2,)),
        "trim": (_trimmed(str.strip), (2,)),
        "ltrim": (_trimmed(str.lstrip), (2,)),
        "rtrim": (_trimmed(str.rstrip), (2,)),
        "matches": (matches, (2,)),
    }
    for name, (function, counts) in scalars.items():
        for arguments in counts:
            db.create_scalar_function(name, function, arguments, deterministic=True)
    for name, (kind, arguments) in ORDERED.items():
        db.create_aggregate_function(name.removeprefix("vm_"), kind, arguments)
    learn(db)
