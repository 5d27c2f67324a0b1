"""The async twin of a session: every question and every write awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, TypeVar, Unpack

import vmstore.store.session as sync_session
from vmstore.aio.context import Context
from vmstore.aio.debug import Debug
from vmstore.aio.docs import described_by
from vmstore.aio.lineage import Lineage
from vmstore.aio.memory import SessionMemory
from vmstore.aio.wire import Wire
from vmstore.aio.worker import Worker
from vmstore.core.aliases import Aliased, old_keywords_of_methods
from vmstore.core.asof import AsOf, Moment, When
from vmstore.engine.batch import HandBatch
from vmstore.namespace.results import (
    CallInfo,
    Diff,
    Hits,
    Page,
    RecordedCall,
    SessionInfo,
    TurnInfo,
)

if TYPE_CHECKING:
    from vmstore.aio.work.work import SessionWork
    from vmstore.seals.seal import Seal
    from vmstore.store.reads.proofs import Proof

T = TypeVar("T")


@described_by(sync_session.Session)
@old_keywords_of_methods(at="at_us", latency="latency_us", valid_from="valid_from_us", valid_to="valid_to_us")
class Session(Aliased):
    """One session of a store. Questions take a moment: `at=`, or `turn=`, `call=`, `position=`, `time=`."""

    _aliases: ClassVar[Mapping[str, str]] = sync_session.Session._aliases

    def __init__(self, session: sync_session.Session, worker: Worker) -> None:
        self._session = session
        self._worker = worker
        self.name = session.name

    def __repr__(self) -> str:
        return repr(self._session)

    @property
    def lineage(self) -> Lineage:
        """See `vmstore.Session.lineage`."""
        return Lineage(self._session.lineage, self._worker)

    @property
    def wire(self) -> Wire:
        """See `vmstore.Session.wire`."""
        return Wire(self._session.wire, self._worker)

    @property
    def work(self) -> SessionWork:
        """See `vmstore.Session.work`."""
        from vmstore.aio.work.work import SessionWork

        return SessionWork(self._session.work, self._worker)

    @property
    def memory(self) -> SessionMemory:
        """See `vmstore.Session.memory`."""
        return SessionMemory(self._session.memory, self._worker)

    @property
    def debug(self) -> Debug:
        """See `vmstore.Session.debug`."""
        return Debug(self._session.debug, self._worker)

    async def _prove(self, page: str | int | None = None, *, call: int, seal: Seal | None = None) -> Proof:
        """The former `prove`, for one release."""
        return await self._worker.do(partial(self._session._prove, page, call=call, seal=seal))

    async def info(self) -> SessionInfo:
        """See `vmstore.Session.info`."""
        return await self._worker.do(self._session.info)

    async def context(self, at: When | None = None, **moment: Unpack[Moment]) -> Context:
        """See `vmstore.Session.context`."""
        return Context(await self._worker.do(self._session.context, at, **moment), self._worker)

    async def pages(
        self,
        at: When | None = None,
        *,
        type: str | None = None,
        role: str | None = None,
        modality: str | None = None,
        tier: int | str | None = None,
        level: int | None = None,
        tag: str | None = None,
        actor: str | None = None,
        importance_min: float | None = None,
        dirty: bool | None = None,
        created_since: AsOf | None = None,
        entered_since: AsOf | None = None,
        order_by: str = "position",
        limit: int | None = None,
        after: str | int | None = None,
        **moment: Unpack[Moment],
    ) -> list[Page]:
        """See `vmstore.Session.pages`."""
        call_it = partial(self._session.pages, at, type=type, role=role, modality=modality, tier=tier, level=level)
        more = partial(call_it, tag=tag, actor=actor, importance_min=importance_min, dirty=dirty, order_by=order_by)
        since = partial(more, created_since=created_since, entered_since=entered_since)
        return await self._worker.do(partial(since, limit=limit, after=after, **moment))

    async def search(
        self, query: str, at: When | None = None, *, limit: int | None = 10, score: str | None = None,
        explain: bool = False, **moment: Unpack[Moment],
    ) -> Hits:  # fmt: skip
        """See `vmstore.Session.search`."""
        call_it = partial(self._session.search, query, at, limit=limit, score=score, explain=explain)
        return await self._worker.do(partial(call_it, **moment))

    async def page(self, reference: str | int, at: When | None = None, **moment: Unpack[Moment]) -> Page:
        """See `vmstore.Session.page`."""
        return await self._worker.do(self._session.page, reference, at, **moment)

    async def content(
        self, reference: str | int, at: When | None = None, *, level: int | None = None, **moment: Unpack[Moment]
    ) -> bytes:
        """See `vmstore.Session.content`."""
        return await self._worker.do(partial(self._session.content, reference, at, level=level, **moment))

    async def open_content(
        self, reference: str | int, at: When | None = None, *, level: int | None = None, **moment: Unpack[Moment]
    ) -> BinaryIO:
        """See `vmstore.Session.open_content`; the file itself is read as any other."""
        return await self._worker.do(partial(self._session.open_content, reference, at, level=level, **moment))

    async def diff(self, before: When, after: When) -> Diff:
        """See `vmstore.Session.diff`."""
        return await self._worker.do(self._session.diff, before, after)

    async def turns(self) -> list[TurnInfo]:
        """See `vmstore.Session.turns`."""
        return await self._worker.do(self._session.turns)

    async def calls(self) -> list[CallInfo]:
        """See `vmstore.Session.calls`."""
        return await self._worker.do(self._session.calls)

    async def record(
        self,
        request: dict[str, Any],
        response: Any = None,
        *,
        at_us: int | None = None,
        latency_us: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
    ) -> RecordedCall:
        """See `vmstore.Session.record`."""
        call_it = partial(self._session.record, at_us=at_us, latency_us=latency_us, cost=cost, request_id=request_id)
        return await self._worker.do(call_it, request, response)

    async def batch(self, write: Callable[[HandBatch], T], *, at_us: int | None = None) -> T:
        """See `vmstore.Session.batch`; `write` is given the batch and adds to it, in the store's thread."""

        def work() -> T:
            with self._session.batch(at_us=at_us) as batch:
                return write(batch)

        return await self._worker.do(work)

    async def annotate(
        self,
        page: str | int,
        *,
        importance: float | None = None,
        status: str | None = None,
        valid_from_us: int | None = None,
        valid_to_us: int | None = None,
        tags: Iterable[str] = (),
        untags: Iterable[str] = (),
        anchors: Mapping[str, str | None] | None = None,
        at_us: int | None = None,
    ) -> Page:
        """See `vmstore.Session.annotate`."""
        call_it = partial(
            self._session.annotate, page, importance=importance, status=status, anchors=anchors, at_us=at_us
        )
        more = partial(call_it, valid_from_us=valid_from_us, valid_to_us=valid_to_us, tags=tags, untags=untags)
        return await self._worker.do(more)

    async def close(
        self, status: str = "completed", reason: str | None = None, *, at_us: int | None = None
    ) -> SessionInfo:
        """See `vmstore.Session.close`."""
        return await self._worker.do(partial(self._session.close, status, reason, at_us=at_us))

    async def fork(self, name: str, at: When | None = None, **moment: Unpack[Moment]) -> Session:
        """See `vmstore.Session.fork`."""
        return Session(await self._worker.do(self._session.fork, name, at, **moment), self._worker)
