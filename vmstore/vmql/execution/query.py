"""A statement being answered: whose rows are meant, as what they are shown, where the answer ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import apsw
from msgspec.structs import replace

from vmstore.core.text.explanation import SearchExplanation
from vmstore.errors import VmstoreError
from vmstore.views.branch import Branch
from vmstore.vmql.execution.executor import STEPS, Runner, Wrong
from vmstore.vmql.execution.page_column import PageColumn, forks_of
from vmstore.vmql.execution.result import Cancellation, Column, Result
from vmstore.vmql.functions import UNTOLD
from vmstore.vmql.planner import limits
from vmstore.vmql.planner.plan import Plan, after, cursor, limit
from vmstore.vmql.planner.scope import Params, Scope, scope_of
from vmstore.vmql.planner.values import Beside, ValueSlot, held, kept
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.relations.relation import ACROSS, Relation
from vmstore.vmql.syntax import nodes, printer
from vmstore.vmql.syntax.errors import fault
from vmstore.vmql.syntax.nodes import Explain, MomentNode, SelectItem, Statement, Subquery, Tail, Value
from vmstore.vmql.text_cache import cached

if TYPE_CHECKING:
    from vmstore.views.projectors.redactions import UntoldFiles

Row = tuple[Any, ...]
Make = Callable[[Plan], Callable[[], Iterable[Row]]]
"""From a plan, which says the values that are wanted, to what makes the rows."""
AnyNode = TypeVar("AnyNode", bound=nodes.Node)
AnyItem = TypeVar("AnyItem")


def rows_of(listed: Iterable[Row]) -> Make:
    """Rows that are there already."""
    return lambda _: lambda: listed


class PlannedStatement(NamedTuple):
    """What a query was about to run."""

    plan: Plan
    scope: Scope
    tail: Tail


class Query:
    """One statement being answered."""

    def __init__(self, runner: Runner, statement: Statement, session: str | None, params: Params, text: str) -> None:
        self.runner = runner
        self.world = runner.world
        self.statement = statement
        self.session = session
        self.params = params
        self.text = text
        self.key = text  # what its plans are kept by
        self.watch = Cancellation()
        self.began = self.world.ticks()
        self.following: str | None = None
        self.dry = False
        self.notes: list[str] = []  # what is to be known of the answer
        self.searched: SearchExplanation | None = None  # what a search looked for, where that is asked
        self.untold: UntoldFiles | None = None  # what an answer for a prompt leaves out
        self.answer: Callable[[Query, Any], Result] | None = None  # what answers a statement within this one
        self.noted: list[PlannedStatement] | None = None  # where a statement is only explained: what would be run

    @contextmanager
    def asking(self) -> Iterator[int]:
        """Holds one moment, its ordinal; every read of the views meanwhile stops with it."""
        with self.world.asking() as end:
            views, key = self.world.views, object()
            views.set_progress_handler(lambda: self.watch.stopped, STEPS, id=key)
            try:
                yield end
            except apsw.InterruptError as error:
                raise self.watch.error() from error
            finally:
                views.set_progress_handler(None, id=key)

    def looked(self, items: Iterable[AnyItem], every: int = 1) -> Iterator[AnyItem]:
        """Items of some work, with a look before each, or so many, at whether the query is to stop."""
        for number, item in enumerate(items):
            if number % every == 0:
                self.watch.check()
            yield item

    def scope(self, tail: Tail, *, wide: bool = False) -> Scope:
        """Whose rows are meant."""
        return scope_of(self.world, tail, self.params, self.session, wide=wide)

    def select(
        self,
        relation: Relation,
        columns: Sequence[SelectItem],
        tail: Tail,
        scope: Scope,
        *,
        make: Callable[[Plan], Callable[[], Iterable[Row]]] | None = None,
        kind: str = "table",
        path: str | None = None,
        basis: dict[str, Any] | None = None,
        ready: bool = False,
    ) -> Result:
        """The rows of a relation in a scope, as the columns and the tail want them.

        `make` gives rows as they are kept, or, where it is `ready` and they are only handed on, as
        they are shown.
        """
        key = (self.key, relation.name, scope.shape, path)
        found = self.runner.planned(key, relation, columns, tail, scope.shape, path)
        source = None if make is None else make(found)
        if self.noted is not None:
            self.noted.append(PlannedStatement(found, scope, tail))
            if self.dry:
                return self.result(kind, basis or scope.basis, found, iter(()))
        if source is None or found.plain is None:
            wrong = self.wrong(columns, tail, viewed=source is None)
            taken = self.shown(found, self._run(found, scope, source, wrong))
        else:
            taken = self._taken(source(), found.plain)
            taken = taken if ready else self.shown(found, taken)
        return self.result(kind, basis or scope.basis, found, taken)

    def kept(self, relation: Relation, columns: tuple[SelectItem, ...], scope: Scope) -> Iterator[Row]:
        """All rows of a relation in a scope, as they are kept: part of the work of an answer."""
        key = ("kept", relation.name, columns, scope.shape)
        plan = self.runner.planned(key, relation, columns, Tail(), scope.shape, None, shown=False)
        return self._run(plan, scope, None, self.wrong(columns, Tail(), viewed=True))

    def raw(
        self, relation: Relation, columns: tuple[SelectItem, ...], tail: Tail, scope: Scope, make: Make | None
    ) -> Iterator[Row]:
        """The rows of a relation that a tail chooses, as they are kept: part of the work of an answer."""
        key = (self.text and "raw", self.text, relation.name, columns, tail, scope.shape)
        found = self.runner.planned(key, relation, columns, tail, scope.shape, None, shown=False)
        source = None if make is None else make(found._replace(plain=None))
        return self._run(found, scope, source, self.wrong(columns, tail, viewed=source is None))

    def passed(
        self, relation: Relation, columns: Sequence[SelectItem], tail: Tail, scope: Scope, path: str
    ) -> Iterator[Row]:
        """The rows that a statement looks at before it answers: planned beside it, never part of the answer."""
        key = (self.key, relation.name, scope.shape, "passed")
        plan = self.runner.planned(key, relation, columns, tail, scope.shape, path)
        return self.shown(plan, self._run(plan, scope, None, self.wrong(columns, tail, viewed=True)))

    def result(self, kind: str, basis: dict[str, Any], found: Plan, taken: Iterator[Row]) -> Result:
        """An answer of a plan."""
        return Result(
            kind,
            basis,
            [Column(column.name, column.form.type) for column in found.columns],
            taken,
            watch=self.watch,
            ticks=self.world.ticks,
            began=self.began,
            statement=self.statement,
            following=lambda: self.following,
        )

    @staticmethod
    def _taken(rows: Iterable[Row], places: tuple[int, ...]) -> Iterator[Row]:
        """Rows as they are made, the values that are wanted of each."""
        if len(places) > 1:
            return map(itemgetter(*places), rows)
        return ((row[places[0]],) for row in rows)

    def wrong(self, columns: Sequence[SelectItem], tail: Tail, *, viewed: bool) -> Wrong:
        """Says what is too large, or was built wrongly; None where the views may be damaged."""

        def wrong(error: apsw.Error) -> VmstoreError | None:
            refused = limits.refusal(error, columns, tail, self.text)
            built = isinstance(error, apsw.SQLError) and not (viewed and self.world.damaged())
            return refused or (limits.misbuilt(error, self.text) if built else None)

        return wrong

    def _run(
        self, found: Plan, scope: Scope, source: Callable[[], Iterable[Row]] | None, wrong: Wrong
    ) -> Iterator[Row]:
        """The rows of a plan, as they are kept."""
        sql = found.sql(scope.lane_sql)
        values = self.values(found, scope, sql)
        if source is not None:
            from vmstore.vmql.execution import duckdb_executor

            columns = self.world.columns() if duckdb_executor.suits(found, scope) else None
            if columns is not None:
                own = [duckdb_executor.LogTables("", {}, scope)]
                return iter(duckdb_executor.answer(columns, found, own, values, self.watch))
            values["rows"] = apsw.pyobject(source)
            return self.runner.made(sql, values, self.watch, wrong)
        return iter(self.runner.viewed(sql, values, self.watch, wrong, self._untold_cells))

    def values(self, found: Plan, scope: Scope, sql: str) -> dict[str, Any]:
        """What a plan's SQL takes by name."""
        values: dict[str, Any] = {}
        for place in found.places:
            if isinstance(place.node, Beside):
                values[place.name] = apsw.pyobject(self._beside(place.node, scope))
            elif isinstance(place.node, Subquery):
                values[place.name] = held(place, self._answered(place, place.node), scope)
            else:
                values[place.name] = kept(place, self.params, scope)
        if found.limit is not None:
            values["limit"] = limit(found.limit, self.params)
        if found.after is not None:
            cursor_values = after(found.after, self.params, _keys(sql))
            values.update((f"k{at}", value) for at, value in enumerate(cursor_values))
        if found.patterns:
            from vmstore.vmql.execution.search import calls_showing

            self.runner.prepared()
            for name, pattern in found.patterns:
                values[name] = calls_showing(scope, pattern, self.params, self.watch.check, self._untold_cells)
        for name in names_in(sql):
            if name not in values and name != "rows":
                values[name] = scope.need(name)
        return values

    def beside(self, statement: Statement) -> Query:
        """A query of another statement that is a part of answering this one, and is stopped with it."""
        query = Query(self.runner, statement, self.session, self.params, self.text)
        query.watch, query.answer, query.key = self.watch, self.answer, printer.show(statement)
        query.untold = self.untold
        return query

    @property
    def _untold_cells(self) -> frozenset[int]:
        return frozenset() if self.untold is None else self.untold.cells

    def tells(self, session: int, page: int) -> bool:
        """Whether an answer may tell what a page says, which a session wrote."""
        return self.untold is None or (session, page) not in self.untold.pages

    def text_for_answer(self, lane: Branch, page: int, text: str | None) -> str | None:
        """The text of a page of a lane, or what stands for one that no prompt may hold."""
        return text if text is None or self.tells(lane.owner(page), page) else UNTOLD.decode()

    def dated(self, statement: Statement) -> Statement:
        """A statement with the moments that statements within it say; each sees its session as it stands now."""
        self.statement = found = self._dated(statement, getattr(statement, "tail", Tail()).scope)
        return found

    def _dated(self, node: AnyNode, scope: nodes.Scope | None) -> AnyNode:
        said: dict[str, Any] = {}
        for name in node.__struct_fields__:
            part = getattr(node, name)
            if isinstance(part, MomentNode) and isinstance(part.value, Subquery):
                value = self._values(part.value, scope, None, many=False)
                if value is None:
                    message = f"the statement gives no {part.unit}"
                    hint = "ask it alone to see what it gives"
                    raise fault(message, "no-such-moment", part.span, hint=hint)
                said[name] = replace(part, value=Value(value=value, span=part.value.span))
            elif isinstance(part, Tail):
                said[name] = self._dated(part, scope)
        return replace(node, **said) if said else node

    def _beside(self, wanted: Beside, scope: Scope) -> PageColumn:
        """A column of all pages, or messages, at the moment that is asked about, as it is kept."""
        relation, tail = RELATIONS[wanted.relation], scope.asked[0]
        bare = Tail(scope=tail.scope, as_of=tail.as_of)
        around = self.scope(bare)
        names = ("session", relation.order[0].partition(".")[2], wanted.column)
        many = around.shape == ACROSS
        items = nodes.columns_named(*names)
        rows = self.kept(relation, items, around)
        found = {(session if many else None, number): value for session, number, value in rows}
        return PageColumn(found, forks_of(self.world) if many else {})

    def _answered(self, place: ValueSlot, node: Subquery) -> Any:
        """The values of a statement within this one, at the same moment unless it says another."""
        around: Any = self.statement.statement if isinstance(self.statement, Explain) else self.statement
        outer = getattr(around, "tail", Tail())
        return self._values(node, outer.scope, outer.as_of or getattr(around, "moment", None), many=place.many)

    def _values(self, node: Subquery, scope: nodes.Scope | None, at: MomentNode | None, *, many: bool) -> Any:
        """The values of a statement within this one, by its scope and moment where it names none, without nulls."""
        asked, tail = node.statement, node.statement.tail
        if tail.scope is None:
            tail = replace(tail, scope=scope)
        dated = getattr(asked, "moment", None) or tail.as_of or tail.since or tail.until
        if dated is None:
            tail = replace(tail, as_of=at)
        query = self.beside(replace(asked, tail=tail))
        assert self.answer is not None, "the engine hands in what answers"
        found = self.answer(query, query.statement)
        if len(found.columns) != 1:
            message = f"a statement in parentheses has one column, and this has {len(found.columns)}"
            raise fault(message, "not-single", node.span, hint="write the column after its relation")
        values = [row[0] for row in found if row[0] is not None]
        if many:
            return values
        if len(values) > 1:
            message = f"a value is wanted, and the statement gives {len(values)}"
            hint = "sum it up, as in max(x), write LIMIT 1, or choose among them with IN"
            raise fault(message, "not-single", node.span, hint=hint)
        return values[0] if values else None

    def shown(self, found: Plan, taken: Iterator[Row]) -> Iterator[Row]:
        """Rows as they are shown; of a limited answer the one beyond is held back."""
        shows = found.shows
        if found.limit is not None:
            taken = self._limited(found, taken)
        if not shows:
            return taken
        return (_show(row, shows) for row in taken)

    def _limited(self, found: Plan, taken: Iterator[Row]) -> Iterator[Row]:
        assert found.limit is not None, "keys are asked for with a limit"
        most, given, last = limit(found.limit, self.params), 0, None
        width = len(found.columns)
        for row in taken:
            if given == most:
                self.following = cursor(last) if last else None
                return
            given, last = given + 1, row[width:]
            yield row[:width]


def _show(row: Row, shows: list[tuple[int, Callable[[Any], Any]]]) -> Row:
    changed = list(row)
    for at, show in shows:
        if changed[at] is not None:
            changed[at] = show(changed[at])
    return tuple(changed)


@cached(512)
def names_in(sql: str) -> tuple[str, ...]:
    """The parameters that a statement of SQL takes by name."""
    return tuple(dict.fromkeys(re.findall(r":([a-z]\w*)", sql)))


def _keys(sql: str) -> int:
    return sum(1 for name in names_in(sql) if re.fullmatch(r"k\d+", name))
