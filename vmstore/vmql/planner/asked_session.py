"""The one session that a statement asks, found before anything is read: where only that one has to be at hand."""

from __future__ import annotations

from collections.abc import Iterator

from vmstore.vmql.planner.scope import Params
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.syntax.nodes import (
    ContextAt,
    DiffContext,
    Explain,
    InSession,
    LineageQuery,
    Node,
    OfPage,
    Param,
    PathQuery,
    RelationQuery,
    SearchQuery,
    Statement,
    Tail,
    Value,
    WhyQuery,
    Word,
)

_ALONE = (RelationQuery, ContextAt, DiffContext, OfPage, LineageQuery, PathQuery, WhyQuery, SearchQuery)


def asked_session(statement: Statement, params: Params, session: str | None) -> str | None:
    """The name of the one session that a statement asks, with all within it; None where it may ask others.

    `session` is asked where a part names none. A name may be the beginning of one.
    """
    if isinstance(statement, Explain):
        return asked_session(statement.statement, params, session)
    if not isinstance(statement, _ALONE):
        return None
    names = {_named(part, params, session) for part in _parts(statement) if isinstance(part, (*_ALONE, Tail))}
    return names.pop() if len(names) == 1 else None


def _named(part: Node, params: Params, session: str | None) -> str | None:
    """The session that a part asks."""
    if isinstance(part, RelationQuery) and (part.name not in RELATIONS or RELATIONS[part.name].wide):
        return None
    scope = part.scope if isinstance(part, Tail | WhyQuery) else part.tail.scope  # type: ignore[attr-defined]
    if scope is None:
        return session
    if not isinstance(scope, InSession):
        return None
    name = scope.name
    found = (
        name.value
        if isinstance(name, Value)
        else params.get(name.name)
        if isinstance(name, Param)
        else ".".join(name.path)
        if isinstance(name, Word)
        else None
    )
    return found if isinstance(found, str) and "%" not in found else None


def _parts(statement: Node) -> Iterator[Node]:
    waiting = [statement]
    while waiting:
        one = waiting.pop()
        yield one
        for field in one.__struct_fields__:
            value = getattr(one, field)
            waiting += [part for part in (value if type(value) is tuple else (value,)) if isinstance(part, Node)]
