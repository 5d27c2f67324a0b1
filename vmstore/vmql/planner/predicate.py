"""Conditions that are handed over alone: from a predicate to the statement that asks for what it selects.

A predicate is a VMQL condition, or a relation with one: `msg_042 LEAVES L0`, `tokens > 8000`,
`MUTATIONS WHERE kind = evict AND tokens > 500`. A condition alone is asked of the first relation
that has all of its columns. What selects pages, to erase or keep them, is a condition on PAGES.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from vmstore.vmql.parse import parse
from vmstore.vmql.planner.bind import Binder
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.relations.relation import CHAIN
from vmstore.vmql.syntax.errors import QueryError, fault, near
from vmstore.vmql.syntax.nodes import (
    AcrossSessions,
    Expr,
    MomentNode,
    Param,
    RelationQuery,
    SourceSpan,
    Statement,
    Tail,
    Value,
    Word,
    columns_named,
)

ASKED = ("CALLS", "MOVES", "MUTATIONS", "FAULTS")
"""The relations that a condition alone is asked of, in this order."""
PARTED = frozenset(name for name, relation in RELATIONS.items() if "position" in relation.fields and not relation.wide)
"""The relations whose rows came at a position."""

_LEAD = "CALLS WHERE "
_PAGES_LEAD = "PAGES WHERE "


class Predicate(NamedTuple):
    """A condition, the relation it is asked of, and by how much its spans lie behind the text."""

    text: str
    relation: str
    where: Expr
    lead: int = 0

    def first(self, after: int | None) -> RelationQuery:
        """The statement whose one row is the first, after a position, for which it holds."""
        since = None if after is None else MomentNode(unit="position", value=Value(value=after))
        return RelationQuery(name=self.relation, tail=Tail(where=self.where, since=since, limit=Value(value=1)))

    def pages(self, across: bool) -> RelationQuery:
        """The statement whose rows are the session and name of each page for which it holds."""
        tail = Tail(where=self.where, scope=AcrossSessions() if across else None)
        return RelationQuery(name=self.relation, columns=columns_named("session", "page"), tail=tail)

    def pointed(self, error: QueryError) -> QueryError:
        """A mistake where the text has it."""
        start, end = (min(max(place - self.lead, 0), len(self.text)) for place in error.span)
        error.text, error.span = self.text, SourceSpan(start, end)
        if self.lead and error.hint is not None:
            error.hint = error.hint.replace(_LEAD, "").replace(_PAGES_LEAD, "")
        return error


def predicate(text: str) -> Predicate:
    """A predicate as it is written; raises QueryError, which points at what is wrong with it."""
    words = text.split(None, 2)
    if len(words) > 1 and words[1].upper() == "WHERE":
        return _whole(text)
    led = Predicate(text, "", Value(value=None), len(_LEAD))
    try:
        where = _condition(_LEAD, text)
        return led._replace(relation=_suited(where), where=where)
    except QueryError as error:
        raise led.pointed(error) from None


def page_condition(text: str) -> Predicate:
    """A condition on PAGES as it is written.

    Raises QueryError where it is followed by another clause: a LIMIT would leave out pages that it selects.
    """
    led = Predicate(text, "PAGES", Value(value=None), len(_PAGES_LEAD))
    try:
        return led._replace(where=_condition(_PAGES_LEAD, text))
    except QueryError as error:
        raise led.pointed(error) from None


def _condition(lead: str, text: str) -> Expr:
    """The condition that stands after a lead, and nothing else."""
    asked = parse(lead + text)
    assert isinstance(asked, RelationQuery) and asked.tail.where is not None, "the lead begins one"
    _alone(asked, text)
    return asked.tail.where


def _whole(text: str) -> Predicate:
    """A relation and its condition."""
    asked: Statement = parse(text)
    if not isinstance(asked, RelationQuery) or asked.tail.where is None:
        message = "a predicate is a condition, or a relation with one"
        raise QueryError(message, code="not-a-condition", text=text, hint="MUTATIONS WHERE kind = evict")
    name = asked.name.upper()
    if name not in PARTED:
        message = f"the rows of {name} came at no one position"
        raise QueryError(message, code="not-a-condition", text=text, span=asked.span, hint="MOVES WHERE …")
    _alone(asked, text)
    return Predicate(text, name, asked.tail.where)


def _alone(asked: RelationQuery, text: str) -> None:
    """Refuses what would change nothing."""
    bare = msgspec.structs.replace(asked.tail, where=None)
    if bare != Tail() or asked.columns:
        message = "a condition stands alone: no columns, order, limit, scope or moment beside it"
        raise QueryError(message, code="clause-unused", text=text, span=asked.span, hint="leave the rest out")


def _suited(where: Expr) -> str:
    """The first relation that has all the columns of a condition."""
    unknown: list[QueryError] = []
    for name in ASKED:
        try:
            Binder(RELATIONS[name], CHAIN).condition(where)
        except QueryError as error:
            if error.code != "unknown-column":
                raise
            unknown.append(error)
        else:
            return name
    raise _nowhere(where, unknown[0])


def _nowhere(where: Expr, error: QueryError) -> QueryError:
    """What to say of columns that no one relation has."""
    known_in = {
        name: [relation for relation in ASKED if name in RELATIONS[relation].fields] for name in _columns(where)
    }
    missing = next((name for name, found in known_in.items() if not found), None)
    known = tuple(dict.fromkeys(column for name in ASKED for column in RELATIONS[name].fields))
    if missing is None:
        listed = ", ".join(f"{name} is of {' and '.join(found)}" for name, found in known_in.items())
        return fault(f"no relation has all of them: {listed}", "unknown-column", error.span)
    meant = near(missing, known)
    hint = f"did you mean {meant}?" if meant else f"DESCRIBE {', '.join(ASKED[:-1])} and {ASKED[-1]} list what there is"
    message = f"none of {', '.join(ASKED)} has a column {missing!r}"
    return fault(message, "unknown-column", _span(where, missing) or error.span, hint=hint)


def _words(where: object) -> list[Word]:
    """The words on the left of comparisons, and those that stand alone: what must be columns."""
    match where:
        case Word():
            return [where]
        case Value() | Param() | None:
            return []
    found: list[Word] = []
    for field in ("parts", "operand", "left", "among"):
        inner = getattr(where, field, ())
        for item in inner if isinstance(inner, tuple) else (inner,):
            found += _words(item)
    return found


def _columns(where: Expr) -> list[str]:
    return list(dict.fromkeys(word.path[0].lower() for word in _words(where)))


def _span(where: Expr, column: str) -> SourceSpan | None:
    return next((word.span for word in _words(where) if word.path[0].lower() == column), None)
