"""Breakpoints: the first moment of a session at which a predicate holds, and what happened there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from vmstore.core.page import Level
from vmstore.errors import UnknownError
from vmstore.store.host import SessionHost
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import moment_at
from vmstore.vmql.planner.predicate import predicate
from vmstore.vmql.syntax.errors import QueryError


class Queried(Protocol):
    """A store that is asked."""

    @property
    def query(self) -> Callable[..., Any]:
        """Answers a VMQL statement."""
        ...


class Breakpoint(msgspec.Struct, frozen=True):
    """The moment a session stopped at: position, turn and call in force, the event, and its row.

    `relation` is the one that was asked; turn and call are 0 before the first.
    """

    session: str
    position: int
    turn: int
    call: int
    event: str
    relation: str
    row: dict[str, Any]


def until(store: Queried, session: SessionHost, text: str, after: int | None = None) -> Breakpoint | None:
    """The first moment of a session, after a position where one is given, at which a predicate holds; None without one.

    Raises QueryError, which points at what is wrong with the predicate, and UnknownError where the
    session has no such position.
    """
    return _until(store.query, session, text, after)


def _until(query: Callable[..., Any], session: SessionHost, text: str, after: int | None) -> Breakpoint | None:
    ns = session._ns
    with ns.asking():
        end = session.info().position
        if after is not None and not 0 <= after <= end:
            raise UnknownError(
                f"session {session.name!r} has no position {after}; its last is {end}", code="no-position"
            )
        wanted = predicate(text)
        statement = wanted.first(after or None)
        try:
            rows = query(statement, session=session.name).to_dicts()
        except QueryError as error:
            raise wanted.pointed(error) from None
        if not rows:
            return None
        row = rows[0]
        here = moment_at(Branch(ns.views, ns.key(session.name) or 0), row["position"])
        return Breakpoint(session.name, row["position"], *here, happened(statement.name, row), statement.name, row)


def first(session: SessionHost, text: str, after: int | None = None) -> Breakpoint | None:
    """The same of a session alone, which asks through the store that it came from."""
    assert session._ns.query is not None, "a session comes from a store"
    return _until(session._ns.query, session, text, after)


def happened(relation: str, row: dict[str, Any]) -> str:
    """A row in words: what came about there."""
    match relation:
        case "CALLS":
            return f"call {row['call']} is sent, with {row['tokens']:,} tokens; {row['status']}"
        case "MOVES":
            return f"{row['page']} {_moves(row)}" + _because(row["reason"])
        case "MUTATIONS":
            return f"{row['kind']}{_of(row)}" + _because(row["reason"])
        case "FAULTS":
            answer = "it comes" if row["granted"] else f"denied: {row['denied_because']}"
            return (
                f"{row['page'] or 'a page that is not there'} is asked for ({row['reason'] or 'it is back'}); {answer}"
            )
    return f"a row of {relation}{_of(row)}"


def _moves(row: dict[str, Any]) -> str:
    before, after = row["level_before"], row["level_after"]
    if before is None:
        return "enters L0" + (f", shown {Level(after).word}" if after else "")
    return "leaves L0" if after is None else f"is shown {Level(after).word} in L0, no longer {Level(before).word}"


def _of(row: dict[str, Any]) -> str:
    page = row.get("page")
    return "" if page is None else f" of {page}"


def _because(reason: str | None) -> str:
    return "" if reason is None else f" ({reason})"
