"""The async twin of a store: opened, asked and written to by the tasks of one event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, overload

import vmstore.store.store as sync_store
from vmstore.aio.result import Result
from vmstore.aio.session import Session
from vmstore.aio.twins import twin
from vmstore.aio.worker import Worker
from vmstore.core.asof import AsOf
from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError
from vmstore.namespace.reports import Backup, Columns, Compacted, Exported, Import, Info, Swept, Usage, Verdict
from vmstore.namespace.results import Entry, Hit, Page, Recorded, SessionInfo
from vmstore.views.projection import Progress
from vmstore.vmql.syntax.nodes import Statement

if TYPE_CHECKING:
    from vmstore.aio.live import Live
    from vmstore.columns.page_table import PageTable
    from vmstore.namespace.effects import Agree
    from vmstore.namespace.encryption import Key
    from vmstore.seals.seal import Seal

ENTRIES = 200  # of a tail, fetched at once


def open(
    path: str | os.PathLike[str],
    mode: str = "rw",
    *,
    namespace: str = "default",
    key: Key | None = None,
    wait_s: float | None = WAIT_S,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Store:
    """A store to be opened: `async with open(path) as store`, or `store = await open(path)`; see `vmstore.open`."""
    opens = partial(sync_store.open_store, path, mode, namespace=namespace, key=key, wait_s=wait_s)
    return Store(partial(opens, clock=clock, ids=ids))


def memory_store(*, clock: Clock | None = None, ids: IdSource | None = None) -> Store:
    """A store in memory, to be opened the same way."""
    return Store(partial(sync_store.memory_store, clock=clock, ids=ids))


class Store:
    """One namespace of a store. Any task of one event loop may use it."""

    def __init__(self, opens: Callable[[], sync_store.Store]) -> None:
        self._opens = opens
        self._worker = Worker()
        self._sync: sync_store.Store | None = None

    async def __aenter__(self) -> Store:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Store]:
        return self._open().__await__()

    async def _open(self) -> Store:
        if self._sync is None:
            opening = self._worker.begin(self._opens)
            try:
                self._sync = await asyncio.wrap_future(opening)
            except BaseException:  # a store that opens after nobody waits is closed again
                opening.add_done_callback(_close_opened)
                await self._worker.end(_nothing)
                raise
        return self

    @property
    def _store(self) -> sync_store.Store:
        if self._sync is None:
            raise InputError("the store is not open yet; use `async with`, or await it")
        return self._sync

    @property
    def folder(self) -> Path | None:
        """The namespace's directory; None in memory."""
        return self._store.folder

    async def close(self) -> None:
        """Lets go of the files after what was asked before; closing twice does nothing."""
        await self._worker.end(self._store.close if self._sync is not None else _nothing)

    async def follow(self) -> None:
        """See `vmstore.Store.follow`."""
        await self._worker.do(self._store.follow)

    async def sessions(
        self, *, user: str | None = None, agent: str | None = None, hidden: bool = False
    ) -> list[SessionInfo]:
        """See `vmstore.Store.sessions`."""
        return await self._worker.do(self._store.sessions, user=user, agent=agent, hidden=hidden)

    async def pages(
        self,
        at: AsOf | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
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
        after: str | None = None,
        **moment: Any,
    ) -> list[Page]:
        """See `vmstore.Store.pages`."""
        told = partial(self._store.pages, at, user=user, agent=agent, type=type, role=role, modality=modality)
        more = partial(told, tier=tier, level=level, tag=tag, actor=actor, importance_min=importance_min, dirty=dirty)
        since = partial(more, created_since=created_since, entered_since=entered_since, order_by=order_by)
        return await self._worker.do(partial(since, limit=limit, after=after, **moment))

    async def search(self, query: str, *, limit: int | None = 10) -> list[Hit]:
        """See `vmstore.Store.search`."""
        return await self._worker.do(partial(self._store.search, query, limit=limit))

    @overload
    async def session(self, name: str, *, l0_tokens_max: int, **told: Any) -> Live: ...
    @overload
    async def session(
        self, name: str, *, create: bool = False, user: str | None = None, agent: str | None = None,
        title: str | None = None, redaction: str | None = None,
    ) -> Session: ...  # fmt: skip
    async def session(
        self, name: str, *, create: bool = False, user: str | None = None, agent: str | None = None,
        title: str | None = None, redaction: str | None = None, **live: Any,
    ) -> Session:  # fmt: skip
        """See `vmstore.Store.session`."""
        told = {"user": user, "agent": agent, "title": title, "redaction": redaction, **live}
        return twin(await self._worker.do(partial(self._store.session, name, create=create, **told)), self._worker)

    async def redrive(self, source: str, name: str, *, progress: Progress | None = None, **settings: Any) -> Live:
        """See `vmstore.Store.redrive`."""
        from vmstore.aio.live import Live

        told = partial(self._store.redrive, source, name, progress=progress, **settings)
        return Live(await self._worker.do(told), self._worker)

    async def region(self, name: str, *, user: str | None = None, session: str | None = None) -> Store:
        """See `vmstore.Store.region`; the region is open, and is closed like any other."""
        return await Store(partial(self._store.region, name, user=user, session=session))

    async def find(self, reference: str) -> tuple[Session, str]:
        """See `vmstore.Store.find`."""
        session, page = await self._worker.do(self._store.find, reference)
        return twin(session, self._worker), page

    async def record(
        self,
        session: str | Session,
        request: dict[str, Any],
        response: Any = None,
        *,
        at: int | None = None,
        latency: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
        redaction: str | None = None,
    ) -> Recorded:
        """See `vmstore.Store.record`."""
        told: dict[str, Any] = {
            "at": at,
            "latency": latency,
            "cost": cost,
            "request_id": request_id,
            "redaction": redaction,
        }
        return await self._worker.do(partial(self._store.record, **told), _named(session), request, response)

    async def record_gap(
        self, session: str | Session, reason: str, *, at: int | None = None, redaction: str | None = None
    ) -> Recorded:
        """See `vmstore.Store.record_gap`."""
        return await self._worker.do(self._store.record_gap, _named(session), reason, at=at, redaction=redaction)

    async def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        format: str | None = None,
        exact: bool = False,
        redaction: str | None = None,
        agreed: Agree = False,
        uses: bool = False,
        progress: Progress | None = None,
    ) -> Import:
        """See `vmstore.Store.import_file`."""
        told: dict[str, Any] = {
            "session": session,
            "format": format,
            "exact": exact,
            "redaction": redaction,
            "agreed": agreed,
            "uses": uses,
            "progress": progress,
        }
        return await self._worker.do(partial(self._store.import_file, **told), path)

    async def export(
        self,
        out: str | os.PathLike[str] | BinaryIO,
        sessions: str | Iterable[str] | None = None,
        *,
        format: str = "jsonl",
        at: AsOf | None = None,
        exact: bool = False,
        redact: bool = True,
        progress: Progress | None = None,
        **moment: Any,
    ) -> Exported:
        """See `vmstore.Store.export`."""
        told: dict[str, Any] = {"format": format, "at": at, "exact": exact, "redact": redact, "progress": progress}
        return await self._worker.do(partial(self._store.export, **told, **moment), out, sessions)

    async def query(self, text: str | Statement, *, session: str | None = None, **params: Any) -> Result:
        """See `vmstore.Store.query`."""
        return Result(await self._worker.do(partial(self._store.query, text, session=session, **params)), self._worker)

    async def interrupt(self, thread: int | None = None) -> None:
        """See `vmstore.Store.interrupt`; at once, whatever the thread is doing."""
        self._store.interrupt(thread)

    async def tail(self, after: str | None = None, *, limit: int | None = None) -> AsyncIterator[Entry]:
        """See `vmstore.Store.tail`."""
        entries = self._store.tail(after, limit=limit)
        while some := await self._worker.do(_some, entries):
            for entry in some:
                yield entry

    async def info(self) -> Info:
        """See `vmstore.Store.info`."""
        return await self._worker.do(self._store.info)

    async def usage(self, progress: Progress | None = None) -> Usage:
        """See `vmstore.Store.usage`."""
        return await self._worker.do(self._store.usage, progress)

    async def backup(self, to: str | os.PathLike[str], progress: Progress | None = None) -> Backup:
        """See `vmstore.Store.backup`."""
        return await self._worker.do(self._store.backup, to, progress)

    async def page_table(self, sessions: str | Iterable[str] | Mapping[str, int | None] | None = None) -> PageTable:
        """See `vmstore.Store.page_table`."""
        return await self._worker.do(self._store.page_table, sessions)

    async def columns(self) -> Columns:
        """See `vmstore.Store.columns`."""
        return await self._worker.do(self._store.columns)

    async def compact(self, progress: Progress | None = None) -> Compacted:
        """See `vmstore.Store.compact`."""
        return await self._worker.do(self._store.compact, progress)

    async def sweep(self, *, grace: float = sync_store.GRACE_S, dry_run: bool = False) -> Swept:
        """See `vmstore.Store.sweep`."""
        return await self._worker.do(partial(self._store.sweep, grace=grace, dry_run=dry_run))

    async def verify(
        self,
        progress: Progress | None = None,
        *,
        views: bool = True,
        rules: bool | None = None,
        seals: Sequence[Seal] = (),
    ) -> Verdict:
        """See `vmstore.Store.verify`."""
        return await self._worker.do(partial(self._store.verify, progress, views=views, rules=rules, seals=seals))

    async def rebuild(self, view: str | None = None, progress: Progress | None = None) -> dict[str, int]:
        """See `vmstore.Store.rebuild`."""
        return await self._worker.do(self._store.rebuild, view, progress)


def _named(session: str | Session) -> str:
    return session.name if isinstance(session, Session) else session


def _some(entries: Iterable[Entry]) -> list[Entry]:
    return list(islice(entries, ENTRIES))


def _nothing() -> None:
    pass


def _close_opened(opening: Future[sync_store.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
