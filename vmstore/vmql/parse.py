"""From text to nodes."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from vmstore.vmql.diagnostics import parse_errors
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.lalr import ParseFailure, automaton, run
from vmstore.vmql.syntax.nodes import SourceSpan, Statement

KEPT_MAX = 512  # texts whose statement is kept
KEPT_CHARS_MAX = 10_000


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


@functools.lru_cache(KEPT_MAX)
def _kept(text: str) -> Statement:
    return _only(text)


def _only(text: str) -> Statement:
    _check(text)
    statement, _, place = _one(text, 0)
    if _start(text, place) < len(text):
        raise parse_errors.second(text, place)
    return statement


def _check(text: str) -> None:
    if (refused := parse_errors.unfit(text)) is not None:
        raise refused


def _start(text: str, place: int) -> int:
    """Where the next token begins, past blanks and comments."""
    found = automaton().match(text, place)
    return int(found.start(found.lastgroup))


def _one(text: str, place: int) -> tuple[Statement, int, int]:
    """The statement that begins at a place, where it ends, and where its `;` does."""
    try:
        return run(text, place)
    except ParseFailure as stuck:
        raise parse_errors.explained(text, place, stuck) from None
    except QueryError as error:
        error.text = text
        raise
