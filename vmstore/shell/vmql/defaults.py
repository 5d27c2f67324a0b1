"""What the shell adds to a statement that says nothing of it: the moment that is set, and a limit."""

from __future__ import annotations

import msgspec

from vmstore.vmql.syntax.nodes import (
    ContextAt,
    DiffSession,
    Explain,
    Lineage,
    Moment,
    OfPage,
    Relation,
    Search,
    Statement,
    Tail,
    Value,
    Why,
)

TAILED = (Relation, Search, OfPage, Lineage)
PAGED = (Relation, Search)  # those whose answer goes on after a cursor


def at_moment(statement: Statement, moment: Moment) -> Statement:
    """The statement at a moment, where it names none itself."""
    if isinstance(statement, Explain):
        return msgspec.structs.replace(statement, statement=at_moment(statement.statement, moment))
    if isinstance(statement, ContextAt | Why | DiffSession):
        told = statement.moment or (None if isinstance(statement, Why) else statement.tail.as_of)
        return statement if told else msgspec.structs.replace(statement, moment=moment)
    if isinstance(statement, TAILED) and _timeless(statement.tail):
        return msgspec.structs.replace(statement, tail=msgspec.structs.replace(statement.tail, as_of=moment))
    return statement


def limited(statement: Statement, most: int) -> Statement:
    """The statement with a limit, where it has none itself and its answer can go on after a cursor."""
    if not isinstance(statement, PAGED) or statement.tail.limit is not None:
        return statement
    return msgspec.structs.replace(statement, tail=msgspec.structs.replace(statement.tail, limit=Value(value=most)))


def _timeless(tail: Tail) -> bool:
    return tail.as_of is None and tail.since is None and tail.until is None
