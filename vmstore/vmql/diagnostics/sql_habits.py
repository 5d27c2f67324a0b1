"""Habits of other languages, each with the VMQL for what was meant.

A statement that does not parse is read once more, loosely: every habit found in it is an edit, and
where the text with all the edits made parses, it is what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from vmstore.vmql.diagnostics.loose_lexer import LooseToken, pieces
from vmstore.vmql.diagnostics.typos import SLIPS, UNITS, TypoFix
from vmstore.vmql.syntax.errors import near
from vmstore.vmql.syntax.nodes import SourceSpan
from vmstore.vmql.syntax.printer import quoted

RELATIONS: Final = (
    "PAGES",
    "MESSAGES",
    "MUTATIONS",
    "SESSIONS",
    "TURNS",
    "CALLS",
    "LINKS",
    "FAULTS",
    "VERSIONS",
    "RESIDENCIES",
    "MOVES",
    "METRICS",
    "VECTORS",
    "RECALLS",
    "FACTS",
    "TAGS",
    "SEGMENTS",
    "TOOLS",
    "COMPACTIONS",
    "GUARDS",
    "SKILLS",
)
CLAUSES: Final = frozenset(("WHERE", "BY", "PER", "LIMIT", "SINCE", "UNTIL", "ACROSS", "ALL", "AFTER", "AND", "OR"))
MOMENTS: Final = frozenset(("_AS_OF", "SINCE", "UNTIL", "AT"))
ENDS: Final = frozenset(("END", "STOP", "_AS_OF", "_VALID_AT", "_ORDER_BY"))  # a clause of two words, or nothing more
# What people write as one name: up to a blank, a sign of the language, a quote or a comment.
CHUNK: Final = re.compile(r"(?:(?!--)[^\s,;()='\"<>!&|*+`])+")


def _select(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    if read[0].word != "SELECT":
        return
    message = "VMQL has no SELECT: the relation comes first, then its columns, none for all of them"
    source = next((place for place, piece in enumerate(read) if piece.word == "FROM"), None)
    named = read[source + 1].word if source is not None and source + 1 < len(read) else ""
    relation = named if named in RELATIONS else near(named, RELATIONS)
    if source is None or relation is None:
        yield TypoFix(
            "sql-select", message, read[0].span, advice="write for example PAGES page, tokens WHERE tokens > 500"
        )
        return
    by, first = (" BY", 2) if read[1].word == "DISTINCT" and source > 2 else ("", 1)
    shown = text[read[first].span.start : read[source].span.start].strip()
    columns = "" if shown == "*" else f"{by} {_edited(text, read[first:source])}"
    yield TypoFix("sql-select", message, SourceSpan(read[0].span.start, read[source + 1].span.end), relation + columns)


def _edited(text: str, read: list[LooseToken]) -> str:
    """The columns of a SELECT, with the habits among them mended too."""
    inner = [edit for habit in (_empty_call, _quoted) for edit in habit(text, read)]
    place, parts = read[0].span.start, []
    for edit in sorted(inner, key=lambda edit: edit.span.start):
        parts += [text[place : edit.span.start], edit.replacement or ""]
        place = edit.span.end
    return "".join([*parts, text[place : read[-1].span.end]])


def _group_by(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for first, second in pairwise(read):
        if (first.word, second.word) == ("GROUP", "BY"):
            yield TypoFix(
                "sql-group-by",
                "groups are asked for with BY alone",
                SourceSpan(first.span.start, second.span.end),
                "BY",
            )


SIGNS: Final = {
    "==": ("double-equals", "VMQL compares with a single =", "="),
    "<>": ("sql-not-equal", "VMQL writes unlike as !=", "!="),
    "&&": ("and-or-signs", "conditions are joined by AND", "AND"),
    "||": ("and-or-signs", "conditions are joined by OR", "OR"),
}


def _signs(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for first, second in pairwise(read):
        sign = first.word + second.word
        if first.span.end == second.span.start and sign in SIGNS:
            code, message, meant = SIGNS[sign]
            yield TypoFix(code, message, SourceSpan(first.span.start, second.span.end), meant)


def _quoted(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for piece in read:
        if piece.kind == "QUOTED":
            inner = text[piece.span.start + 1 : piece.span.end - 1].replace("'", "''")
            yield TypoFix("double-quotes", "a text stands in single quotes", piece.span, f"'{inner}'")


def _bare_moment(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for first, second in pairwise(read):
        given = text[second.span.start : second.span.end]
        if first.kind in MOMENTS or first.word in MOMENTS:
            if second.kind == "INT":
                message = f"{given} can be a turn, a call or a position; say which"
                yield TypoFix("moment-without-unit", message, second.span, f"TURN {given}")
            elif second.kind in ("STRING", "DATE"):
                time = given if second.kind == "STRING" else f"'{given}'"
                yield TypoFix(
                    "moment-without-unit", "a time is written with TIME before it", second.span, f"TIME {time}"
                )
        elif second.kind == "DATE":
            yield TypoFix("bare-date", "a time stands in single quotes", second.span, f"'{given}'")


def _bare_between(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for place, piece in enumerate(read[:-3]):
        if piece.word == "WHERE":  # in a condition numbers are what they are
            return
        low, joint, high = read[place + 1 : place + 4]
        if piece.word == "BETWEEN" and joint.word == "AND" and low.kind == high.kind == "INT":
            message = f"{low.word} and {high.word} can be turns, calls or positions; say which"
            meant = f"TURN {low.word} AND TURN {high.word}"
            yield TypoFix("moment-without-unit", message, SourceSpan(low.span.start, high.span.end), meant)


def _second_moment(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for place, unit in enumerate(read[:-3]):
        first, joint, second = read[place + 1 : place + 4]
        if unit.word in UNITS and joint.word in ("TO", "AND") and first.kind == second.kind == "INT":
            meant = f"{unit.word} {second.word}"
            yield TypoFix("moment-without-unit", "each moment says its unit", second.span, meant)


def _session(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for first, second in pairwise(read):
        if first.kind == "_IN_SESSION" and (second.word in CLAUSES or second.kind in ENDS):
            message = "IN SESSION is followed by the name of a session"
            span = SourceSpan(first.span.start, second.span.end)
            yield TypoFix("missing-session", message, span, advice="write IN SESSION 'name'; SESSIONS lists them")
        elif first.word == "WHERE":
            return
        elif first.word == "IN" and second.kind in ("NAME", "STRING") and second.word != "CONTEXT":
            name = text[second.span.start : second.span.end]
            yield TypoFix("missing-session", "a session is named after IN SESSION", second.span, f"SESSION {name}")


def _limit(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    message = "VMQL does not count rows to skip: LIMIT n AFTER the cursor of the last answer continues it"
    for place, piece in enumerate(read[:-3]):
        first, second, third = read[place + 1 : place + 4]
        if piece.word != "LIMIT" or first.kind != "INT" or third.kind != "INT":
            continue
        if second.word in (",", "OFFSET"):
            kept = third if second.word == "," else first
            yield TypoFix("sql-offset", message, SourceSpan(first.span.start, third.span.end), kept.word)


def _empty_call(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for name, opened, closed in zip(read, read[1:], read[2:], strict=False):
        if name.kind == "NAME" and opened.word == "(" and closed.word == ")":
            called = text[name.span.start : name.span.end]
            span = SourceSpan(name.span.start, closed.span.end)
            meant, advice = EMPTY.get(name.word, (None, "SHOW FUNCTIONS lists what there is and what each takes"))
            nothing = (
                "the time now is a text" if name.word == "NOW" else f"{called}() counts nothing; count(*) counts rows"
            )
            yield TypoFix("empty-call", nothing, span, meant, advice)


EMPTY: Final = {"COUNT": ("count(*)", None), "NOW": ("'now'", None)}
_JOINED: Final = "ask two statements, or join the relations in SQL: Store.sql, `vmql --sql`"
CLAUSES_OF_SQL: Final = {
    **dict.fromkeys(("JOIN", "INNER", "LEFT"), _JOINED),
    "OFFSET": "write LIMIT n, and AFTER with the cursor of the last answer to continue it",
    "DISTINCT": "BY x has a row for each x; count(DISTINCT x) counts them",
}


def _clauses_of_sql(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for before, piece in pairwise(read):
        if piece.kind != "NAME" or piece.word not in CLAUSES_OF_SQL or (before.word == "LIMIT" or before.kind == "INT"):
            continue
        meant = "BY" if piece.word == "DISTINCT" and before.word in RELATIONS else None
        advice = None if meant else CLAUSES_OF_SQL[piece.word]
        yield TypoFix("sql-clause", f"VMQL has no {piece.word}", piece.span, meant, advice)


def _unquoted(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    end = 0
    for piece in read:
        if piece.kind not in ("NAME", "REFERENCE", "INT", "FLOAT") or piece.span.start < end:
            continue
        found = CHUNK.match(text, piece.span.start)
        if found is not None and found.end() > piece.span.end:
            end = found.end()
            message = f"{found[0]} is no plain name, so it stands in single quotes"
            yield TypoFix("unquoted-name", message, SourceSpan(*found.span()), quoted(found[0]))


def _star(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for relation, star in pairwise(read):
        if relation.word in (*RELATIONS, "CONTEXT") and star.word == "*":
            yield TypoFix("sql-star", "without columns a relation has all of them", star.span, "")


def _is_value(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for place, piece in enumerate(read[:-1]):
        no = read[place + 1].word == "NOT"
        value = read[place + 2 if no else place + 1]
        if piece.word == "IS" and value.kind in ("NAME", "STRING", "INT", "FLOAT", "QUOTED") and value.word != "NULL":
            span = SourceSpan(piece.span.start, read[place + 1].span.end if no else piece.span.end)
            yield TypoFix("is-value", "IS asks for NULL alone; values are compared with =", span, "!=" if no else "=")


def _placeholder(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for piece in read:
        if piece.kind == "PLACEHOLDER":
            name = text[piece.span.start : piece.span.end].strip(":@{}")
            yield TypoFix("placeholder", "a parameter is written $name", piece.span, f"${name}")


def _reserved(text: str, read: list[LooseToken]) -> Iterator[TypoFix]:
    for before, piece, after in zip(read, read[1:], read[2:], strict=False):
        if piece.word in CLAUSES and (before.word == "," or (before.word in RELATIONS and after.word == ",")):
            message = f"{piece.word} begins a clause, so nothing shown can be called that"
            advice = "DESCRIBE lists the columns of a relation"
            yield TypoFix("reserved-word", message, piece.span, advice=advice)


HABITS: Final[tuple[Callable[[str, list[LooseToken]], Iterator[TypoFix]], ...]] = (
    _select,
    _group_by,
    _signs,
    _quoted,
    _bare_moment,
    _bare_between,
    _second_moment,
    _session,
    _limit,
    _empty_call,
    _clauses_of_sql,
    _unquoted,
    _star,
    _is_value,
    _placeholder,
    _reserved,
    *SLIPS,
)


def edits(text: str, place: int) -> list[TypoFix]:
    """Every habit found in the statement that begins at a place, in the order of the text, none within another."""
    read = pieces(text, place)
    found: list[TypoFix] = []
    for habit in HABITS:
        found += habit(text, read)
    kept: list[TypoFix] = []
    for edit in sorted(found, key=lambda edit: (edit.span.start, -edit.span.end)):
        if not kept or edit.span.start >= kept[-1].span.end:
            kept.append(edit)
    return kept


def made(text: str, place: int, found: list[TypoFix]) -> str:
    """The statement at a place with its edits made."""
    end = pieces(text, place)[-1].span.start
    parts = []
    for edit in found:
        if edit.replacement is not None:
            parts += [text[place : edit.span.start], edit.replacement]
            place = edit.span.end
    return "".join([*parts, text[place:end]])
