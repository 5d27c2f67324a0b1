"""Answers VMQL: reads a text, answers its statement, and points into the text where it cannot."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from vmstore.core.asof import AsOf
from vmstore.vmql import text_cache
from vmstore.vmql.execution.executor import Runner
from vmstore.vmql.execution.query import Query
from vmstore.vmql.execution.query_limits import LimitedQuery, QueryLimits
from vmstore.vmql.execution.result import Cancellation, Result
from vmstore.vmql.execution.statements import answer
from vmstore.vmql.host import Host
from vmstore.vmql.parse import parse
from vmstore.vmql.planner.scope import Params
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import SourceSpan, Statement

if TYPE_CHECKING:
    from vmstore.vmql.execution.sql import SqlDoor


Limits = tuple[float | None, int | None, int | None]
NONE: Limits = (None, None, None)


class QueryEngine:
    """Answers the queries of one namespace; any thread may ask."""

    def __init__(self, world: Host) -> None:
        self._runner = Runner(world)
        self._door: SqlDoor | None = None
        self._asked: WeakSet[Cancellation] = WeakSet()
        self._adding = threading.Lock()

    def ask(
        self,
        text: str | Statement,
        *,
        session: str | None,
        params: Params,
        limits: Limits = NONE,
        for_prompt: bool = False,
    ) -> Result:
        """Answers the one statement of a text, or a statement that was read already, within limits.

        Where it is `for_prompt`, it tells no content of a file that no prompt may hold.
        """
        asked = text if not isinstance(text, str) else parse(text)
        written = text if isinstance(text, str) else ""
        return self.answer(asked, session=session, params=params, text=written, limits=limits, for_prompt=for_prompt)

    @property
    def runner(self) -> Runner:
        """What plans and runs them."""
        return self._runner

    def forget(self) -> None:
        """Forgets the statements that were asked, their plans and what they read."""
        text_cache.forget()
        self._runner.forget()
        self._door = None

    def answer(
        self,
        statement: Statement,
        *,
        session: str | None,
        params: Params,
        text: str = "",
        limits: Limits = NONE,
        for_prompt: bool = False,
    ) -> Result:
        """Answers a statement; `text` is where it stands."""
        query = Query(self._runner, statement, session, params, text)
        if for_prompt:
            query.untold = self._runner.world.untold()
        query.answer, within = answer, QueryLimits.of(*limits)
        if limits != NONE:
            query.watch = LimitedQuery(within, self._runner.world.ticks, text)
        with self._adding:
            self._asked.add(query.watch)
        try:
            return answer(query, statement).within(within.rows, partial(within.more, text))
        except RecursionError:
            message, hint = "operations and parentheses stand too deep in one another", "write it flatter, or in parts"
            raise QueryError(message, code="too-deep", text=text, span=SourceSpan(0, len(text)), hint=hint) from None
        except QueryError as error:
            if not error.text:
                error.text = text
            raise

    def sql(
        self,
        text: str,
        *,
        at: AsOf,
        session: str | None,
        params: Mapping[str, Any],
        limits: Limits,
    ) -> Result:
        """Answers a statement of SQL over the relations at a moment; its limits are seconds, rows and bytes."""
        from vmstore.vmql.execution.sql import MomentReader, SqlDoor

        began = self._runner.world.ticks()
        within = QueryLimits.of(*limits)
        watch = LimitedQuery(within, self._runner.world.ticks, text)
        with self._adding:
            self._asked.add(watch)
            if self._door is None:
                self._door = SqlDoor(self._runner.world.ticks)
        reader = MomentReader(self._runner, at, session, text, watch)
        return self._door.answer(text, reader, params, within, watch, began)

    def interrupt(self, thread: int | None = None) -> None:
        """Stops every query that is being answered, or those that one thread asked, from any thread."""
        with self._adding:
            for watch in self._asked:
                watch.stopped = watch.stopped or thread in (None, watch.asker)
