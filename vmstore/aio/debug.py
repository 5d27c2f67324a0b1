"""The async twin of looks into how a memory worked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.namespace.results import Fault
from vmstore.store import debug as sync_debug
from vmstore.store.reads.session_diff import SessionDiff

if TYPE_CHECKING:
    from vmstore.replay.check import ReplayCheck
    from vmstore.replay.whatif import Run
    from vmstore.store.breakpoints import Breakpoint
    from vmstore.vm.kernel.keywords import WhatIf


@described_by(sync_debug.Debug)
class Debug:
    """See `vmstore.Debug`."""

    def __init__(self, sync: sync_debug.Debug, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def faults(self, at: When | None = None, **moment: Unpack[Moment]) -> list[Fault]:
        """See `vmstore.Debug.faults`."""
        return await self._worker.do(partial(self._sync.faults, at, **moment))

    async def compare(self, other: str) -> SessionDiff:
        """See `vmstore.Debug.compare`."""
        return await self._worker.do(partial(self._sync.compare, other))

    async def first(self, where: str, *, after: int | None = None) -> Breakpoint | None:
        """See `vmstore.Debug.first`."""
        return await self._worker.do(partial(self._sync.first, where, after=after))

    async def replay(
        self,
        *,
        policy: str | None = None,
        budget: int | None = None,
        keep: str | None = None,
        **settings: Unpack[WhatIf],
    ) -> Run:
        """See `vmstore.Debug.replay`."""
        return await self._worker.do(partial(self._sync.replay, policy=policy, budget=budget, keep=keep, **settings))

    async def check(self) -> ReplayCheck:
        """See `vmstore.Debug.check`."""
        return await self._worker.do(partial(self._sync.check))
