"""The async twin of what is known of single pages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, Position, When
from vmstore.namespace.results import Affinity, Compaction, Event, PageLink, Version
from vmstore.store import lineage as sync_lineage
from vmstore.store.reads.evidence import SourceEvidence

if TYPE_CHECKING:
    pass


@described_by(sync_lineage.Lineage)
class Lineage:
    """See `vmstore.Lineage`."""

    def __init__(self, sync: sync_lineage.Lineage, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def history(self, page: str | int, at: When | None = None, **moment: Unpack[Moment]) -> list[Event]:
        """See `vmstore.Lineage.history`."""
        return await self._worker.do(partial(self._sync.history, page, at, **moment))

    async def versions(
        self, page: str | int, at: When | None = None, *, delta: bool = False, **moment: Unpack[Moment]
    ) -> list[Version]:
        """See `vmstore.Lineage.versions`."""
        return await self._worker.do(partial(self._sync.versions, page, at, delta=delta, **moment))

    async def affinity(
        self, page: str | int, at: When | None = None, *, limit: int | None = 20, **moment: Unpack[Moment]
    ) -> list[Affinity]:
        """See `vmstore.Lineage.affinity`."""
        return await self._worker.do(partial(self._sync.affinity, page, at, limit=limit, **moment))

    async def evidence(self, page: str | int, *, limit: int | None = 3) -> list[SourceEvidence]:
        """See `vmstore.Lineage.evidence`."""
        return await self._worker.do(partial(self._sync.evidence, page, limit=limit))

    async def compactions(self, at: When | None = None, **moment: Unpack[Moment]) -> list[Compaction]:
        """See `vmstore.Lineage.compactions`."""
        return await self._worker.do(partial(self._sync.compactions, at, **moment))

    async def ancestors(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[PageLink]:
        """See `vmstore.Lineage.ancestors`."""
        return await self._worker.do(partial(self._sync.ancestors, page, depth=depth, kinds=kinds))

    async def descendants(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[PageLink]:
        """See `vmstore.Lineage.descendants`."""
        return await self._worker.do(partial(self._sync.descendants, page, depth=depth, kinds=kinds))

    async def position_of(self, page: str | int) -> int:
        """See `vmstore.Lineage.position_of`."""
        return await self._worker.do(partial(self._sync.position_of, page))

    async def moment_of(self, page: str | int, *, before: bool = False) -> Position:
        """See `vmstore.Lineage.moment_of`."""
        return await self._worker.do(partial(self._sync.moment_of, page, before=before))
