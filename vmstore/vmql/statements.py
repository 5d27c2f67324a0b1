"""What each statement asks for, one function each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from vmstore.core.asof import AsOf, Position
from vmstore.core.reference import page_position
from vmstore.errors import InputError, UnknownError
from vmstore.vmql import made, shows
from vmstore.vmql.execute import Query, Row
from vmstore.vmql.faults import faults_of
from vmstore.vmql.functions import as_text
from vmstore.vmql.links import RESIDENCIES, VERSIONS
from vmstore.vmql.mutations import Stream, Written
from vmstore.vmql.pages import SEARCH
from vmstore.vmql.plan import Plan
from vmstore.vmql.problems import QueryError
from vmstore.vmql.relation import ACROSS, LANE
from vmstore.vmql.relation import Relation as Catalogued
from vmstore.vmql.result import Result
from vmstore.vmql.scope import OneSession, Scope, as_of, given, told
from vmstore.vmql.search import best
from vmstore.vmql.syntax import (
    And,
    Compare,
    ContextAt,
    Describe,
    DiffContext,
    DiffSession,
    Expr,
    Fork,
    In,
    InSession,
    Lineage,
    Moment,
    OfPage,
    Param,
    Relation,
    Search,
    Set,
    Show,
    Span,
    Tail,
    Value,
    Verify,
    Watch,
    Word,
)

Make = Callable[[Plan], Callable[[], Iterable[Row]]]


def rows_of(listed: Iterable[Row]) -> Make:
    """Rows that are there already."""
    return lambda _: lambda: listed


def one(query: Query, tail: Tail) -> OneSession:
    """The one session a statement is asked of."""
    scope = query.scope(tail)
    if not isinstance(scope, OneSession):
        span = tail.scope.span if tail.scope is not None else Span(0, 0)
        raise QueryError("this is asked of one session", code="which-session", span=span, hint="name one: IN SESSION …")
    return scope


@contextmanager
def faults_at(span: Span, code: str) -> Iterator[None]:
    """What the store refuses within is a fault of the text, at a place of it."""
    try:
        yield
    except (UnknownError, InputError) as error:
        raise told(error, span, code) from error


# ---- MUTATIONS and FAULTS


def mutations(query: Query, scope: Scope, tail: Tail) -> Make:
    """Commits decoded as they are taken."""
    written = scope.written()
    kinds = kinds_in(tail.where, query.params)
    across = scope.shape == ACROSS
    end = scope.basis.get("ordinal", 0)

    def make(found: Plan) -> Callable[[], Iterable[Row]]:
        stream = Stream(query.world.log, found.wanted, kinds, query.watch.check)
        if across:
            return lambda: stream.of_all({one.session: one for one in written}, 0, end)
        return lambda: stream.of_one(written, lambda one, after, most: ordinals(query, one, after, most))

    return make


def ordinals(query: Query, written: Written, after: int, most: int) -> list[int]:
    """The ordinals of a session's commits that end after a position."""
    with query.world.asking():
        found = query.world.views.execute(_ORDINALS, (written.session, after, written.high, most))
        return [ordinal for (ordinal,) in found]


_ORDINALS = "SELECT ordinal FROM commits WHERE session = ? AND last > ? AND first <= ? ORDER BY last LIMIT ?"


def kinds_in(where: Expr | None, params: dict[str, Any]) -> set[str] | None:
    """The kinds a condition leaves, None where it may be any."""
    for part in where.parts if isinstance(where, And) else () if where is None else (where,):
        match part:
            case Compare(op="=", left=Word(path=("kind",)), right=Value() | Param() | Word() as one):
                return {str(given(one, params)).lower()}
            case In(operand=Word(path=("kind",)), items=items, negated=False):
                if all(isinstance(item, Value | Param | Word) for item in items):
                    return {str(given(item, params)).lower() for item in items}  # type: ignore[arg-type]
    return None


def faults(query: Query, scope: Scope, tail: Tail) -> Make:
    """Every return to the prompt."""
    return rows_of(list(faults_of(scope.lanes())))


def watch(query: Query, statement: Watch) -> Result:
    """The mutations after a cursor, in the order of the log; `next` goes on after them."""
    after, skip = 0, 0
    if statement.cursor is not None:
        told = str(given(statement.cursor, query.params)).partition(".")
        if not (told[0].isdecimal() and told[2].isdecimal()):
            raise _no_cursor(f"{''.join(told)!r} is no cursor", statement.cursor.span)
        after, skip = int(told[0]), int(told[2])
    with query.world.asking() as end:
        scope = query.scope(statement.tail, wide=True)
        written = {one.session: one for one in scope.written()}
        kinds = kinds_in(statement.tail.where, query.params)
        if after > end:
            assert statement.cursor is not None
            raise _no_cursor(f"the log ends at {end}", statement.cursor.span)

        def make(found: Plan) -> Callable[[], Iterable[Row]]:
            stream = Stream(query.world.log, {*found.wanted, "cursor"}, kinds, query.watch.check)
            return lambda: _after(stream.of_all(written, max(after - 1, 0), end), after, skip)

        query.following = f"{end}.{1 << 30}" if statement.tail.limit is None else None
        return query.select(made.MUTATIONS, statement.columns, statement.tail, scope, make=make)


