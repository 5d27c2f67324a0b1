"""Runs plans: keeps those of texts that were asked before, and hands their SQL to the views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakSet

import apsw

from vmstore.errors import VmstoreError
from vmstore.vmql import functions
from vmstore.vmql.execution import page_column, virtual_table
from vmstore.vmql.execution.result import Cancellation
from vmstore.vmql.host import Host
from vmstore.vmql.planner.plan import Plan, plan
from vmstore.vmql.relations.relation import Relation
from vmstore.vmql.scalars import learn
from vmstore.vmql.syntax.nodes import SelectItem, Tail

STEPS = 20_000  # of SQLite's machine between two looks at whether a query was cancelled
PLANS_MAX = 256
Row = tuple[Any, ...]
Wrong = Callable[[apsw.Error], VmstoreError | None]


def _as_it_is(error: apsw.Error) -> None:
    return None


@contextmanager
def _watched(db: apsw.Connection, watch: Cancellation, wrong: Wrong) -> Iterator[None]:
    """Lets a statement run until it is to stop, and says what was wrong with it."""
    db.set_progress_handler(lambda: watch.stopped, STEPS)
    try:
        yield
    except apsw.Error as error:
        raise (watch.error() if isinstance(error, apsw.InterruptError) else wrong(error) or error) from error
    finally:
        db.set_progress_handler(None)


class PreparedConnection(NamedTuple):
    """A connection that knows the functions of VMQL, and what these read for a statement."""

    db: apsw.Connection
    contents: functions.CellReader


class Runner:
    """Plans and runs the queries of one namespace."""

    def __init__(self, world: Host) -> None:
        self.world = world
        self._plans: dict[Any, Plan] = {}
        self._ready: PreparedConnection | None = None
        self._spare: list[PreparedConnection] = []  # for rows that are made
        self._learned: WeakSet[apsw.Connection] = WeakSet()  # those that know regular expressions

    def planned(
        self,
        key: Any,
        relation: Relation,
        columns: Sequence[SelectItem],
        tail: Tail,
        shape: str,
        path: str | None,
        *,
        shown: bool = True,
    ) -> Plan:
        """The plan of a statement, the one made before where its text and the shape of its scope are the same."""
        found = self._plans.get(key) if key[0] else None
        if found is None:
            found = plan(relation, columns, tail, shape, path, shown=shown)
            if key[0]:
                if len(self._plans) >= PLANS_MAX:
                    self._plans.clear()
                self._plans[key] = found
        return found

    def forget(self) -> None:
        """Forgets plans, and what was read for the last answers: it may have been erased."""
        self._plans.clear()
        for prepared in (self._ready, *self._spare):
            if prepared is not None:
                prepared.contents.forget()

    def prepared(self, untold: frozenset[int] = frozenset()) -> apsw.Connection:
        """The views, which know the functions of VMQL and nothing that was read before, nor cells that are untold."""
        db = self.world.views
        if self._ready is None or self._ready.db is not db:
            self._ready = self._knowing(db)
        self._ready.contents.forget()
        self._ready.contents.untold = untold
        return db

    def viewed(
        self,
        sql: str,
        values: dict[str, Any],
        watch: Cancellation,
        wrong: Wrong = _as_it_is,
        untold: frozenset[int] = frozenset(),
    ) -> list[Row]:
        """The rows of a statement over the views, all of them: the moment is held only while it runs.

        `wrong` gives what to raise for an error of SQLite, None for that itself; cells that are `untold` are not read.
        """
        db = self._able(self.prepared(untold), sql)
        with _watched(db, watch, wrong):
            return watch.kept(db.execute(sql, values))

    def made(self, sql: str, values: dict[str, Any], watch: Cancellation, wrong: Wrong = _as_it_is) -> Iterator[Row]:
        """The rows of a statement over rows that are made, as they are taken.

        It reads no view, so it has a database of its own, and holds nobody up however slowly it is
        taken.
        """
        prepared = self._spare.pop() if self._spare else self._fresh()
        prepared.contents.forget()
        try:
            with _watched(prepared.db, watch, wrong):
                yield from self._able(prepared.db, sql).execute(sql, values)
        finally:
            self._spare.append(prepared)

    @contextmanager
    def scratch(self, watch: Cancellation, wrong: Wrong = _as_it_is) -> Iterator[apsw.Connection]:
        """A database of its own, in memory, that knows the functions of VMQL and ends with the `with`."""
        db = self._fresh().db
        learn(db)
        try:
            with _watched(db, watch, wrong):
                yield db
        finally:
            db.close()

    def _fresh(self) -> PreparedConnection:
        db = apsw.Connection(":memory:")
        virtual_table.register(db)
        return self._knowing(db)

    def _able(self, db: apsw.Connection, sql: str) -> apsw.Connection:
        """A connection that knows what a statement calls."""
        if "regexp(" in sql and db not in self._learned:
            learn(db)
            self._learned.add(db)
        return db

    def _knowing(self, db: apsw.Connection) -> PreparedConnection:
        page_column.register(db)
        return PreparedConnection(db, functions.register(db, self.world))
