"""The async twin of a store: opened, asked and written to by the tasks of one event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Unpack

import vmstore.store.store as sync_store
from vmstore.aio.admin import Admin
from vmstore.aio.docs import described_by
from vmstore.aio.memory import StoreMemory
from vmstore.aio.regions import Sharing
from vmstore.aio.result import Result
from vmstore.aio.session import Session
from vmstore.aio.store_parts import Catalog, SearchIndex
from vmstore.aio.trust import Trust
from vmstore.aio.twin import twin
from vmstore.aio.worker import Worker
from vmstore.core.aliases import Aliased, old_keywords_of_methods
from vmstore.core.asof import AsOf, Moment, When
from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.waits import WAIT_S, seconds
from vmstore.errors import InputError
from vmstore.namespace.backends.address import Address
from vmstore.namespace.reports import Backup, ExportReport, ImportReport, Info, Verdict
from vmstore.namespace.results import Entry, Hits, Page, RecordedCall, SessionInfo
from vmstore.prices.price_list import PriceList
from vmstore.views.projection import Progress
from vmstore.vmql.syntax.nodes import Statement

if TYPE_CHECKING:
    from vmstore.aio.live import Live
    from vmstore.aio.work.work import StoreWork
    from vmstore.embedders.embedder import Embedder
    from vmstore.namespace.effects import Agree
    from vmstore.namespace.encryption import Key
    from vmstore.seals.seal import Seal
    from vmstore.store.live.options import LiveOptions
    from vmstore.store.notes.exporter import NotesExport
    from vmstore.store.notes.importer import NotesImport
    from vmstore.vm.kernel.keywords import LiveSettings
    from vmstore.vm.kernel.settings import KernelSettings


ENTRIES = 200  # of a tail, fetched at once
TURN_S = 0.05  # that a tail waits at once, so that others have the store in between


def open(
    path: Address,
    mode: str = "rw",
    *,
    namespace: str = "default",
    key: Key | None = None,
    wait_s: float | None = WAIT_S,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    embedder: object = None,
    prices: object = None,
) -> Store:
    """A store to be opened: `async with open(path) as store`, or `store = await open(path)`.

    In mode 'rw' it is made where there is none, in mode 'r' nothing is written. With `key`, the file of a store key
    or an object that wraps and unwraps, it is an encrypted one. Another process that holds what a call needs is
    waited for `wait_s` seconds, then LockedError names it; None waits for as long as it holds it. `embedder` is what
    gives texts vectors, `prices` what models cost.
    """
    opens = partial(sync_store.open_store, path, mode, namespace=namespace, key=key, wait_s=wait_s)
    return Store(partial(opens, clock=clock, ids=ids, embedder=embedder, prices=prices))


def memory_store(
    *, clock: Clock | None = None, ids: IdSource | None = None, embedder: object = None, prices: object = None
) -> Store:
    """A store in memory, to be opened the same way."""
    return Store(partial(sync_store.memory_store, clock=clock, ids=ids, embedder=embedder, prices=prices))


@described_by(sync_store.Store)
@old_keywords_of_methods(at="at_us", latency="latency_us")
class Store(Aliased):
    """One namespace of a store. Any task of one event loop may use it."""

    _aliases: ClassVar[Mapping[str, str]] = sync_store.ALIASES

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
            raise InputError("the store is not open yet; use `async with`, or await it", code="not-open")
        return self._sync

    @property
    def admin(self) -> Admin:
        """See `vmstore.Store.admin`."""
        return Admin(self._store.admin, self._worker, self)

    @property
    def trust(self) -> Trust:
        """See `vmstore.Store.trust`."""
        return Trust(self._store.trust, self._worker)

    @property
    def sharing(self) -> Sharing[Store]:
        """See `vmstore.Store.sharing`."""
        return Sharing(self._store.sharing, self._worker, Store)

    @property
    def work(self) -> StoreWork:
        """See `vmstore.Store.work`."""
        from vmstore.aio.work.work import StoreWork

        return StoreWork(self._store.work, self._worker)

    @property
    def catalog(self) -> Catalog:
        """See `vmstore.Store.catalog`."""
        return Catalog(self._store.catalog, self._worker)

    @property
    def index(self) -> SearchIndex:
        """See `vmstore.Store.index`."""
        return SearchIndex(self._store.index, self._worker)

    @property
    def memory(self) -> StoreMemory:
        """See `vmstore.Store.memory`."""
        return StoreMemory(self._store.memory, self._worker)

    @property
    def folder(self) -> Path | None:
        """The namespace's directory; None in memory."""
        return self._store.folder

    async def close(self) -> None:
        """Closes the files after what was asked before; closing twice does nothing."""
        await self._worker.end(self._store.close if self._sync is not None else _nothing)

    async def sessions(
        self, *, user: str | None = None, agent: str | None = None, hidden: bool = False
    ) -> list[SessionInfo]:
        """See `vmstore.Store.sessions`."""
        return await self._worker.do(self._store.sessions, user=user, agent=agent, hidden=hidden)

    @property
    def prices(self) -> PriceList:
        """See `vmstore.Store.prices`."""
        return self._store.prices

    @prices.setter
    def prices(self, given: object) -> None:
        self._store.prices = given

    async def pages(
        self,
        at: When | None = None,
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
        **moment: Unpack[Moment],
    ) -> list[Page]:
        """See `vmstore.Store.pages`."""
        call_it = partial(self._store.pages, at, user=user, agent=agent, type=type, role=role, modality=modality)
        more = partial(
            call_it, tier=tier, level=level, tag=tag, actor=actor, importance_min=importance_min, dirty=dirty
        )
        since = partial(more, created_since=created_since, entered_since=entered_since, order_by=order_by)
        return await self._worker.do(partial(since, limit=limit, after=after, **moment))

    async def search(
        self, query: str, *, limit: int | None = 10, score: str | None = None, explain: bool = False
    ) -> Hits:
        """See `vmstore.Store.search`."""
        return await self._worker.do(partial(self._store.search, query, limit=limit, score=score, explain=explain))

    async def session(
        self, name: str, *, create: bool = False, user: str | None = None, agent: str | None = None,
        title: str | None = None, redaction: str | None = None, **live: Unpack[LiveOptions],
    ) -> Session:  # fmt: skip
        """See `vmstore.Store.session`."""
        call_it = partial(self._store.session, create=create, user=user, agent=agent, title=title, redaction=redaction)
        return twin(await self._worker.do(partial(call_it, name, **live)), self._worker)

    async def live_session(
        self, name: str, settings: LiveSettings | KernelSettings | None = None, *, user: str | None = None,
        agent: str | None = None, title: str | None = None, redaction: str | None = None,
        **options: Unpack[LiveOptions],
    ) -> Live:  # fmt: skip
        """See `vmstore.Store.live_session`."""
        from vmstore.aio.live import Live

        call_it = partial(self._store.live_session, user=user, agent=agent, title=title, redaction=redaction)
        return Live(await self._worker.do(partial(call_it, name, settings, **options)), self._worker)

    async def record(
        self,
        session: str | Session,
        request: dict[str, Any],
        response: Any = None,
        *,
        at_us: int | None = None,
        latency_us: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
        redaction: str | None = None,
        asked: dict[str, Any] | None = None,
        beside: dict[str, Any] | None = None,
    ) -> RecordedCall:
        """See `vmstore.Store.record`."""
        options: dict[str, Any] = {
            "at_us": at_us,
            "latency_us": latency_us,
            "cost": cost,
            "request_id": request_id,
            "redaction": redaction,
            "asked": asked,
            "beside": beside,
        }
        return await self._worker.do(partial(self._store.record, **options), _named(session), request, response)

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
    ) -> ImportReport:
        """See `vmstore.Store.import_file`."""
        options: dict[str, Any] = {
            "session": session,
            "format": format,
            "exact": exact,
            "redaction": redaction,
            "agreed": agreed,
            "uses": uses,
            "progress": progress,
        }
        return await self._worker.do(partial(self._store.import_file, **options), path)

    async def export(
        self,
        out: str | os.PathLike[str] | BinaryIO,
        sessions: str | Iterable[str] | None = None,
        *,
        format: str = "jsonl",
        at: When | None = None,
        exact: bool = False,
        redact: bool = True,
        progress: Progress | None = None,
        **moment: Unpack[Moment],
    ) -> ExportReport:
        """See `vmstore.Store.export`."""
        options: dict[str, Any] = {"format": format, "at": at, "exact": exact, "redact": redact, "progress": progress}
        return await self._worker.do(partial(self._store.export, **options, **moment), out, sessions)

    async def export_notes(
        self,
        folder: str | os.PathLike[str],
        sessions: Iterable[str] | None = None,
        *,
        types: Iterable[str] | None = None,
        redact: bool = True,
        overwrite: bool = False,
    ) -> NotesExport:
        """See `vmstore.Store.export_notes`."""
        options: dict[str, Any] = {"types": types, "redact": redact, "overwrite": overwrite}
        return await self._worker.do(partial(self._store.export_notes, folder, sessions, **options))

    async def import_notes(
        self, folder: str | os.PathLike[str], *, by: str | None = None, overwrite: bool = False
    ) -> NotesImport:
        """See `vmstore.Store.import_notes`."""
        return await self._worker.do(partial(self._store.import_notes, folder, by=by, overwrite=overwrite))

    async def query(
        self, text: str | Statement, /, *, session: str | None = None, params: Mapping[str, Any] | None = None,
        timeout_s: float | None = None, rows: int | None = None, memory: int | None = None, **named: Any,
    ) -> Result:  # fmt: skip
        """See `vmstore.Store.query`."""
        limits: dict[str, Any] = {"timeout_s": timeout_s, "rows": rows, "memory": memory}
        ask = partial(self._store.query, text, session=session, params=params, **limits, **named)
        return Result(await self._worker.do(ask), self._worker)

    async def sql(
        self, text: str, *, at: When | None = None, session: str | None = None, params: Mapping[str, Any] | None = None,
        timeout_s: float | None = 30.0, rows: int = 100_000, memory: int = 256 << 20, **moment: Unpack[Moment],
    ) -> Result:  # fmt: skip
        """See `vmstore.Store.sql`."""
        limits: dict[str, Any] = {"timeout_s": timeout_s, "rows": rows, "memory": memory}
        ask = partial(self._store.sql, text, at=at, session=session, params=params, **limits, **moment)
        return Result(await self._worker.do(ask), self._worker)

    async def tail(
        self, after: str | None = None, *, limit: int | None = None, wait_s: float = 0.0
    ) -> AsyncIterator[Entry]:
        """See `vmstore.Store.tail`; while it waits others have the store in between."""
        until = seconds() + wait_s
        while True:
            left_s, came = until - seconds(), False
            entries = self._store.tail(after, limit=limit, wait_s=max(0.0, min(left_s, TURN_S)))
            while some := await self._worker.do(_some, entries):
                came = True
                for entry in some:
                    yield entry
            if came or left_s <= 0:
                return

    @property
    def embedder(self) -> Embedder | None:
        """See `vmstore.Store.embedder`."""
        return self._store.embedder

    @embedder.setter
    def embedder(self, given: object) -> None:
        self._store.embedder = given

    async def info(self) -> Info:
        """See `vmstore.Store.info`."""
        return await self._worker.do(self._store.info)

    async def backup(self, to: str | os.PathLike[str], progress: Progress | None = None) -> Backup:
        """See `vmstore.Store.backup`."""
        return await self._worker.do(self._store.backup, to, progress)

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


def _named(session: str | Session) -> str:
    return session.name if isinstance(session, Session) else session


def _some(entries: Iterable[Entry]) -> list[Entry]:
    return list(islice(entries, ENTRIES))


def _nothing() -> None:
    pass


def _close_opened(opening: Future[sync_store.Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
