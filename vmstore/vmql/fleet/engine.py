"""Answers VMQL over many namespaces, each held at one moment, as one answer with one set of limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

from msgspec.structs import replace

from vmstore.core.asof import AsOf
from vmstore.core.system import after_fork
from vmstore.core.times import iso
from vmstore.vmql.execution import duckdb_executor
from vmstore.vmql.execution.engine import NONE, Limits
from vmstore.vmql.execution.executor import Wrong
from vmstore.vmql.execution.query import Query, Row, rows_of
from vmstore.vmql.execution.query_limits import LimitedQuery, QueryLimits
from vmstore.vmql.execution.result import Cancellation, Result
from vmstore.vmql.execution.statements import maker_of, plain
from vmstore.vmql.fleet.member import FleetMember
from vmstore.vmql.fleet.parts import PartedQuery, parted
from vmstore.vmql.fleet.relation import PLACES, MergedQuery, merged, of_place, rewritten
from vmstore.vmql.fleet.sql import answer as answer_sql
from vmstore.vmql.parse import parse
from vmstore.vmql.planner.plan import plan
from vmstore.vmql.planner.scope import Params, Scope
from vmstore.vmql.relations import describe as shows
from vmstore.vmql.relations import python_rows
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.relations.relation import ACROSS, Relation
from vmstore.vmql.syntax.errors import QueryError, fault
from vmstore.vmql.syntax.nodes import (
    Describe,
    Explain,
    In,
    InSession,
    MomentNode,
    Param,
    RelationQuery,
    Set,
    Show,
    SourceSpan,
    Statement,
    Subquery,
    Tail,
    Value,
)
from vmstore.vmql.syntax.printer import show

ELSEWHERE = frozenset({"unknown-user", "unknown-session"})  # what one namespace lacks, another may have


class HeldMember(NamedTuple):
    """A namespace held at one moment for one statement; without a scope where it has nothing of what is asked."""

    member: FleetMember
    query: Query
    scope: Scope | None


class FleetEngine(after_fork.Owner):
    """Answers the queries of many namespaces; any thread may ask."""

    def __init__(self, members: Sequence[FleetMember], left_out: Sequence[Mapping[str, str]] = ()) -> None:
        self._members = members
        self._left_out = [dict(each) for each in left_out]
        self._first = members[0].engine.runner
        self.places = tuple(members[0].place)
        self._asked: WeakSet[Cancellation] = WeakSet()
        self._adding = threading.Lock()
        self._tables: tuple[Any, Any] | None = None  # of DuckDB, and the ends of the logs that they hold
        self._entry = threading.RLock()
        after_fork.owns(self)

    def close(self) -> None:
        """Drops what is in memory."""
        if self._tables is not None:
            self._tables[1].close()
        self._tables = None

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock under which DuckDB is used."""
        return self._entry

    def forking(self) -> None:
        """Closes DuckDB's: a copy of it lacks its threads, and ends its process when it is freed."""
        self.close()

    def forked(self, quiet: bool) -> None:
        """Opens the tables again in a forked process."""
        if not quiet:
            after_fork.keep((self._tables,))
        self._tables, self._entry = None, threading.RLock()

    def interrupt(self, thread: int | None = None) -> None:
        """Stops every query that is being answered, or those that one thread asked, from any thread."""
        with self._adding:
            for watch in self._asked:
                watch.stopped = watch.stopped or thread in (None, watch.asker)

    def watched(self, text: str, limits: Limits) -> tuple[QueryLimits, LimitedQuery]:
        """The limits of a statement over the whole, and what stops it."""
        within = QueryLimits.of(*limits)
        watch = LimitedQuery(within, self._first.world.ticks, text)
        with self._adding:
            self._asked.add(watch)
        return within, watch

    def ask(self, asked: str | Statement, *, params: Params, limits: Limits = NONE) -> Result:
        """Answers a statement, a text or one that was read already, within limits that hold for all together."""
        text = asked if isinstance(asked, str) else ""
        within, watch = self.watched(text, limits)
        try:
            statement = parse(asked) if isinstance(asked, str) else asked
            found = _FleetQuery(self, watch, dict(params), text).answer(statement)
        except RecursionError:
            message, hint = "operations and parentheses stand too deep in one another", "write it flatter, or in parts"
            raise QueryError(message, code="too-deep", text=text, span=SourceSpan(0, len(text)), hint=hint) from None
        except QueryError as error:
            error.text = error.text or text
            raise
        return found.within(within.rows, partial(within.more, text))

    def sql(self, text: str, *, at: AsOf, params: Mapping[str, Any], limits: Limits) -> Result:
        """Answers a statement of SQL over the relations of all namespaces at a moment."""
        within, watch = self.watched(text, limits)
        return answer_sql(self._members, self.places, self.basis, text, at, params, within, watch)

    # ---- of one statement

    def held(self, stack: ExitStack, query: Callable[[FleetMember], Query], tail: Tail) -> list[HeldMember]:
        """Every namespace at its moment, until the stack ends; what only some of them have is asked of those."""
        found: list[HeldMember] = []
        missing: list[QueryError] = []
        for member in self._members:
            asked = query(member)
            with member.naming():
                stack.enter_context(asked.asking())
            try:
                found.append(HeldMember(member, asked, asked.scope(of_place(tail, member.place), wide=True)))
            except QueryError as error:
                if error.code not in ELSEWHERE:
                    raise
                missing.append(error)
                found.append(HeldMember(member, asked, None))
        if len(missing) == len(found):
            raise missing[0]
        return found

    def basis(self, each: Sequence[tuple[FleetMember, Mapping[str, Any]]]) -> dict[str, Any]:
        """The moment an answer holds for, of every namespace, and those that were left out."""
        basis: dict[str, Any] = {"namespaces": [{**member.place, **own} for member, own in each]}
        return basis | ({"left_out": self._left_out} if self._left_out else {})

    @contextmanager
    def tables(self, held: Sequence[HeldMember]) -> Iterator[Any]:
        """A DuckDB connection with the column segments of all, for one thread; None where one has none to read."""
        ends = tuple(one.scope.basis.get("ordinal") if one.scope is not None else None for one in held)
        with self._entry:
            if self._tables is None or self._tables[0] != ends:
                self.close()
                db: Any = None
                for nth, one in enumerate(held):
                    if one.scope is not None:
                        db = one.query.world.columns(db, f"_{nth}")
                        if db is None:
                            yield None
                            return
                self._tables = ends, db
            yield self._tables[1]


