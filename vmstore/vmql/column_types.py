"""How values are kept, shown, read from a text and compared: one form for each way a view stores them.

A view keeps small numbers; an answer shows words, names and times. What is compared, grouped and
looked up stays as it is kept, so that an index serves; it is shown when a row is taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

from vmstore.core.page import WordEnum
from vmstore.core.times import iso
from vmstore.vmql.syntax.errors import fault

Words = type[WordEnum]


class ColumnType(NamedTuple):
    """A way to keep values: the type they are shown as, and how.

    `text` is the SQL of what is shown, over the kept value `{}`; None where that is Python's to say,
    or the kept value is shown as it is.
    """

    type: str
    show: Callable[[Any], Any] | None = None
    text: str | None = None
    words: Words | None = None
    name: str = ""  # page, message: what is named by it


def _page(position: Any) -> Any:
    return f"p{position}" if position else None


def _message(position: Any) -> Any:
    return f"m{position}" if position else None


def _loads(text: Any) -> Any:
    if text == "[]":  # by far the most
        return []
    return json.loads(text) if isinstance(text, str) else text


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        hint = "a sum became too large, or such a value was recorded: leave such rows out with WHERE"
        raise fault("a value of the answer is infinite", "not-finite", hint=hint)
    return value


INTEGER = ColumnType("integer")
REAL = ColumnType("real", _finite)
TEXT = ColumnType("text")
BOOLEAN = ColumnType("boolean", bool)
_SECONDS = "({0} - (({0} % 1000000) + 1000000) % 1000000) / 1000000"
_FRACTION = "((({0} % 1000000) + 1000000) % 1000000)"
TIME = ColumnType(
    "time",
    iso,
    f"(strftime('%Y-%m-%dT%H:%M:%S', {_SECONDS}, 'unixepoch')"
    f" || iif({_FRACTION}, printf('.%06d', {_FRACTION}), '') || 'Z')",
)
LIST = ColumnType("list", _loads)
JSON = ColumnType("json", _loads)
ANY = ColumnType("json", _finite)
PAGE = ColumnType("text", _page, "('p' || nullif({}, 0))", name="page")
MESSAGE = ColumnType("text", _message, "('m' || nullif({}, 0))", name="message")


def word(words: type[WordEnum]) -> ColumnType:
    """The words of an enumeration that is kept by number and shown by name."""
    shown = {int(member): member.word for member in words}
    return ColumnType("text", lambda number: shown.get(number, str(number)), case(shown), words)


def numbered(words: type[WordEnum]) -> ColumnType:
    """An enumeration whose numbers are shown, and whose words are understood."""
    return ColumnType("integer", None, None, words)


def said(words: type[WordEnum]) -> ColumnType:
    """An enumeration that is kept by its words."""
    return ColumnType("text", None, None, words)


def case(shown: dict[int, str]) -> str:
    """The SQL that gives a word for a number `{}`."""
    return "CASE {0} " + " ".join(f"WHEN {number} THEN '{word}'" for number, word in shown.items()) + " ELSE {0} END"
