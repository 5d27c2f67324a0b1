"""Slips in VMQL's own words: one that was left out, or stands in the wrong place; each with what was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from vmstore.vmql.diagnostics.loose_lexer import LooseToken
from vmstore.vmql.syntax.nodes import SourceSpan

UNITS: Final = frozenset(("TURN", "CALL", "POSITION"))
NAMED: Final = frozenset(("NAME", "REFERENCE", "STRING", "PARAM", "INT"))
COUNTED: Final = {"CALLS": "call", "TURNS": "turn"}


class TypoFix(NamedTuple):
    """One habit in a text: its code, its message, its place, and what VMQL has instead.

    Without a replacement it is not certain what was meant; `advice` then says what to do.
    """

    code: str
    message: str
    span: SourceSpan
    replacement: str | None = None
    advice: str | None = None


def _over(text: str, read: list[LooseToken], meant: str, message: str, code: str = "left-out") -> TypoFix:
    """An edit of all that some pieces cover; `{}` in what was meant is what stands there."""
    span = SourceSpan(read[0].span.start, read[-1].span.end)
    return TypoFix(code, message, span, meant.replace("{}", text[span.start : span.end]))


def _at(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """CONTEXT CALL 42."""
    for before, context, unit, number in zip([None, *read], read, read[1:], read[2:], strict=False):
        if context.word != "CONTEXT" or (before is not None and before.word == "DIFF"):
            continue
        if unit.word in UNITS and number.kind in ("INT", "PARAM"):
            yield _over(text, [unit], "AT {}", "the moment of a context stands after AT")
        elif unit.kind == "INT":
            yield _over(text, [unit], "AT TURN {}", "the moment of a context stands after AT, and says its unit")


def _diff(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """DIFF CALL 40 TO CALL 42, DIFF CONTEXT 40 TO 42."""
    if read[0].word != "DIFF":
        return
    if read[1].word in UNITS:
        yield _over(text, read[:1], "{} CONTEXT", "name what is compared: contexts, or sessions")
    elif read[1].word == "CONTEXT" and read[2].kind == "INT":
        for piece in (piece for piece in read[2:] if piece.kind == "INT"):
            message = f"{piece.word} can be a turn, a call or a position; say which"
            yield _over(text, [piece], "TURN {}", message, "moment-without-unit")


def _why(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """WHY p8 AT CALL 3, WHY p8 NOT IN CONTEXT."""
    if read[0].word != "WHY":
        return
    page = 2 if read[1].word == "NOT" else 1
    after = read[page + 1 : page + 4]
    if read[page].kind not in NAMED or not after:
        return
    if [piece.word for piece in after] == ["NOT", "IN", "CONTEXT"]:
        message = "NOT stands before the page"
        yield _over(text, read[page : page + 2], f"NOT {_text(text, read[page])}", message)
    elif after[0].word == "AT" or after[0].kind in ("END", "STOP", "_IN_SESSION"):
        yield _over(text, read[page : page + 1], "{} IN CONTEXT", "a page is asked for in a context")


def _words(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """SEARCH postgres decision, CONTEXT MATCHES postgres, TIME yesterday."""
    for place, piece in enumerate(read):
        wants = piece.kind == "_CONTEXT_MATCHES" or piece.word == "TIME" or (place == 0 and piece.word == "SEARCH")
        bare = [*_run(read[place + 1 :])] if wants else []
        if bare:
            yield _over(text, bare[: 1 if piece.word == "TIME" else None], "'{}'", "words stand in single quotes")


def _run(read: list[LooseToken]) -> Iterator[LooseToken]:
    """The bare words at a place that no clause begins with."""
    for piece in read:
        if piece.kind != "NAME" or piece.word in STARTS:
            return
        yield piece


STARTS: Final = frozenset(
    ("WHERE", "BY", "LIMIT", "SINCE", "UNTIL", "ACROSS", "AND", "OR", "BETWEEN", "IN", "AS", "ORDER", "AT")
)


def _listed(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """type IN 'claim'."""
    where = False
    for joint, value in pairwise(read):
        where = where or joint.word == "WHERE"
        if where and joint.word == "IN" and value.kind in ("STRING", "INT", "FLOAT"):
            yield _over(text, [value], "({})", "what follows IN stands in parentheses")


def _contains(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """text CONTAINS 'postgres'."""
    for piece, value in pairwise(read):
        if piece.word in ("CONTAINS", "MATCH", "ILIKE") and value.kind == "STRING":
            meant = "LIKE" if piece.word == "ILIKE" else "MATCHES"
            yield _over(text, [piece], meant, f"VMQL has no {piece.word}", "sql-contains")


def _in_session(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """CONTEXT SESSION trip, PAGES FROM SESSION trip."""
    if read[0].word in ("FORK", "VERIFY", "DIFF", "SET"):
        return
    for before, session, name in zip(read, read[1:], read[2:], strict=False):
        if session.word == "SESSION" and name.kind in NAMED and before.word != ",":
            begun = [before, session] if before.word in ("FROM", "OF") else [session]
            yield _over(text, begun, "IN SESSION", "a session is named after IN SESSION")


def _numbered(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """CALLS 317."""
    column = COUNTED.get(read[0].word)
    if column is not None and read[1].kind == "INT":
        yield _over(text, read[1:2], f"WHERE {column} = {{}}", "rows are chosen after WHERE")


def _writes(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    """DELETE FROM pages."""
    if read[0].word in ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER"):
        message = "VMQL asks, and changes nothing that was written; FORK alone makes something"
        yield TypoFix("sql-write", message, read[0].span, advice="`vmstore annotate` says more of a page")


def _text(text: str, piece: LooseToken) -> str:
    return text[piece.span.start : piece.span.end]


SLIPS: Final[tuple[Callable[[str, list[LooseToken]], Iterator[TypoFix]], ...]] = (
    _at,
    _diff,
    _why,
    _words,
    _listed,
    _contains,
    _in_session,
    _numbered,
    _writes,
)
