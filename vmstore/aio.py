"""The async twin: `Store`, `Session` and `Context` with every question and every write awaited.

    async with vmstore.aio.open("agent.vms") as store:
        await store.record("trip", request, response)
        async for entry in store.tail():
            ...

Methods have the names, arguments and answers of `vmstore.Store` and `vmstore.Session`, whose words
say what they do. The work is done in one thread a store, in the order it was asked for. A task that
is cancelled stops waiting: work not begun is dropped, work begun is finished, so the log is whole;
a `request_id` tells afterwards which. Progress is told in that thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

import vmstore.store.session as sync_session
import vmstore.store.store as sync_store
from vmstore.core.asof import AsOf
from vmstore.core.clock import Clock, IdSource
from vmstore.engine.gate import Batch
from vmstore.errors import InputError
from vmstore.store import context as sync_context
from vmstore.store.answers import (
    Backup,
    Basis,
    CallInfo,
    ContextPage,
    Diff,
    Entry,
    Event,
    Exported,
    Import,
    Info,
    Page,
    Recorded,
    Relation,
    SessionInfo,
    TurnInfo,
    Usage,
    Verdict,
)
from vmstore.views.projection import Progress

P = ParamSpec("P")
T = TypeVar("T")
ENTRIES = 200  # of a tail, fetched at once


class _Worker:
    """The one thread that does a store's work."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vmstore-aio")
        self._ended = False

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does some work after what was asked before it."""
        return await asyncio.wrap_future(self.begin(work, *args, **kwargs))

    def begin(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Asks for some work."""
        if self._ended:
            raise InputError("the store is closed; open it again")
        return self._thread.submit(partial(work, *args, **kwargs))

    async def end(self, last: Callable[[], None]) -> None:
        """Does the last work, whoever stops waiting for it, and lets the thread go; twice does nothing."""
        if not self._ended:
            done = self.begin(last)
            self._ended = True
            self._thread.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(done))


def open(
    path: str | os.PathLike[str],
    mode: str = "rw",
    *,
    namespace: str = "default",
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Store:
    """A store to be opened: `async with open(path) as store`, or `store = await open(path)`; see `vmstore.open`."""
    return Store(partial(sync_store.open_store, path, mode, namespace=namespace, clock=clock, ids=ids))


def memory_store(*, clock: Clock | None = None, ids: IdSource | None = None) -> Store:
    """A store in memory, to be opened the same way."""
    return Store(partial(sync_store.memory_store, clock=clock, ids=ids))


class Store:
    """One namespace of a store. Any task of one event loop may use it."""

    def __init__(self, opens: Callable[[], sync_store.Store]) -> None:
        self._opens = opens
        self._worker = _Worker()
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

    async def sessions(self, *, hidden: bool = False) -> list[SessionInfo]:
        """See `vmstore.Store.sessions`."""
        return await self._worker.do(self._store.sessions, hidden=hidden)

    async def session(
        self,
        name: str,
        *,
        create: bool = False,
        user: str | None = None,
        agent: str | None = None,
        title: str | None = None,
    ) -> Session:
        """See `vmstore.Store.session`."""
        told = {"user": user, "agent": agent, "title": title}
        return Session(await self._worker.do(partial(self._store.session, name, create=create, **told)), self._worker)

    async def find(self, reference: str) -> tuple[Session, str]:
        """See `vmstore.Store.find`."""
        session, page = await self._worker.do(self._store.find, reference)
        return Session(session, self._worker), page

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
    ) -> Recorded:
        """See `vmstore.Store.record`."""
        told = partial(self._store.record, at=at, latency=latency, cost=cost, request_id=request_id)
        return await self._worker.do(told, _named(session), request, response)

    async def record_gap(self, session: str | Session, reason: str, *, at: int | None = None) -> Recorded:
        """See `vmstore.Store.record_gap`."""
        return await self._worker.do(self._store.record_gap, _named(session), reason, at=at)

    async def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        format: str | None = None,
        exact: bool = False,
        progress: Progress | None = None,
    ) -> Import:
        """See `vmstore.Store.import_file`."""
        told = partial(self._store.import_file, session=session, format=format, exact=exact, progress=progress)
        return await self._worker.do(told, path)

    async def export(
        self,
        out: str | os.PathLike[str] | BinaryIO,
        sessions: str | Iterable[str] | None = None,
        *,
        format: str = "jsonl",
        at: AsOf | None = None,
        progress: Progress | None = None,
        **moment: Any,
    ) -> Exported:
        """See `vmstore.Store.export`."""
        told = partial(self._store.export, format=format, at=at, progress=progress, **moment)
        return await self._worker.do(told, out, sessions)

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

    async def verify(self, progress: Progress | None = None) -> Verdict:
        """See `vmstore.Store.verify`."""
        return await self._worker.do(self._store.verify, progress)

    async def rebuild(self, view: str | None = None, progress: Progress | None = None) -> dict[str, int]:
        """See `vmstore.Store.rebuild`."""
        return await self._worker.do(self._store.rebuild, view, progress)


