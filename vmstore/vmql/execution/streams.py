"""Rows made as they are taken: MUTATIONS and WATCH from the log, FAULTS and MOVES from who stayed when."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from vmstore.views.erased_cells import seen
from vmstore.views.log_reader import LogReader
from vmstore.views.projectors.decisions import decisions_at
from vmstore.views.reads.reasons import reason_of
from vmstore.views.reads.resolve_asof import moment_at
from vmstore.vmql.execution.query import Make, Query, Row
from vmstore.vmql.execution.result import Result
from vmstore.vmql.planner.clause_checks import check_whole
from vmstore.vmql.planner.plan import Plan
from vmstore.vmql.planner.row_bounds import bounds_of, page_of, ways_of
from vmstore.vmql.planner.scope import EVERYWHERE, Scope, given
from vmstore.vmql.planner.values import LISTS, word_of
from vmstore.vmql.relations import python_rows
from vmstore.vmql.relations.actors import namer
from vmstore.vmql.relations.compactions import compactions_of
from vmstore.vmql.relations.faults import faults_of, moves_of
from vmstore.vmql.relations.mutations import Before, Stream
from vmstore.vmql.relations.recalls import recalls_of
from vmstore.vmql.relations.relation import ACROSS, Relation, SessionStream
from vmstore.vmql.relations.tags import segments_of, tags_of
from vmstore.vmql.syntax.errors import QueryError, fault
from vmstore.vmql.syntax.nodes import Compare, Expr, In, Param, SourceSpan, Tail, Value, Watch, Word, parts_of

LOOKED = 64  # rows between two looks at whether a query is to stop


def mutations(query: Query, scope: Scope, tail: Tail) -> Make:
    """Commits decoded as they are taken: of one session those that can hold what is asked for."""
    kinds, page = kinds_in(tail.where, query.params), page_of(tail.where, scope, query.params)
    across, end = scope.shape == ACROSS, scope.basis.get("ordinal", 0)
    within = EVERYWHERE if across else bounds_of(query.statement, tail, scope, query.params)
    if page is not None and not across:
        within = within._replace(low=max(within.low, page - 1))  # nothing is about a page that is not there yet

    def make(found: Plan) -> Callable[[], Iterable[Row]]:
        stream = _stream(query, found, found.wanted, kinds, page)
        if across:
            written_by = {one.session: one for one in scope.written()}
            return lambda: stream.of_all(written_by.get, 0, end)
        written = scope.written(within=within)
        return lambda: stream.of_one(written, lambda one, after, most: ordinals(query, one, after, most))

    return make


def _stream(
    query: Query, found: Plan, wanted: Collection[str], kinds: Collection[str] | None, page: int | None = None
) -> Stream:
    shown, check = found.plain is not None, query.watch.check
    arguments = _asker(query), _requested(query), _before(query), shown, namer(query.world), page
    return Stream(query.world.log, wanted, kinds, check, *arguments)


def _before(query: Query) -> Before:
    """The turn and the call in force before a position of a session."""

    def before(stream: SessionStream, position: int) -> tuple[int, int]:
        if position <= stream.low + 1:
            return stream.turn, stream.call
        with query.asking():
            return moment_at(query.world.lane(stream.session), position - 1)

    return before


def _requested(query: Query) -> Callable[[int], str | None]:
    """The request id that lies in a cell, or that it was erased."""

    def requested(number: int) -> str | None:
        with query.asking():
            cell = seen(query.world.log, query.world.views, [number]).get(number)
        if cell is None:
            return None
        return "[erased]" if cell.erased else cell.content.decode("utf-8", "replace").rpartition("\n")[0]

    return requested


def _asker(query: Query) -> Callable[[int, int], str | None]:
    """What the reference at a position of a session's past says it is for."""

    def asked(session: int, position: int) -> str | None:
        with query.asking():
            found = decisions_at(query.world.lane(session), [position]).get(position)
        return None if found is None else reason_of(found, lambda _: None)

    return asked


def ordinals(query: Query, written: SessionStream, after: int, most: int) -> list[int]:
    """The ordinals of a session's commits that end after a position."""
    with query.asking():
        reader = LogReader(query.world.log, query.world.views)
        return reader.ordinals(written.session, after, written.high, limit=most)


