"""From text to nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.lalr import ParseFailure, automaton, run
from vmstore.vmql.syntax.nodes import SourceSpan, Statement
from vmstore.vmql.text_cache import cached

KEPT_MAX = 512  # texts whose statement is kept
KEPT_CHARS_MAX = 10_000

TEXT_CHARS_MAX: Final = 1_000_000
_UNFIT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def parse(text: str) -> Statement:
    """The one statement of a text; a `;` after it is allowed. A QueryError says what is wrong with it."""
    if not isinstance(text, str) or len(text) > KEPT_CHARS_MAX:
        return _only(text)
    return _kept(text)


def statements(text: str) -> Iterator[tuple[Statement, SourceSpan]]:
    """The statements of a script and where each stands, without its `;`, one after another.

    Each is read when it is asked for: those before a mistake are given before it is raised.
    """
    _check(text)
    place = 0
    while (start := _start(text, place)) < len(text):
        statement, end, place = _one(text, start)
        yield statement, SourceSpan(start, end)


@cached(KEPT_MAX)
def _kept(text: str) -> Statement:
    return _only(text)


def _only(text: str) -> Statement:
    _check(text)
    statement, _, place = _one(text, 0)
    if _start(text, place) < len(text):
        from vmstore.vmql.diagnostics import parse_errors

        raise parse_errors.second(text, place)
    return statement


def _check(text: object) -> None:
    """Refuses what is not read at all: no text, too much of it, or bytes that no text holds."""
    if not isinstance(text, str):
        raise QueryError(f"a query is text, not {type(text).__name__}; decode it first", code="not-text")
    if len(text) > TEXT_CHARS_MAX:
        message = f"a query has {TEXT_CHARS_MAX:,} characters at most, this text has {len(text):,}"
        raise QueryError(message, code="too-long", hint="ask in parts, and pass long values as parameters")
    if found := _UNFIT.search(text):
        message = f"character {found.start() + 1} is U+{ord(found[0]):04X}, which no query holds"
        hint = "pass bytes and control characters as a parameter"
        raise QueryError(message, code="not-text", text=text, span=SourceSpan(*found.span()), hint=hint)


def _start(text: str, place: int) -> int:
    """Where the next token begins, past blanks and comments."""
    found = automaton().match(text, place)
    return int(found.start(found.lastgroup))


def _one(text: str, place: int) -> tuple[Statement, int, int]:
    """The statement that begins at a place, where it ends, and where its `;` does."""
    try:
        return run(text, place)
    except ParseFailure as stuck:
        from vmstore.vmql.diagnostics import parse_errors  # only what is wrong needs explaining

        raise parse_errors.explained(text, place, stuck) from None
    except QueryError as error:
        error.text = text
        raise
