"""The async twin of requests and responses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.namespace.costs import CostShare
from vmstore.namespace.results import Response
from vmstore.store import wire as sync_wire

if TYPE_CHECKING:
    pass


@described_by(sync_wire.Wire)
class Wire:
    """See `vmstore.Wire`."""

    def __init__(self, sync: sync_wire.Wire, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def messages(self, at: When | None = None, **moment: Unpack[Moment]) -> list[Any]:
        """See `vmstore.Wire.messages`."""
        return await self._worker.do(partial(self._sync.messages, at, **moment))

    async def request(self, at: When | None = None, **moment: Unpack[Moment]) -> dict[str, Any]:
        """See `vmstore.Wire.request`."""
        return await self._worker.do(partial(self._sync.request, at, **moment))

    async def response(self, at: When | None = None, **moment: Unpack[Moment]) -> Response:
        """See `vmstore.Wire.response`."""
        return await self._worker.do(partial(self._sync.response, at, **moment))

    async def costs(self, by: str = "turn") -> list[CostShare]:
        """See `vmstore.Wire.costs`."""
        return await self._worker.do(partial(self._sync.costs, by))
