"""The async twin of plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import plans
from vmstore.store.work.plans import AgentPlan


@described_by(plans.Plans)
class Plans:
    """See `vmstore.Plans`."""

    def __init__(self, sync: plans.Plans, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(
        self, at: When | None = None, *, status: str | None = None, **moment: Unpack[Moment]
    ) -> list[AgentPlan]:
        """See `vmstore.Plans.all`."""
        return await self._worker.do(partial(self._sync.all, at, status=status, **moment))

    async def get(self, plan: str | int, at: When | None = None, **moment: Unpack[Moment]) -> AgentPlan:
        """See `vmstore.Plans.get`."""
        return await self._worker.do(partial(self._sync.get, plan, at, **moment))

    async def elsewhere(self) -> list[AgentPlan]:
        """See `vmstore.Plans.elsewhere`."""
        return await self._worker.do(self._sync.elsewhere)

    async def create(
        self,
        title: str,
        *,
        goals: Iterable[str] = (),
        steps: Sequence[str | Mapping[str, Any]] = (),
        at_us: int | None = None,
    ) -> AgentPlan:
        """See `vmstore.Plans.create`."""
        return await self._worker.do(partial(self._sync.create, title, goals=goals, steps=steps, at_us=at_us))

    async def update(
        self,
        plan: str | int,
        *,
        goals: Iterable[str] | None = None,
        steps: Sequence[str | Mapping[str, Any]] | None = None,
        progress: float | None = None,
        at_us: int | None = None,
    ) -> AgentPlan:
        """See `vmstore.Plans.update`."""
        return await self._worker.do(
            partial(self._sync.update, plan, goals=goals, steps=steps, progress=progress, at_us=at_us)
        )

    async def done(self, plan: str | int, *steps: str, at_us: int | None = None) -> AgentPlan:
        """See `vmstore.Plans.done`."""
        return await self._worker.do(partial(self._sync.done, plan, *steps, at_us=at_us))

    async def decide(
        self, plan: str | int, text: str, *, sources: Iterable[str | int] = (), at_us: int | None = None
    ) -> str:
        """See `vmstore.Plans.decide`."""
        return await self._worker.do(partial(self._sync.decide, plan, text, sources=sources, at_us=at_us))

    async def complete(self, plan: str | int, *, at_us: int | None = None) -> AgentPlan:
        """See `vmstore.Plans.complete`."""
        return await self._worker.do(partial(self._sync.complete, plan, at_us=at_us))

    async def abandon(self, plan: str | int, *, at_us: int | None = None) -> AgentPlan:
        """See `vmstore.Plans.abandon`."""
        return await self._worker.do(partial(self._sync.abandon, plan, at_us=at_us))

    async def resume(self, title: str | None = None, *, at_us: int | None = None) -> AgentPlan:
        """See `vmstore.Plans.resume`."""
        return await self._worker.do(partial(self._sync.resume, title, at_us=at_us))
