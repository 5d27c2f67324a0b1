"""The async twin of digests of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import digests
from vmstore.store.work.report import Brief
from vmstore.store.work.tasks import AgentTask
from vmstore.work.digest import CARDS, PackedDigests, TaskDigest


@described_by(digests.Digests)
class Digests:
    """See `vmstore.Digests`."""

    def __init__(self, sync: digests.Digests, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def tasks(
        self, at: When | None = None, *, status: str | None = None, **moment: Unpack[Moment]
    ) -> list[AgentTask]:
        """See `vmstore.Digests.tasks`."""
        return await self._worker.do(partial(self._sync.tasks, at, status=status, **moment))

    async def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TaskDigest]:
        """See `vmstore.Digests.all`."""
        return await self._worker.do(partial(self._sync.all, at, **moment))

    async def get(self, task: str | int, at: When | None = None, **moment: Unpack[Moment]) -> TaskDigest:
        """See `vmstore.Digests.get`."""
        return await self._worker.do(partial(self._sync.get, task, at, **moment))

    async def write(
        self, task: str | int, paragraph: str, *, short: str | None = None, at_us: int | None = None
    ) -> TaskDigest:
        """See `vmstore.Digests.write`."""
        return await self._worker.do(partial(self._sync.write, task, paragraph, short=short, at_us=at_us))

    async def system(self) -> str:
        """See `vmstore.Digests.system`."""
        return await self._worker.do(self._sync.system)

    async def cards(self, limit: int = CARDS) -> list[str]:
        """See `vmstore.Digests.cards`."""
        return await self._worker.do(self._sync.cards, limit)

    async def expand(
        self, uri: str, token_budget: int = 2_000, at: When | None = None, **moment: Unpack[Moment]
    ) -> str:
        """See `vmstore.Digests.expand`."""
        return await self._worker.do(partial(self._sync.expand, uri, token_budget, at, **moment))

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

    async def report(self, task: str | int, folder: str | Path, *, topic: str | None = None) -> Brief:
        """See `vmstore.Digests.report`."""
        return await self._worker.do(partial(self._sync.report, task, folder, topic=topic))