class Session:
    """One session of a store."""

    def __init__(self, session: sync_session.Session, worker: _Worker) -> None:
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

    async def pages(self, at: AsOf | None = None, **moment: Any) -> list[Page]:
        """See `vmstore.Session.pages`."""
        return await self._worker.do(self._session.pages, at, **moment)

    async def page(self, reference: str | int, at: AsOf | None = None, **moment: Any) -> Page:
        """See `vmstore.Session.page`."""
        return await self._worker.do(self._session.page, reference, at, **moment)

    async def content(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> bytes:
        """See `vmstore.Session.content`."""
        return await self._worker.do(partial(self._session.content, reference, at, level=level, **moment))

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

    async def messages(self, at: AsOf | None = None, **moment: Any) -> list[Any]:
        """See `vmstore.Session.messages`."""
        return await self._worker.do(self._session.messages, at, **moment)

    async def request(self, at: AsOf | None = None, **moment: Any) -> dict[str, Any]:
        """See `vmstore.Session.request`."""
        return await self._worker.do(self._session.request, at, **moment)

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

    async def batch(self, write: Callable[[Batch], T], *, at: int | None = None) -> T:
        """See `vmstore.Session.batch`; `write` is given the batch and adds to it, in the store's thread."""

        def work() -> T:
            with self._session.batch(at=at) as batch:
                return write(batch)

        return await self._worker.do(work)

    async def fork(self, name: str, at: AsOf | None = None, **moment: Any) -> Session:
        """See `vmstore.Session.fork`."""
        return Session(await self._worker.do(self._session.fork, name, at, **moment), self._worker)


class Context:
    """What the model saw at one call. What was read already is at hand; the rest is awaited, `pages` too."""

    def __init__(self, context: sync_context.Context, worker: _Worker) -> None:
        self._context = context
        self._worker = worker
        self.basis: Basis = context.basis
        self.fidelity = context.fidelity
        self.tokens = context.tokens
        self.tokens_reported = context.tokens_reported
        self.factor = context.factor
        self.model = context.model
        self.root = context.root
        self.page_ids = context.page_ids
        self.shown = context.shown

    async def pages(self) -> list[ContextPage]:
        """See `vmstore.Context.pages`."""
        return await self._worker.do(lambda: self._context.pages)

    async def contents(self) -> dict[str, bytes]:
        """See `vmstore.Context.contents`."""
        return await self._worker.do(self._context.contents)

    async def messages(self) -> list[Any]:
        """See `vmstore.Context.messages`."""
        return await self._worker.do(self._context.messages)

    async def request(self) -> dict[str, Any]:
        """See `vmstore.Context.request`."""
        return await self._worker.do(self._context.request)

    async def text(self) -> str:
        """See `vmstore.Context.text`."""
        return await self._worker.do(self._context.text)

    async def to_dict(self, *, messages: bool = False, render: bool = False) -> dict[str, Any]:
        """See `vmstore.Context.to_dict`."""
        return await self._worker.do(self._context.to_dict, messages=messages, render=render)


def _named(session: str | Session) -> str:
    return session.name if isinstance(session, Session) else session


def _some(entries: Iterable[Entry]) -> list[Entry]:
    return list(islice(entries, ENTRIES))


def _nothing() -> None:
    pass


def _close_opened(opening: Future[sync_store.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
