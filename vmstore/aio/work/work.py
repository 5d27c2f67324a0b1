"""The async twins of an agent's work, of a session and of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.work.artifacts import Artifacts, Atoms
from vmstore.aio.work.digests import Digests
from vmstore.aio.work.forms import Forms
from vmstore.aio.work.plans import Plans
from vmstore.aio.work.vbrief import VBriefTools
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import session_work, store_work
from vmstore.store.work.hand_off import HandOff
from vmstore.store.work.observations import ObservationInfo, WorkSearch
from vmstore.store.work.results import GuardInfo, Lessons, SkillInfo, WorkMeasures
from vmstore.store.work.tasks import AgentTask
from vmstore.work.disclosure import DisclosureStep
from vmstore.work.observation import RATIO
from vmstore.work.skill import SUCCESSES_MIN
from vmstore.work.vbrief import VBriefDocument
from vmstore.workers.choice import Choice
from vmstore.workers.executor import Progress


@described_by(session_work.SessionWork)
class SessionWork:
    """See `vmstore.SessionWork`."""

    def __init__(self, sync: session_work.SessionWork, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    @property
    def plans(self) -> Plans:
        """See `vmstore.SessionWork.plans`."""
        return Plans(self._sync.plans, self._worker)

    @property
    def digests(self) -> Digests:
        """See `vmstore.SessionWork.digests`."""
        return Digests(self._sync.digests, self._worker)

    @property
    def atoms(self) -> Atoms:
        """See `vmstore.SessionWork.atoms`."""
        return Atoms(self._sync.atoms, self._worker)

    @property
    def artifacts(self) -> Artifacts:
        """See `vmstore.SessionWork.artifacts`."""
        return Artifacts(self._sync.artifacts, self._worker)

    @property
    def forms(self) -> Forms:
        """See `vmstore.SessionWork.forms`."""
        return Forms(self._sync.forms, self._worker)

    async def observations(
        self, at: When | None = None, *, target_ratio: float = RATIO, **moment: Unpack[Moment]
    ) -> list[ObservationInfo]:
        """See `vmstore.SessionWork.observations`."""
        return await self._worker.do(partial(self._sync.observations, at, target_ratio=target_ratio, **moment))

    async def steps(self, at: When | None = None, **moment: Unpack[Moment]) -> list[DisclosureStep]:
        """See `vmstore.SessionWork.steps`."""
        return await self._worker.do(partial(self._sync.steps, at, **moment))

    async def brief(self) -> VBriefDocument:
        """See `vmstore.SessionWork.brief`."""
        return await self._worker.do(self._sync.brief)

    async def hand_off(self, model: str, *, at_us: int | None = None, **settings: Any) -> HandOff:
        """See `vmstore.SessionWork.hand_off`."""
        return await self._worker.do(partial(self._sync.hand_off, model, at_us=at_us, **settings))

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
        return await self._worker.do(
            partial(
                self._sync.ran,
                call,
                outcome=outcome,
                result=result,
                duration_ms=duration_ms,
                error=error,
                reasoning=reasoning,
                pages_read=pages_read,
                pages_created=pages_created,
                pages_modified=pages_modified,
                tags=tags,
                at_us=at_us,
            )
        )

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

    async def read_by(
        self, workers: Choice = None, *, results: Path | None = None, progress: Progress | None = None
    ) -> StoreWork:
        """See `vmstore.StoreWork.read_by`."""
        ask = partial(self._sync.read_by, workers, results=results, progress=progress)
        return StoreWork(await self._worker.do(ask), self._worker)

    async def alarms(self, *, user: str | None = None, together: bool = False) -> list[GuardInfo]:
        """See `vmstore.StoreWork.alarms`."""
        return await self._worker.do(partial(self._sync.alarms, user=user, together=together))

    async def guards(self, *, user: str | None = None) -> list[GuardInfo]:
        """See `vmstore.StoreWork.guards`."""
        return await self._worker.do(partial(self._sync.guards, user=user))

    async def learn(self, *, user: str | None = None, together: bool = False) -> Lessons:
        """See `vmstore.StoreWork.learn`."""
        return await self._worker.do(partial(self._sync.learn, user=user, together=together))

    async def skills(self, tools: Iterable[str] | None = None, *, user: str | None = None) -> list[SkillInfo]:
        """See `vmstore.StoreWork.skills`."""
        return await self._worker.do(partial(self._sync.skills, tools, user=user))

    async def found_skills(
        self, *, user: str | None = None, least: int = SUCCESSES_MIN, together: bool = False
    ) -> list[SkillInfo]:
        """See `vmstore.StoreWork.found_skills`."""
        return await self._worker.do(partial(self._sync.found_skills, user=user, least=least, together=together))

    async def measures(self, *, user: str | None = None) -> WorkMeasures:
        """See `vmstore.StoreWork.measures`."""
        return await self._worker.do(partial(self._sync.measures, user=user))

    async def tasks(self, *, user: str | None = None, status: str | None = None) -> list[AgentTask]:
        """See `vmstore.StoreWork.tasks`."""
        return await self._worker.do(partial(self._sync.tasks, user=user, status=status))

    async def search(
        self, query: str, *, token_budget: int = 2_000, optimize_for: str = "relevance", user: str | None = None
    ) -> WorkSearch:
        """See `vmstore.StoreWork.search`."""
        return await self._worker.do(
            partial(self._sync.search, query, token_budget=token_budget, optimize_for=optimize_for, user=user)
        )

    @property
    def vbrief(self) -> VBriefTools:
        """See `vmstore.StoreWork.vbrief`."""
        return VBriefTools(self._sync.vbrief, self._worker)
