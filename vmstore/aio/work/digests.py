"""The async twin of digests of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import digests
from vmstore.work.digest import CARDS, PackedDigests, TaskDigest


@described_by(digests.Digests)
class Digests:
    """See `vmstore.Digests`."""

    def __init__(self, sync: digests.Digests, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TaskDigest]:
        """See `vmstore.Digests.all`."""
        return await self._worker.do(partial(self._sync.all, at, **moment))

    async def get(self, task: str | int, at: When | None = None, **moment: Unpack[Moment]) -> TaskDigest:
        """See `vmstore.Digests.get`."""
        return await self._worker.do(partial(self._sync.get, task, at, **moment))

    async def system(self) -> str:
        """See `vmstore.Digests.system`."""
        return await self._worker.do(self._sync.system)

    async def cards(self, limit: int = CARDS) -> list[str]:
        """See `vmstore.Digests.cards`."""
        return await self._worker.do(self._sync.cards, limit)

    async def expand(self, uri: str, token_budget: int = 2_000) -> str:
        """See `vmstore.Digests.expand`."""
        return await self._worker.do(self._sync.expand, uri, token_budget)

    async def pack(
        self,
        token_budget: int,
        *,
        task: str | int | None = None,
        cards: int = CARDS,
        expand: Iterable[str] = (),
    ) -> PackedDigests:
        """See `vmstore.Digests.pack`."""
        return await self._worker.do(partial(self._sync.pack, token_budget, task=task, cards=cards, expand=expand))