def _no_cursor(message: str, span: Span) -> QueryError:
    return QueryError(message, code="no-cursor", span=span, hint="pass the `next` of a WATCH of this store")


def _after(rows: Iterable[Row], ordinal: int, skip: int) -> Iterator[Row]:
    place = list(made.MUTATIONS.fields).index("cursor")
    for row in rows:
        at, _, index = row[place].partition(".")
        if (int(at), int(index)) > (ordinal, skip):
            yield row


# ---- contexts


def context(query: Query, statement: ContextAt) -> Result:
    """What the model saw at a call."""
    tail = statement.tail
    with query.world.asking():
        bare = msgspec.structs.replace(tail, as_of=None)
        scope = one(query, bare)
        moment = statement.moment or tail.as_of
        when = as_of(moment, query.params, query.world.now())
        with faults_at(moment.span if moment is not None else statement.span, "no-such-moment"):
            seen = query.world.session(scope.name).context(when)
        basis = {**msgspec.to_builtins(seen.basis), "fidelity": seen.fidelity}
        if statement.form == "render":
            text = rows_of([(seen.text(),)])
            return query.select(made.RENDERED, (), Tail(), scope, make=text, kind="text", basis=basis)
        if statement.form == "messages":
            said = [(at, _role(said), _json(said)) for at, said in enumerate(seen.messages(), 1)]
            return query.select(made.CHAT, (), Tail(), scope, make=rows_of(said), kind="messages", basis=basis)

        def make(found: Plan) -> Callable[[], Iterable[Row]]:
            contents = seen.contents() if "text" in found.wanted else {}
            listed = [
                (
                    *(page.order, number, _number(page.message), page.role, page.type, page.level, page.tokens),
                    *(int(page.pinned), page.since_turn, page.since_call),
                    as_text(contents[page.page]) if page.page in contents else None,
                )
                for page, number in zip(seen.pages, seen.page_ids, strict=True)
            ]
            return lambda: listed

        return query.select(made.CONTEXT, statement.columns, bare, scope, make=make, kind="context", basis=basis)


def _number(name: str | None) -> int | None:
    return int(name[1:]) if name else None


def _role(message: Any) -> str | None:
    return message.get("role") if isinstance(message, dict) else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


def diff_context(query: Query, statement: DiffContext) -> Result:
    """What changed between two contexts of a session."""
    with query.world.asking():
        scope = one(query, statement.tail)
        ends = [(scope.name, _when(query, moment)) for moment in (statement.before, statement.after)]
        with faults_at(statement.before.span, "no-such-moment"):
            return _diff(query, scope, statement.tail, *ends)


def diff_session(query: Query, statement: DiffSession) -> Result:
    """What differs between the contexts of two sessions."""
    with query.world.asking():
        ends, when = [], _when(query, statement.moment)
        for node in (statement.before, statement.after):
            name = str(given(node, query.params))
            scope = one(query, Tail(scope=InSession(name=Value(value=name, span=node.span), span=node.span)))
            ends.append((name, when))
        with faults_at(statement.span, "no-such-moment"):
            return _diff(query, scope, statement.tail, *ends)


def _when(query: Query, moment: Moment | None) -> AsOf:
    return as_of(moment, query.params, query.world.now())


def _diff(query: Query, scope: Scope, tail: Tail, before: tuple[str, AsOf], after: tuple[str, AsOf]) -> Result:
    changes, basis = query.world.differences(before, after)
    listed = [
        (
            *(page_position(change.page), owner, change.change, change.tokens_after - change.tokens_before),
            *(change.tokens_before, change.tokens_after, _number(change.message), change.role, change.type),
            *(change.level_before, change.level_after, change.text),
        )
        for owner, change in changes
    ]
    return query.select(made.DIFF, (), tail, scope, make=rows_of(listed), kind="diff", basis=dict(basis))


# ---- pages


def of_page(query: Query, statement: OfPage) -> Result:
    """What happened to a page, where it stayed, what it held."""
    if statement.what == "history":
        return history(query, statement)
    relation = RESIDENCIES if statement.what == "residencies" else VERSIONS
    condition: Expr = Compare(op="=", left=Word(path=("page",)), right=statement.page)
    where = condition if statement.tail.where is None else And(parts=(condition, statement.tail.where))
    tail = msgspec.structs.replace(statement.tail, where=where)
    with query.world.asking():
        return query.select(relation, (), tail, one(query, tail))


def history(query: Query, statement: OfPage) -> Result:
    """What happened to a page up to a moment."""
    with query.world.asking():
        scope = one(query, statement.tail)
        name = str(given(statement.page, query.params))
        with faults_at(statement.page.span, "unknown-page"):
            events = query.world.session(scope.name).history(name, Position(scope.at.position))
        listed = [msgspec.structs.astuple(event) for event in events if scope.since < event.position <= scope.until]
        return query.select(made.HISTORY, (), statement.tail, scope, make=rows_of(listed), kind="history")


