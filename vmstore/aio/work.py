"""The async twin of an agent's work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import session_work, store_work
from vmstore.store.work.results import GuardInfo, Lessons, SkillInfo, WorkMeasures


@described_by(session_work.SessionWork)
class SessionWork:
    """See `vmstore.SessionWork`."""

    def __init__(self, sync: session_work.SessionWork, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def ran(
        self,
        call: str | int,
        *,
        outcome: str = "ok",
        result: str | int | None = None,
        duration_ms: float | None = None,
        error: str | None = None,
        reasoning: str | int | None = None,
        pages_read: Iterable[str | int] = (),
        pages_created: Iterable[str | int] = (),
        pages_modified: Iterable[str | int] = (),
        tags: Iterable[str] = (),
        at_us: int | None = None,
    ) -> None:
        """See `vmstore.SessionWork.ran`."""
        ended = partial(self._sync.ran, outcome=outcome, result=result, duration_ms=duration_ms, error=error)
        touched = partial(ended, pages_read=pages_read, pages_created=pages_created, pages_modified=pages_modified)
        await self._worker.do(partial(touched, call, reasoning=reasoning, tags=tags, at_us=at_us))

    async def alarms(self, at: When | None = None, **moment: Unpack[Moment]) -> list[GuardInfo]:
        """See `vmstore.SessionWork.alarms`."""
        return await self._worker.do(partial(self._sync.alarms, at, **moment))

    async def guards(self, at: When | None = None, **moment: Unpack[Moment]) -> list[GuardInfo]:
        """See `vmstore.SessionWork.guards`."""
        return await self._worker.do(partial(self._sync.guards, at, **moment))

    async def avoid(self, tool: str | None = None) -> list[str]:
        """See `vmstore.SessionWork.avoid`."""
        return await self._worker.do(self._sync.avoid, tool)

    async def learn(self, *, at_us: int | None = None) -> Lessons:
        """See `vmstore.SessionWork.learn`."""
        return await self._worker.do(partial(self._sync.learn, at_us=at_us))

    async def skills(
        self, tools: Iterable[str] | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SkillInfo]:
        """See `vmstore.SessionWork.skills`."""
        return await self._worker.do(partial(self._sync.skills, tools, at, **moment))

    async def found_skills(self, *, least: int = 5) -> list[SkillInfo]:
        """See `vmstore.SessionWork.found_skills`."""
        return await self._worker.do(partial(self._sync.found_skills, least=least))

    async def measures(self) -> WorkMeasures:
        """See `vmstore.SessionWork.measures`."""
        return await self._worker.do(self._sync.measures)

    async def suggest_pages(self, tool: str, limit: int = 5) -> list[str]:
        """See `vmstore.SessionWork.suggest_pages`."""
        return await self._worker.do(self._sync.suggest_pages, tool, limit)

    async def prepare(self, tool: str) -> list[str]:
        """See `vmstore.SessionWork.prepare`."""
        return await self._worker.do(self._sync.prepare, tool)

    async def cheapest(self, needs: Mapping[str, str], room: int | None = None) -> list[str]:
        """See `vmstore.SessionWork.cheapest`."""
        return await self._worker.do(self._sync.cheapest, needs, room)


@described_by(store_work.StoreWork)
class StoreWork:
    """See `vmstore.StoreWork`."""

    def __init__(self, sync: store_work.StoreWork, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def alarms(self, *, user: str | None = None) -> list[GuardInfo]:
        """See `vmstore.StoreWork.alarms`."""
        return await self._worker.do(partial(self._sync.alarms, user=user))

    async def guards(self, *, user: str | None = None) -> list[GuardInfo]:
        """See `vmstore.StoreWork.guards`."""
        return await self._worker.do(partial(self._sync.guards, user=user))

    async def learn(self, *, user: str | None = None) -> Lessons:
        """See `vmstore.StoreWork.learn`."""
        return await self._worker.do(partial(self._sync.learn, user=user))

    async def skills(self, tools: Iterable[str] | None = None, *, user: str | None = None) -> list[SkillInfo]:
        """See `vmstore.StoreWork.skills`."""
        return await self._worker.do(partial(self._sync.skills, tools, user=user))

    async def found_skills(self, *, user: str | None = None, least: int = 5) -> list[SkillInfo]:
        """See `vmstore.StoreWork.found_skills`."""
        return await self._worker.do(partial(self._sync.found_skills, user=user, least=least))

    async def measures(self, *, user: str | None = None) -> WorkMeasures:
        """See `vmstore.StoreWork.measures`."""
        return await self._worker.do(partial(self._sync.measures, user=user))
