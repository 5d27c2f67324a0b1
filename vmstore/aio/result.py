"""The async twin of a query's answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import islice
from typing import Any

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.vmql.execution import result as sync_result

ROWS = 200  # taken at once


@described_by(sync_result.Result)
class Result:
    """An answer whose rows are awaited: `async for row in result`."""

    def __init__(self, result: sync_result.Result, worker: Worker) -> None:
        self._result = result
        self._worker = worker
        self.kind = result.kind
        self.basis = result.basis
        self.columns = result.columns
        self.statement = result.statement

    async def __aiter__(self) -> AsyncIterator[tuple[Any, ...]]:
        while some := await self._worker.do(list[tuple[Any, ...]], islice(self._result, ROWS)):
            for row in some:
                yield row

    @property
    def next(self) -> str | None:
        """The cursor after a limited answer that was taken whole."""
        return self._result.next

    @property
    def elapsed_ms(self) -> float:
        """How long it took so far, in milliseconds."""
        return self._result.elapsed_ms

    async def cancel(self) -> None:
        """Stops it at once: the task that takes rows gets a QueryError."""
        self._result.cancel()

    async def to_dicts(self) -> list[dict[str, Any]]:
        """The rows that are left, each by the names of its columns."""
        return await self._worker.do(self._result.to_dicts)

    async def to_json(self) -> dict[str, Any]:
        """The whole answer as plain values."""
        return await self._worker.do(self._result.to_json)

    async def arrow(self) -> Any:
        """The rows that are left as an Arrow table; needs pyarrow."""
        return await self._worker.do(self._result.arrow)
