"""The async twin of a session: every question and every write awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import vmstore.store.session as sync_session
from vmstore.aio.context import Context
from vmstore.aio.worker import Worker
from vmstore.core.asof import AsOf, Position
from vmstore.engine.batch import HandBatch
from vmstore.namespace.results import (
    Affinity,
    CallInfo,
    Diff,
    Event,
    Fault,
    Hit,
    Page,
    Recorded,
    Relation,
    Response,
    SessionInfo,
    TurnInfo,
    Version,
)

if TYPE_CHECKING:
    from vmstore.replay.check import Checked
    from vmstore.replay.whatif import Run
    from vmstore.seals.seal import Seal
    from vmstore.store.reads.proofs import Proof

T = TypeVar("T")


class Session:
    """One session of a store."""

    def __init__(self, session: sync_session.Session, worker: Worker) -> None:
        self._session = session
        self._worker = worker
        self.name = session.name

    def __repr__(self) -> str:
        return repr(self._session)

    async def info(self) -> SessionInfo:
        """See `vmstore.Session.info`."""
        return await self._worker.do(self._session.info)

    async def context(self, at: AsOf | None = None, **moment: Any) -> Context:
        """See `vmstore.Session.context`."""
        return Context(await self._worker.do(self._session.context, at, **moment), self._worker)

    async def pages(
        self,
        at: AsOf | None = None,
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
        **moment: Any,
    ) -> list[Page]:
        """See `vmstore.Session.pages`."""
        told = partial(self._session.pages, at, type=type, role=role, modality=modality, tier=tier, level=level)
        more = partial(told, tag=tag, actor=actor, importance_min=importance_min, dirty=dirty, order_by=order_by)
        since = partial(more, created_since=created_since, entered_since=entered_since)
        return await self._worker.do(partial(since, limit=limit, after=after, **moment))

    async def faults(self, at: AsOf | None = None, **moment: Any) -> list[Fault]:
        """See `vmstore.Session.faults`."""
        return await self._worker.do(self._session.faults, at, **moment)

    async def search(self, query: str, at: AsOf | None = None, *, limit: int | None = 10, **moment: Any) -> list[Hit]:
        """See `vmstore.Session.search`."""
        return await self._worker.do(partial(self._session.search, query, at, limit=limit, **moment))

    async def page(self, reference: str | int, at: AsOf | None = None, **moment: Any) -> Page:
        """See `vmstore.Session.page`."""
        return await self._worker.do(self._session.page, reference, at, **moment)

    async def versions(
        self, page: str | int, at: AsOf | None = None, *, delta: bool = False, **moment: Any
    ) -> list[Version]:
        """See `vmstore.Session.versions`."""
        return await self._worker.do(partial(self._session.versions, page, at, delta=delta, **moment))

    async def affinity(
        self, page: str | int, at: AsOf | None = None, *, limit: int | None = 20, **moment: Any
    ) -> list[Affinity]:
        """See `vmstore.Session.affinity`."""
        return await self._worker.do(partial(self._session.affinity, page, at, limit=limit, **moment))

    async def content(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> bytes:
        """See `vmstore.Session.content`."""
        return await self._worker.do(partial(self._session.content, reference, at, level=level, **moment))

    async def open(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> BinaryIO:
        """See `vmstore.Session.open`; the file itself is read as any other."""
        return await self._worker.do(partial(self._session.open, reference, at, level=level, **moment))

    async def replay(
        self, *, policy: str | None = None, budget: int | None = None, keep: str | None = None, **settings: Any
    ) -> Run:
        """See `vmstore.Session.replay`."""
        return await self._worker.do(partial(self._session.replay, policy=policy, budget=budget, keep=keep, **settings))

    async def check(self) -> Checked:
        """See `vmstore.Session.check`."""
        return await self._worker.do(self._session.check)

    async def position_of(self, page: str | int) -> int:
        """See `vmstore.Session.position_of`."""
        return await self._worker.do(self._session.position_of, page)

    async def moment_of(self, page: str | int, *, before: bool = False) -> Position:
        """See `vmstore.Session.moment_of`."""
        return await self._worker.do(partial(self._session.moment_of, page, before=before))

    async def history(self, page: str | int, at: AsOf | None = None, **moment: Any) -> list[Event]:
        """See `vmstore.Session.history`."""
        return await self._worker.do(self._session.history, page, at, **moment)

    async def sources(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[Relation]:
        """See `vmstore.Session.sources`."""
        return await self._worker.do(self._session.sources, page, depth=depth, kinds=kinds)

    async def derived(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[Relation]:
        """See `vmstore.Session.derived`."""
        return await self._worker.do(self._session.derived, page, depth=depth, kinds=kinds)

    async def diff(self, before: AsOf, after: AsOf) -> Diff:
        """See `vmstore.Session.diff`."""
        return await self._worker.do(self._session.diff, before, after)

    async def prove(self, page: str | int | None = None, *, call: int, seal: Seal | None = None) -> Proof:
        """See `vmstore.Session.prove`."""
        return await self._worker.do(partial(self._session.prove, page, call=call, seal=seal))

    async def messages(self, at: AsOf | None = None, **moment: Any) -> list[Any]:
        """See `vmstore.Session.messages`."""
        return await self._worker.do(self._session.messages, at, **moment)

    async def request(self, at: AsOf | None = None, **moment: Any) -> dict[str, Any]:
        """See `vmstore.Session.request`."""
        return await self._worker.do(self._session.request, at, **moment)

    async def response(self, at: AsOf | None = None, **moment: Any) -> Response:
        """See `vmstore.Session.response`."""
        return await self._worker.do(self._session.response, at, **moment)

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
        at: int | None = None,
        latency: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
    ) -> Recorded:
        """See `vmstore.Session.record`."""
        told = partial(self._session.record, at=at, latency=latency, cost=cost, request_id=request_id)
        return await self._worker.do(told, request, response)

    async def batch(self, write: Callable[[HandBatch], T], *, at: int | None = None) -> T:
        """See `vmstore.Session.batch`; `write` is given the batch and adds to it, in the store's thread."""

        def work() -> T:
            with self._session.batch(at=at) as batch:
                return write(batch)

        return await self._worker.do(work)

    async def annotate(
        self,
        page: str | int,
        *,
        importance: float | None = None,
        status: str | None = None,
        valid_from: int | None = None,
        valid_to: int | None = None,
        tags: Iterable[str] = (),
        untags: Iterable[str] = (),
        anchors: Mapping[str, str | None] | None = None,
        at: int | None = None,
    ) -> Page:
        """See `vmstore.Session.annotate`."""
        told = partial(self._session.annotate, page, importance=importance, status=status, anchors=anchors, at=at)
        more = partial(told, valid_from=valid_from, valid_to=valid_to, tags=tags, untags=untags)
        return await self._worker.do(more)

    async def close(
        self, status: str = "completed", reason: str | None = None, *, at: int | None = None
    ) -> SessionInfo:
        """See `vmstore.Session.close`."""
        return await self._worker.do(partial(self._session.close, status, reason, at=at))

    async def fork(self, name: str, at: AsOf | None = None, **moment: Any) -> Session:
        """See `vmstore.Session.fork`."""
        return Session(await self._worker.do(self._session.fork, name, at, **moment), self._worker)
