"""Answers statements: finds whose rows are meant, has them planned, runs the plan, shows what comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from vmstore.vmql import functions, rows
from vmstore.vmql.bind import kept
from vmstore.vmql.catalog import RELATIONS
from vmstore.vmql.plan import Plan, after, cursor, limit, plan
from vmstore.vmql.problems import QueryError, near
from vmstore.vmql.relation import Relation
from vmstore.vmql.result import Column, Result, Watch
from vmstore.vmql.scope import Params, Scope, scope_of
from vmstore.vmql.syntax import Column as Asked
from vmstore.vmql.syntax import Relation as Of
from vmstore.vmql.syntax import Statement, Tail
from vmstore.vmql.world import World

STEPS = 20_000  # of SQLite's machine between two looks at whether a query was cancelled
PLANS_MAX = 256
Row = tuple[Any, ...]


class Query:
    """One statement being answered."""

    def __init__(self, asker: Asker, statement: Statement, session: str | None, params: Params, text: str) -> None:
        self.asker = asker
        self.world = asker.world
        self.statement = statement
        self.session = session
        self.params = params
        self.text = text
        self.watch = Watch()
        self.began = self.world.ticks()
        self.following: str | None = None

    # ---- over relations

    def relation(self, statement: Of) -> Result:
        """The rows of a relation."""
        name = statement.name.upper()
        relation = RELATIONS.get(name)
        if relation is None:
            meant = near(name, RELATIONS)
            raise QueryError(
                f"there is no relation {statement.name!r}",
                code="unknown-relation",
                span=statement.span,
                expected=tuple(RELATIONS),
                hint=f"did you mean {meant}?" if meant else "SHOW RELATIONS lists them",
            )
        with self.world.asking():
            scope = self.scope(statement.tail, wide=relation.wide)
            make = None if not relation.made else self.asker.makers[name](self, scope, statement.tail)
            return self.select(relation, statement.columns, statement.tail, scope, make=make)

    def scope(self, tail: Tail, *, wide: bool = False) -> Scope:
        """Whose rows are meant."""
        return scope_of(self.world, tail, self.params, self.session, wide=wide)

    def select(
        self,
        relation: Relation,
        columns: Sequence[Asked],
        tail: Tail,
        scope: Scope,
        *,
        make: Callable[[Plan], Callable[[], Iterable[Row]]] | None = None,
        kind: str = "table",
        path: str | None = None,
        basis: dict[str, Any] | None = None,
    ) -> Result:
        """The rows of a relation in a scope, as the columns and the tail want them."""
        key = (self.text, relation.name, scope.shape, path)
        found = self.asker.planned(key, relation, columns, tail, scope.shape, path)
        source = None if make is None else make(found)
        if source is not None and found.plain is not None:
            taken: Iterator[Row] = self._taken(source, found.plain)
        else:
            taken = self._run(found, scope, source)
        return self.result(kind, basis or scope.basis, found, self._shown(found, taken))

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
    def _taken(source: Callable[[], Iterable[Row]], places: tuple[int, ...]) -> Iterator[Row]:
        """Rows as they are made, the values that are wanted of each."""
        for row in source():
            yield tuple(row[place] for place in places)

    def _run(self, found: Plan, scope: Scope, source: Callable[[], Iterable[Row]] | None) -> Iterator[Row]:
        """The rows of a plan, as they are kept."""
        sql = found.sql(scope.lane_sql)
        values: dict[str, Any] = {place.name: kept(place, self.params, scope) for place in found.places}
        if found.limit is not None:
            values["limit"] = limit(found.limit, self.params)
        if found.after is not None:
            told = after(found.after, self.params, sql.count(":k") and _keys(sql))
            values.update((f"k{at}", value) for at, value in enumerate(told))
        for name, pattern in found.patterns:
            values[name] = self.asker.showing(scope, pattern, self.params)
        if source is not None:
            values["rows"] = self.asker.handed(source)
        for name in names_in(sql):
            if name not in values:
                values[name] = scope.need(name)
        return self.asker.rows(sql, values, self.watch, streamed=found.relation.made)

    def _shown(self, found: Plan, taken: Iterator[Row]) -> Iterator[Row]:
        """Rows as they are shown; of a limited answer the one beyond is held back."""
        shows = found.shows
        if found.keys:
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
                self.following = cursor(last) if last is not None else None
                return
            given, last = given + 1, row[width:]
            yield row[:width]


def _show(row: Row, shows: list[tuple[int, Callable[[Any], Any]]]) -> Row:
    changed = list(row)
    for at, show in shows:
        if changed[at] is not None:
            changed[at] = show(changed[at])
    return tuple(changed)


@lru_cache(512)
def names_in(sql: str) -> tuple[str, ...]:
    """The parameters that a statement of SQL takes by name."""
    return tuple(dict.fromkeys(re.findall(r":([a-z]\w*)", sql)))


def _keys(sql: str) -> int:
    return sum(1 for name in names_in(sql) if re.fullmatch(r"k\d+", name))


class Asker:
    """Answers the queries of one namespace; keeps the plans of texts that were asked before."""

    def __init__(self, world: World) -> None:
        from vmstore.vmql.statements import MAKERS

        self.world = world
        self.makers = MAKERS
        self._plans: dict[Any, Plan] = {}
        self._ready: Any = None

    def answer(self, statement: Statement, *, session: str | None, params: Params, text: str = "") -> Result:
        """Answers one statement."""
        from vmstore.vmql.statements import ANSWERS

        query = Query(self, statement, session, params, text)
        try:
            return ANSWERS[type(statement)](query, statement)
        except QueryError as error:
            if not error.text:
                error.text = text
            raise

    def planned(
        self, key: Any, relation: Relation, columns: Sequence[Asked], tail: Tail, shape: str, path: str | None
    ) -> Plan:
        """The plan of a statement, the one made before where its text and the shape of its scope are the same."""
        found = self._plans.get(key) if key[0] else None
        if found is None:
            found = plan(relation, columns, tail, shape, path)
            if key[0]:
                if len(self._plans) >= PLANS_MAX:
                    self._plans.clear()
                self._plans[key] = found
        return found

    def showing(self, scope: Scope, pattern: Any, params: Params) -> str:
        """The calls whose context holds the words of a pattern, as JSON."""
        from vmstore.vmql.search import calls_showing

        return calls_showing(scope, pattern, params)

    @staticmethod
    def handed(source: Callable[[], Iterable[Row]]) -> Any:
        """What makes rows, as SQLite takes it."""
        import apsw

        return apsw.pyobject(source)

    def rows(self, sql: str, values: dict[str, Any], watch: Watch, *, streamed: bool) -> Iterator[Row]:
        """The rows of a statement of SQL."""
        db = self.world.views
        if self._ready is not db:
            functions.register(db, self.world)
            rows.register(db)
            self._ready = db
        db.set_progress_handler(lambda: watch.stopped, STEPS)
        try:
            found: list[Any] = db.execute(sql, values).fetchall()
            return iter(found)
        finally:
            db.set_progress_handler(None)
