"""Runs plans: keeps those of texts that were asked before, and hands their SQL to the views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from vmstore.vmql import functions, rows
from vmstore.vmql.plan import Plan, plan
from vmstore.vmql.relation import Relation
from vmstore.vmql.result import Watch, cancelled
from vmstore.vmql.syntax import Column as Asked
from vmstore.vmql.syntax import Tail
from vmstore.vmql.world import World

STEPS = 20_000  # of SQLite's machine between two looks at whether a query was cancelled
PLANS_MAX = 256
Row = tuple[Any, ...]


class Runner:
    """Plans and runs the queries of one namespace."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._plans: dict[Any, Plan] = {}
        self._ready: apsw.Connection | None = None
        self._spare: list[apsw.Connection] = []  # for rows that are made

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

    def prepared(self) -> apsw.Connection:
        """The views, which know the functions of VMQL."""
        db = self.world.views
        if self._ready is not db:
            functions.register(db, self.world)
            self._ready = db
        return db

    def viewed(self, sql: str, values: dict[str, Any], watch: Watch) -> list[Row]:
        """The rows of a statement over the views, all of them: the moment is held only while it runs."""
        db = self.prepared()
        db.set_progress_handler(lambda: watch.stopped, STEPS)
        try:
            found: list[Any] = db.execute(sql, values).fetchall()
            return found
        except apsw.InterruptError as error:
            raise cancelled() from error
        finally:
            db.set_progress_handler(None)

    def made(self, sql: str, values: dict[str, Any], watch: Watch) -> Iterator[Row]:
        """The rows of a statement over rows that are made, as they are taken.

        It reads no view, so it has a database of its own, and holds nobody up however slowly it is
        taken.
        """
        try:
            db = self._spare.pop()
        except IndexError:
            db = self._fresh()
        db.set_progress_handler(lambda: watch.stopped, STEPS)
        try:
            yield from db.execute(sql, values)
        except apsw.InterruptError as error:
            raise cancelled() from error
        finally:
            db.set_progress_handler(None)
            self._spare.append(db)

    def _fresh(self) -> apsw.Connection:
        db = apsw.Connection(":memory:")
        functions.register(db, self.world)
        rows.register(db)
        return db
