"""The tokens of a text that need not be VMQL: read loosely, with those of other languages among them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from vmstore.vmql.diagnostics.lookahead import relations
from vmstore.vmql.syntax.grammar_tables import load
from vmstore.vmql.syntax.nodes import SourceSpan

QUOTES: Final = re.compile(r"\"([^\"]*)\"|`([^`]*)`|“([^”]*)”|\u2018([^\u2019]*)\u2019")
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])")
SIGNS: Final = ("==", "<>", "&&", "||")
PLACEHOLDER: Final = re.compile(r":([^\W\d]\w*)|\{([^\W\d]\w*)\}|@([^\W\d]\w*)")


class LooseToken(NamedTuple):
    """A token as a loose reading finds it: its kind, its text in upper case, where it stands, what patterns call it."""

    kind: str
    word: str
    span: SourceSpan
    labels: frozenset[str]


def pieces(text: str, place: int) -> list[LooseToken]:
    """The tokens of the statement that begins at a place, read without a parser; the last is its end."""
    match = load().scanner().match
    found: list[LooseToken] = []
    while True:
        token = match(text, place)
        assert token is not None and token.lastgroup is not None, "the last group takes any character"
        kind = token.lastgroup
        start, end = token.span(kind)
        other = _other(text, start, kind)
        if other is not None:
            kind, end = other
        word = text[start:end].upper()
        labels = frozenset((word, kind.lower(), "relation" if word in relations() else ""))
        found.append(LooseToken(kind, word, SourceSpan(start, end), labels))
        if kind in ("STOP", "END"):
            return found
        place = end


def _other(text: str, start: int, kind: str) -> tuple[str, int] | None:
    """What stands here that is a token of other languages, and where it ends."""
    if kind == "BAD":
        for name, pattern in (("QUOTED", QUOTES), ("PLACEHOLDER", PLACEHOLDER)):
            if found := pattern.match(text, start):
                return name, found.end()
    if text[start : start + 2] in SIGNS:
        return "SIGN", start + 2
    if kind == "INT" and (found := DATE.match(text, start)):
        return "DATE", found.end()
    return None