def kinds_in(where: Expr | None, params: dict[str, Any]) -> set[str] | None:
    """The kinds a condition leaves, None where it may be any."""
    for part in parts_of(where):
        match part:
            case Compare(op="=", left=Word(path=("kind",)), right=Value() | Param() | Word() as one):
                return _kinds([given(one, params)])
            case In(operand=Word(path=("kind",)), items=(Param() as listed,), negated=False):
                kinds = given(listed, params)
                return _kinds(kinds if isinstance(kinds, LISTS) else [kinds])
            case In(operand=Word(path=("kind",)), items=items, negated=False):
                if all(isinstance(item, Value | Param | Word) for item in items):
                    return _kinds([given(item, params) for item in items])  # type: ignore[arg-type]
    return None


def _kinds(words: Iterable[Any]) -> set[str] | None:
    """The words of some kinds; None where one is no kind, which is not for the stream to say."""
    found = [word_of(kind, python_rows.Kind) for kind in words]
    return None if None in found else {kind.word for kind in found if kind is not None}


def watch(query: Query, statement: Watch) -> Result:
    """The mutations after a cursor, in the order of the log; `next` continues after them."""
    after, skip = 0, 0
    if statement.cursor is not None:
        parts = str(given(statement.cursor, query.params)).partition(".")
        if not (parts[0].isdecimal() and parts[2].isdecimal()):
            raise _no_cursor(f"{''.join(parts)!r} is no cursor", statement.cursor.span)
        after, skip = int(parts[0]), int(parts[2])
    with query.asking() as end:
        scope = query.scope(statement.tail, wide=True)
        kinds = kinds_in(statement.tail.where, query.params)
        if after > end:
            assert statement.cursor is not None
            raise _no_cursor(f"the log ends at {end}", statement.cursor.span)

        def make(found: Plan) -> Callable[[], Iterable[Row]]:
            stream = _stream(query, found, {*found.wanted, "cursor"}, kinds)
            return lambda: _after(stream.of_all(writer, max(after - 1, 0), end), after, skip)

        @cache
        def writer(session: int) -> SessionStream | None:  # looked up when met: what is new is of few
            with query.asking():
                return next((one for one in scope.written(session) if one.session == session), None)

        query.following = f"{end}.{1 << 30}" if statement.tail.limit is None else None
        return query.select(python_rows.MUTATIONS, statement.columns, statement.tail, scope, make=make, ready=True)


def _no_cursor(message: str, span: SourceSpan) -> QueryError:
    return fault(message, "no-cursor", span, hint="pass the `next` of a WATCH of this store")


def _after(rows: Iterable[Row], ordinal: int, skip: int) -> Iterator[Row]:
    place = list(python_rows.MUTATIONS.fields).index("cursor")
    for row in rows:
        at, _, index = row[place].partition(".")
        if (int(at), int(index)) > (ordinal, skip):
            yield row


# ---- relations that are made at once

LISTED: dict[str, Callable[[Query, Scope, Collection[str], Tail], Iterable[Row]]] = {
    "FAULTS": lambda query, scope, wanted, tail: faults_of(query.looked(scope.lanes()), wanted),
    "MOVES": lambda query, scope, wanted, tail: moves_of(
        query.looked(scope.lanes()), wanted, ways_of(tail.where, query.params)
    ),
    "RECALLS": lambda query, scope, wanted, tail: recalls_of(query.world.log, query.looked(scope.lanes()), wanted),
    "COMPACTIONS": lambda query, scope, wanted, tail: compactions_of(query.looked(scope.lanes())),
    "METRICS": lambda query, scope, wanted, tail: (
        (own.name, *number)
        for own in scope.lanes()
        for number in query.world.numbers(own.lane, own.until, query.watch.check)
    ),
    "TAGS": lambda query, scope, wanted, tail: tags_of(query.looked(scope.lanes())),
    "SEGMENTS": lambda query, scope, wanted, tail: segments_of(query.looked(scope.lanes())),
}
"""The rows of each by the values that are wanted of them."""


def maker(query: Query, relation: Relation, scope: Scope, tail: Tail) -> Make:
    """What makes the rows of a relation that is in no view."""
    if relation.name == "MUTATIONS":
        return mutations(query, scope, tail)
    check_whole(relation.name, tail)

    def make(found: Plan) -> Callable[[], Iterable[Row]]:
        listed = list(query.looked(LISTED[relation.name](query, scope, found.wanted, tail), LOOKED))
        return lambda: listed

    return make