def lineage(query: Query, statement: Lineage) -> Result:
    """The links met on a walk from a page, as the log had them at the moment."""
    with query.world.asking():
        scope = one(query, statement.tail)
        page = scope.position_of(str(given(statement.page, query.params)), statement.page.span)
        depth = None if statement.depth is None else given(statement.depth, query.params)
        kinds = [str(given(kind, query.params)).lower() for kind in statement.kinds] or None
        session = query.world.session(scope.name)
        walk = session.sources if statement.up else session.derived
        with faults_at(statement.span, "unknown-word"):
            found = walk(f"p{page}@position:{scope.at.position}", depth=depth, kinds=kinds)
        listed = [
            (edge.depth, page_position(edge.source), edge.kind, page_position(edge.target), edge.position, edge.text)
            for edge in found
            if scope.since < edge.position <= scope.until
        ]
        return query.select(made.LINEAGE, (), statement.tail, scope, make=rows_of(listed), kind="lineage")


# ---- sessions


def fork(query: Query, statement: Fork) -> Result:
    """Makes a session that shares another's past: the one statement that writes."""
    name = str(given(statement.name, query.params))
    told_scope = None
    if statement.session is not None:
        told_scope = InSession(name=statement.session, span=statement.session.span)
    scope = one(query, Tail(scope=told_scope, as_of=statement.moment))
    with faults_at(statement.name.span, "bad-name"):
        query.world.session(scope.name).fork(name, Position(scope.at.position))
    row = (name, scope.name, *scope.at)
    return query.select(made.FORKED, (), Tail(), scope, make=rows_of([row]))


def verify(query: Query, statement: Verify) -> Result:
    """Checks every hash, view and rule; no row where all is well."""
    name = None if statement.session is None else str(given(statement.session, query.params))
    with query.world.asking():
        scope = query.scope(Tail() if name is None else _in(name, statement), wide=True)
    verdict = query.world.verified(name)
    listed = [(problem.kind, problem.where, problem.what) for problem in verdict.problems]
    basis = {**scope.basis, "ok": verdict.ok, "commits": verdict.commits, "mutations": verdict.mutations}
    return query.select(made.PROBLEMS, (), Tail(), scope, make=rows_of(listed), basis=basis)


def _in(name: str, statement: Verify) -> Tail:
    assert statement.session is not None, "a name was given"
    return Tail(scope=InSession(name=Value(value=name, span=statement.session.span), span=statement.session.span))


# ---- what can be asked for


def show(query: Query, statement: Show) -> Result:
    """The relations or the functions there are."""
    what = statement.what.lower()
    if what not in shows.SHOWN:
        raise QueryError(
            f"{statement.what} is a setting, and a store keeps none",
            code="no-settings",
            span=statement.span,
            expected=tuple(word.upper() for word in shows.SHOWN),
            hint="SHOW RELATIONS and SHOW FUNCTIONS can be asked of a store; settings are the shell's",
        )
    listed = shows.relations() if what == "relations" else shows.functions()
    relation = made.RELATIONS_SHOWN if what == "relations" else made.FUNCTIONS
    return _told(query, relation, listed)


def describe(query: Query, statement: Describe) -> Result:
    """The columns of a relation."""
    return _told(query, made.COLUMNS, shows.columns(statement.relation, statement.span))


def set_(query: Query, statement: Set) -> Result:
    """Refuses: a setting is kept by whoever asks."""
    raise QueryError(
        f"a store keeps no setting {statement.name!r}",
        code="no-settings",
        span=statement.span,
        hint="set it in the shell, or pass session=… to query",
    )


def _told(query: Query, relation: Catalogued, listed: list[Row]) -> Result:
    """Rows that are of no session and no moment."""
    found = query.asker.planned(("", relation.name), relation, (), Tail(), LANE, None)
    assert found.plain is not None, "nothing is asked of the rows"
    return query.result("table", {}, found, iter(listed))


def search(query: Query, statement: Search) -> Result:
    """Pages that hold words, the best first."""
    words = str(given(statement.query, query.params))
    with query.world.asking():
        scope = query.scope(statement.tail)
        scope.values["hits"] = json.dumps(best(scope, words))
        return query.select(SEARCH, statement.columns, statement.tail, scope, path="found")


ANSWERS: dict[type, Callable[[Query, Any], Result]] = {
    Relation: Query.relation,
    ContextAt: context,
    DiffContext: diff_context,
    DiffSession: diff_session,
    OfPage: of_page,
    Lineage: lineage,
    Fork: fork,
    Verify: verify,
    Watch: watch,
    Search: search,
    Show: show,
    Describe: describe,
    Set: set_,
}
MAKERS: dict[str, Callable[[Query, Scope, Tail], Make]] = {"MUTATIONS": mutations, "FAULTS": faults}