class _FleetQuery:
    """One statement over all namespaces being answered."""

    def __init__(self, fleet: FleetEngine, watch: LimitedQuery, params: Params, text: str) -> None:
        self._fleet = fleet
        self._watch = watch
        self._params = params
        self._text = text
        self._explain: Explain | None = None  # where a statement is only explained, or answered to be explained
        self._steps: list[Row] = []

    def answer(self, statement: Statement) -> Result:
        """The rows of a statement."""
        if isinstance(statement, RelationQuery):
            return self._relation(statement)
        if isinstance(statement, Explain) and isinstance(statement.statement, RelationQuery):
            return self._explained(statement, statement.statement)
        if isinstance(statement, Show | Set):
            return self._fleet._members[0].engine.answer(statement, session=None, params=self._params, text=self._text)
        if isinstance(statement, Describe):
            places = [(name, PLACES[name].form.type, PLACES[name].meaning, None) for name in self._fleet.places]
            listed = [*places, *shows.columns(statement.relation, statement.span)]
            return plain(self._query(statement, "")(self._fleet._members[0]), python_rows.COLUMNS, listed)
        word = show(statement).split()[0]
        message = f"{word} is asked of one namespace, and here are {len(self._fleet._members)}"
        hint = "open the one that is meant; over many, relations can be asked: PAGES, CALLS, MUTATIONS, …"
        raise fault(message, "one-namespace", statement.span, hint=hint)

    def _query(self, statement: Statement, key: str) -> Callable[[FleetMember], Query]:
        def query(member: FleetMember) -> Query:
            found = Query(member.engine.runner, statement, None, self._params, self._text)
            found.watch, found.key = self._watch, key
            return found

        return query

    def _relation(self, statement: RelationQuery) -> Result:
        """The rows of a relation of all namespaces, as the columns and the tail want them."""
        relation = shows.named(statement.name, RELATIONS, statement.span)
        _check(statement)
        statement = self._settled(statement)
        asked = merged(relation, self._fleet.places, statement)
        planned = plan(asked.relation, asked.columns, asked.tail, ACROSS)._replace(plain=None)
        with ExitStack() as stack:
            held = self._fleet.held(stack, self._query(statement, ""), asked.own)
            outer, first = next((one.query, one.scope) for one in held if one.scope is not None)
            assert first is not None, "one namespace has what is asked"
            basis = self._fleet.basis([(one.member, self._own_basis(relation, statement, one)) for one in held])
            rows = self._summed(statement, asked, held)
            if rows is None:
                parts = parted(relation, statement, asked, planned)
                values = outer.values(parts.plan, first, parts.plan.body)
                wrong = outer.wrong(asked.columns, asked.tail, viewed=False)
                rows = self._merged(relation, parts, held, wrong, values)
            self._watch.check()
        outer.text = self._text
        return outer.result("table", basis, planned, outer.shown(planned, iter(rows)))

    @staticmethod
    def _own_basis(relation: Relation, statement: RelationQuery, one: HeldMember) -> dict[str, Any]:
        if one.scope is None:
            return {"sessions": 0, "ordinal": one.query.world.views.execute("SELECT min(ordinal) FROM positions").get}
        if relation.now and not statement.tail.ever:
            return {**one.scope.basis, "valid_at": iso(one.scope.need("valid_at"))}
        return dict(one.scope.basis)

    def _merged(
        self, relation: Relation, parts: PartedQuery, held: Sequence[HeldMember], wrong: Wrong, values: dict[str, Any]
    ) -> list[Row]:
        """The answer from what each namespace gives, which is put into one table."""
        if self._dry:
            for one in held:
                self._step(one, self._asked_of(relation, parts, one))
            return []
        runner, names = self._fleet._first, ", ".join(f'"{name}"' for name in (*self._fleet.places, *parts.names))
        marks = ", ".join("?" * (len(self._fleet.places) + len(parts.names)))
        with runner.scratch(self._watch, wrong) as db:
            db.execute(f"CREATE TABLE fleet({names}, row INTEGER PRIMARY KEY)")
            for one in held:
                if one.scope is not None:
                    began, before = runner.world.ticks(), db.total_changes()
                    place, rows = tuple(one.member.place.values()), self._rows(relation, parts, one)
                    db.executemany(f"INSERT INTO fleet({names}) VALUES ({marks})", ((*place, *row) for row in rows))
                    took = db.total_changes() - before, (runner.world.ticks() - began) / 1000
                    self._step(one, self._asked_of(relation, parts, one), *took)
            body = parts.plan.body.replace(parts.plan.path.start[ACROSS], "FROM fleet g")
            return self._watch.kept(db.execute(body, values))

    def _rows(self, relation: Relation, parts: PartedQuery, one: HeldMember) -> Iterator[Row]:
        """What one namespace gives, as it is kept."""
        assert one.scope is not None, "it has some"
        own = of_place(parts.own, one.member.place)
        make = maker_of(one.query, relation, one.scope, own)
        for row in one.query.raw(relation, parts.columns, own, one.scope, make):
            self._watch.check()
            yield parts.given(row)

    def _summed(self, statement: RelationQuery, asked: MergedQuery, held: Sequence[HeldMember]) -> list[Row] | None:
        """The answer by DuckDB over the column segments of all, where they hold what is summed; else None."""
        parts = [(one, one.scope) for one in held if one.scope is not None]
        if statement.name.upper() != "MUTATIONS":
            return None
        whole = replace(asked.tail, where=statement.tail.where)
        planned = plan(asked.relation, asked.columns, whole, ACROSS)
        if not duckdb_executor.sums(planned, self._fleet.places):
            return None
        if sum(duckdb_executor.mutations_in(scope) for _, scope in parts) < duckdb_executor.MANY:
            return None
        with self._fleet.tables(held) as tables:
            if tables is None:
                return None
            self._steps.append((2, "columns", "all namespaces at once, by DuckDB over their column segments", *_NONE))
            if self._dry:
                return []
            values = parts[0][0].query.values(planned, parts[0][1], planned.body)
            sources = [
                duckdb_executor.LogTables(f"_{nth}", one.member.place, one.scope)
                for nth, one in enumerate(held)
                if one.scope is not None
            ]
            return duckdb_executor.answer(tables, planned, sources, values, self._watch)

    # ---- statements within, and about, a statement

    def _settled(self, statement: RelationQuery) -> RelationQuery:
        """A statement whose statements within were answered, over all namespaces, and are values now."""
        around = statement.tail.as_of

        def answered(node: Any) -> Any:
            if isinstance(node, In) and len(node.items) == 1 and isinstance(node.items[0], Subquery):
                values, name = self._values(node.items[0], around), f"within {len(self._params)}"
                self._params[name] = values
                operand = rewritten(node.operand, answered)
                return replace(node, operand=operand, items=(Param(name=name, span=node.items[0].span),))
            if isinstance(node, Subquery):
                values = self._values(node, around)
                if len(values) > 1:
                    message = f"a value is wanted, and the statement gives {len(values)}"
                    hint = "sum it up, as in max(x), write LIMIT 1, or choose among them with IN"
                    raise fault(message, "not-single", node.span, hint=hint)
                return Value(value=values[0] if values else None, span=node.span)
            return node

        found: RelationQuery = rewritten(statement, answered)
        return found

    def _values(self, node: Subquery, around: MomentNode | None) -> list[Any]:
        """The values of a statement within, at the moment of the one around it unless it says another."""
        asked, tail = node.statement, node.statement.tail
        if tail.as_of is None and tail.since is None and tail.until is None:
            asked = replace(asked, tail=replace(tail, as_of=around))
        found = _FleetQuery(self._fleet, self._watch, self._params, self._text).answer(asked)
        if len(found.columns) != 1:
            message = f"a statement in parentheses has one column, and this has {len(found.columns)}"
            raise fault(message, "not-single", node.span, hint="write the column after its relation")
        return [row[0] for row in found if row[0] is not None]

    def _explained(self, statement: Explain, inner: RelationQuery) -> Result:
        """How a statement is answered: what each namespace is asked, and what of their rows together."""
        self._explain, ticks = statement, self._fleet._first.world.ticks
        began = ticks()
        result = self._relation(inner)
        count = sum(1 for _ in result)
        took: tuple[Any, Any] = (count, (ticks() - began) / 1000) if statement.analyze else (None, None)
        tail = inner.tail
        of_all = show(replace(inner, tail=Tail(by=tail.by, having=tail.having, order=tail.order, limit=tail.limit)))
        rows = [(0, "answer", show(inner), None, *took), (1, "of all rows", of_all, *_NONE), *self._steps]
        member = self._fleet._members[0]
        query = self._query(statement, "")(member)
        with query.asking():
            scope = query.scope(Tail(), wide=True)
            return query.select(
                python_rows.PLAN, (), Tail(), scope, make=rows_of(rows), kind="explain", basis=result.basis
            )

    @property
    def _dry(self) -> bool:
        """Whether a statement is only explained."""
        return self._explain is not None and not self._explain.analyze

    def _step(self, one: HeldMember, what: str, count: int | None = None, ms: float | None = None) -> None:
        if self._explain is not None:
            self._steps.append((2, one.member.name, what, None, count, ms))

    @staticmethod
    def _asked_of(relation: Relation, parts: PartedQuery, one: HeldMember) -> str:
        """What one namespace is asked, in words."""
        if one.scope is None:
            return "nothing: it has no session of that name, or of that user"
        columns = tuple(replace(column, name=None) for column in parts.columns)
        return show(RelationQuery(name=relation.name, columns=columns, tail=of_place(parts.own, one.member.place)))


_NONE = (None, None, None)


def _check(statement: RelationQuery) -> None:
    """Refuses what names one session: a name may be in several namespaces, and is another session in each."""
    tail = statement.tail
    if isinstance(tail.scope, InSession) and "%" not in str(getattr(tail.scope.name, "value", "")):
        hint = "write WHERE session = 'name' AND namespace = 'name'"
        raise fault("a session is of one namespace", "one-namespace", tail.scope.span, hint=hint)
    if tail.per is not None:
        raise fault(f"PER {tail.per.upper()} is of one session", "one-namespace", statement.span, hint="write BY")
