"""Habits of other languages and slips in VMQL's own words, each with what was meant: a table of patterns.

A statement that does not parse is read once more, loosely: every habit found in it is an edit, and
where the text with all the edits made parses, it is what was meant.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from vmstore.vmql.diagnostics.lookahead import relations
from vmstore.vmql.diagnostics.loose_lexer import LooseToken, pieces
from vmstore.vmql.syntax.errors import near
from vmstore.vmql.syntax.nodes import NOWHERE, SourceSpan
from vmstore.vmql.syntax.printer import quoted

CLAUSES: Final = frozenset(("WHERE", "BY", "PER", "LIMIT", "SINCE", "UNTIL", "ACROSS", "ALL", "AFTER", "AND", "OR"))


class Edit(NamedTuple):
    """One habit in a text: its code, its message, its place, and what VMQL has instead.

    Without a replacement it is not certain what was meant; `advice` then says what to do.
    """

    code: str
    message: str
    span: SourceSpan
    replacement: str | None = None
    advice: str | None = None


class Habit(NamedTuple):
    """A pattern of tokens, what to say of it, and what was meant.

    A pattern has an item a token: words, kinds and CLASSES with | between them, after a - those that it is not;
    + takes all that follow, too. What is replaced stands in brackets. In the texts {all} is what stands there, {0} the
    first token of it, {inner} that without its signs, {word} that in capitals.
    """

    code: str
    pattern: str
    message: str
    meant: str | None = None
    advice: str | None = None
    of: str = ""  # which statements, by their first token
    where: bool | None = None  # only after the first WHERE, or only before it


CLASSES: Final = {
    "unit": "TURN|CALL|POSITION",
    "moment": "_as_of|SINCE|UNTIL|AT",
    "clause": "|".join(CLAUSES),
    "page": "name|reference|string|param|int",
    "over": "AT|end|stop|_in_session",
    "starts": "WHERE|BY|LIMIT|SINCE|UNTIL|ACROSS|AND|OR|BETWEEN|IN|AS|ORDER|AT",
}
UNIT: Final = "moment-without-unit"
SAY_WHICH: Final = "{0} can be a turn, a call or a position; say which"
NO_OFFSET: Final = "VMQL does not count rows to skip: LIMIT n AFTER the cursor of the last answer continues it"
JOINED: Final = "ask two statements, or join the relations in SQL: Store.sql, `vmql --sql`"
NO_WRITE: Final = "VMQL asks, and changes nothing that was written; FORK alone makes something"
IS_NULL: Final = "IS asks for NULL alone; values are compared with ="

HABITS: Final = (
    Habit("sql-group-by", "[GROUP BY]", "groups are asked for with BY alone", "BY"),
    Habit("double-equals", "[==]", "VMQL compares with a single =", "="),
    Habit("sql-not-equal", "[<>]", "VMQL writes unlike as !=", "!="),
    Habit("and-or-signs", "[&&]", "conditions are joined by AND", "AND"),
    Habit("and-or-signs", "[||]", "conditions are joined by OR", "OR"),
    Habit("double-quotes", "[quoted]", "a text stands in single quotes", "'{inner}'"),
    Habit(UNIT, "moment [int]", SAY_WHICH, "TURN {0}"),
    Habit(UNIT, "moment [string]", "a time is written with TIME before it", "TIME {0}"),
    Habit(UNIT, "moment [date]", "a time is written with TIME before it", "TIME '{0}'"),
    Habit(UNIT, "unit int TO|AND [int]", "each moment says its unit", "{before} {0}"),
    Habit(UNIT, "begin DIFF CONTEXT [int]", SAY_WHICH, "TURN {0}"),
    Habit(UNIT, "begin DIFF CONTEXT int TO [int]", SAY_WHICH, "TURN {0}"),
    Habit(
        UNIT,
        "BETWEEN [int AND int]",
        "{0} and {2} can be turns, calls or positions; say which",
        "TURN {0} AND TURN {2}",
        where=False,
    ),
    Habit("bare-date", "-moment|begin [date]", "a time stands in single quotes", "'{0}'"),
    Habit(
        "missing-session",
        "[_in_session clause|end|stop|_as_of|_valid_at|_order_by]",
        "IN SESSION is followed by the name of a session",
        advice="write IN SESSION 'name'; SESSIONS lists them",
    ),
    Habit(
        "missing-session",
        "IN [name|string-CONTEXT]",
        "a session is named after IN SESSION",
        "SESSION {0}",
        where=False,
    ),
    Habit("sql-offset", "LIMIT [int , int]", NO_OFFSET, "{2}"),
    Habit("sql-offset", "LIMIT [int OFFSET int]", NO_OFFSET, "{0}"),
    Habit("empty-call", "[COUNT ( )]", "{0}() counts nothing; count(*) counts rows", "count(*)"),
    Habit("empty-call", "[NOW ( )]", "the time now is a text", "'now'"),
    Habit(
        "empty-call",
        "[name-COUNT|NOW ( )]",
        "{0}() counts nothing; count(*) counts rows",
        advice="SHOW FUNCTIONS lists what there is and what each takes",
    ),
    Habit("sql-clause", "-LIMIT|int|begin [JOIN|INNER|LEFT]", "VMQL has no {word}", advice=JOINED),
    Habit(
        "sql-clause",
        "-LIMIT|int|begin [OFFSET]",
        "VMQL has no {word}",
        advice="write LIMIT n, and AFTER with the cursor of the last answer to continue it",
    ),
    Habit("sql-clause", "relation [DISTINCT]", "VMQL has no {word}", "BY"),
    Habit(
        "sql-clause",
        "-LIMIT|int|begin|relation [DISTINCT]",
        "VMQL has no {word}",
        advice="BY x has a row for each x; count(DISTINCT x) counts them",
    ),
    Habit("sql-star", "relation|CONTEXT [*]", "without columns a relation has all of them", ""),
    Habit("is-value", "[IS] name|string|int|float|quoted-NULL|NOT", IS_NULL, "="),
    Habit("is-value", "[IS NOT] name|string|int|float|quoted-NULL", IS_NULL, "!="),
    Habit("placeholder", "[placeholder]", "a parameter is written $name", "${inner}"),
    *(
        Habit(
            "reserved-word",
            pattern,
            "{word} begins a clause, so nothing shown can be called that",
            advice="DESCRIBE lists the columns of a relation",
        )
        for pattern in (", [clause]", "relation [clause] ,")
    ),
    Habit("left-out", "-DIFF CONTEXT [unit] int|param", "the moment of a context stands after AT", "AT {0}"),
    Habit(
        "left-out",
        "-DIFF CONTEXT [int]",
        "the moment of a context stands after AT, and says its unit",
        "AT TURN {0}",
    ),
    Habit("left-out", "begin [DIFF] unit", "name what is compared: contexts, or sessions", "{0} CONTEXT"),
    Habit("left-out", "begin WHY [page NOT] IN CONTEXT", "NOT stands before the page", "NOT {0}"),
    Habit("left-out", "begin WHY [page-NOT] over", "a page is asked for in a context", "{0} IN CONTEXT"),
    Habit("left-out", "begin WHY NOT [page] over", "a page is asked for in a context", "{0} IN CONTEXT"),
    Habit("left-out", "begin SEARCH [name-starts+]", "words stand in single quotes", "'{all}'"),
    Habit("left-out", "_context_matches [name-starts+]", "words stand in single quotes", "'{all}'"),
    Habit("left-out", "TIME [name-starts]", "words stand in single quotes", "'{0}'"),
    Habit("left-out", "IN [string|int|float]", "what follows IN stands in parentheses", "({0})", where=True),
    Habit("sql-contains", "[CONTAINS|MATCH] string", "VMQL has no {word}", "MATCHES"),
    Habit("sql-contains", "[ILIKE] string", "VMQL has no {word}", "LIKE"),
    *(
        Habit("left-out", pattern, "a session is named after IN SESSION", "IN SESSION", of="-FORK|VERIFY|DIFF|SET")
        for pattern in ("[FROM|OF SESSION] page", "-,|FROM|OF|begin [SESSION] page")
    ),
    Habit("left-out", "begin CALLS [int]", "rows are chosen after WHERE", "WHERE call = {0}"),
    Habit("left-out", "begin TURNS [int]", "rows are chosen after WHERE", "WHERE turn = {0}"),
    Habit(
        "sql-write",
        "begin [INSERT|UPDATE|DELETE|CREATE|DROP|ALTER]",
        NO_WRITE,
        advice="`vmstore annotate` says more of a page",
    ),
)


def edits(text: str, place: int) -> list[Edit]:
    """Every habit found in the statement that begins at a place, in the order of the text, none within another."""
    read = pieces(text, place)
    found = [*_select(text, read), *_unquoted(text, read)]
    for habit in HABITS:
        found += _found(habit, text, read)
    kept: list[Edit] = []
    for edit in sorted(found, key=lambda edit: (edit.span.start, -edit.span.end)):
        if not kept or edit.span.start >= kept[-1].span.end:
            kept.append(edit)
    return kept


def made(text: str, place: int, found: list[Edit]) -> str:
    """The statement at a place with its edits made."""
    return _edited(text, place, pieces(text, place)[-1].span.start, found)


def _edited(text: str, place: int, end: int, found: list[Edit]) -> str:
    """A stretch of a text with its edits made."""
    parts = []
    for edit in found:
        if edit.replacement is not None:
            parts += [text[place : edit.span.start], edit.replacement]
            place = edit.span.end
    return "".join([*parts, text[place:end]])


# ---- patterns


class Item(NamedTuple):
    """What one token of a pattern can be and cannot, whether more like it may follow, whether it is replaced."""

    wanted: frozenset[str]
    unwanted: frozenset[str]
    repeated: bool
    replaced: bool

    def takes(self, token: LooseToken) -> bool:
        """Whether a token fits."""
        return self.unwanted.isdisjoint(token.labels) and not (self.wanted and self.wanted.isdisjoint(token.labels))


@functools.cache
def _items(pattern: str) -> list[Item]:
    items, replaced = [], False
    for text in pattern.split():
        replaced = replaced or text[0] == "["
        bare = text.strip("[]")
        wanted, _, unwanted = bare.removesuffix("+").partition("-")
        items.append(Item(_labels(wanted), _labels(unwanted), bare.endswith("+"), replaced))
        replaced = replaced and text[-1] != "]"
    return items


def _labels(text: str) -> frozenset[str]:
    if text == "||":
        return frozenset((text,))
    return frozenset(label for name in text.split("|") if name for label in CLASSES.get(name, name).split("|"))


def _found(habit: Habit, text: str, read: list[LooseToken]) -> Iterator[Edit]:
    """Every place of a statement where a habit shows."""
    if habit.of and not _items(habit.of)[0].takes(read[0]):
        return
    words = [piece.word for piece in read]
    where = words.index("WHERE") if "WHERE" in words else len(words)
    tokens = [BEGIN, *read]
    for place in range(len(tokens)):
        if habit.where is not None and habit.where != (place > where):
            continue
        if taken := _taken(_items(habit.pattern), tokens, place):
            yield _edit(habit, text, *taken)


BEGIN: Final = LooseToken("BEGIN", "", NOWHERE, frozenset(("begin",)))


def _taken(items: list[Item], tokens: list[LooseToken], place: int) -> tuple[LooseToken, list[LooseToken]] | None:
    """The first token that a pattern takes at a place, and those to be replaced; None where it does not fit."""
    first, replaced = tokens[place], []
    for item in items:
        start = place
        while place < len(tokens) and item.takes(tokens[place]) and (place == start or item.repeated):
            replaced += [tokens[place]] if item.replaced else []
            place += 1
        if place == start:
            return None
    return first, replaced


def _edit(habit: Habit, text: str, first: LooseToken, replaced: list[LooseToken]) -> Edit:
    span = SourceSpan(replaced[0].span.start, replaced[-1].span.end)
    texts = [text[token.span.start : token.span.end] for token in replaced]
    named = {"all": text[slice(*span)], "inner": _inner(texts[0]), "word": replaced[0].word, "before": first.word}
    meant = None if habit.meant is None else habit.meant.format(*texts, **named)
    return Edit(habit.code, habit.message.format(*texts, **named), span, meant, habit.advice)


def _inner(text: str) -> str:
    """A text in other quotes, or a placeholder, without its signs."""
    return text.strip(":@{}") if text[0] in ":@{" else text[1:-1].replace("'", "''")


# ---- what is no pattern

# What people write as one name: up to a blank, a sign of the language, a quote or a comment.
CHUNK: Final = re.compile(r"(?:(?!--)[^\s,;()='\"<>!&|*+`])+")


def _select(text: str, read: list[LooseToken]) -> Iterator[Edit]:
    """SELECT page, tokens FROM pages."""
    if read[0].word != "SELECT":
        return
    message = "VMQL has no SELECT: the relation comes first, then its columns, none for all of them"
    source = next((place for place, piece in enumerate(read) if piece.word == "FROM"), None)
    named = read[source + 1].word if source is not None and source + 1 < len(read) else ""
    relation = named if named in relations() else near(named, relations())
    if source is None or relation is None:
        advice = "write for example PAGES page, tokens WHERE tokens > 500"
        yield Edit("sql-select", message, read[0].span, advice=advice)
        return
    by, first = (" BY", 2) if read[1].word == "DISTINCT" and source > 2 else ("", 1)
    start, end = read[first].span.start, read[source - 1].span.end
    inner = [edit for habit in HABITS if habit.code in SHOWN for edit in _found(habit, text, read[first:source])]
    shown = _edited(text, start, end, sorted(inner, key=lambda edit: edit.span.start))
    columns = "" if text[start:end] == "*" else f"{by} {shown}"
    yield Edit("sql-select", message, SourceSpan(read[0].span.start, read[source + 1].span.end), relation + columns)


SHOWN: Final = ("empty-call", "double-quotes")  # habits among the columns of a SELECT


def _unquoted(text: str, read: list[LooseToken]) -> Iterator[Edit]:
    """PAGES IN SESSION try-%."""
    end = 0
    for piece in read:
        if piece.kind not in ("NAME", "REFERENCE", "INT", "FLOAT") or piece.span.start < end:
            continue
        found = CHUNK.match(text, piece.span.start)
        if found is not None and found.end() > piece.span.end:
            end = found.end()
            message = f"{found[0]} is no plain name, so it stands in single quotes"
            yield Edit("unquoted-name", message, SourceSpan(*found.span()), quoted(found[0]))
