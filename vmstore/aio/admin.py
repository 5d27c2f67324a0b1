"""The async twin of the care of a store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from vmstore.aio.docs import described_by
from vmstore.aio.session import Session
from vmstore.aio.worker import Worker
from vmstore.core.aliases import Aliased, old_keywords_of_methods
from vmstore.namespace.effects import Agree
from vmstore.namespace.encryption import Key
from vmstore.namespace.reports import (
    ArchiveReport,
    Columns,
    CompactionReport,
    Health,
    MergeReport,
    PublishedViews,
    SweepReport,
    Usage,
)
from vmstore.namespace.results import RecordedCall
from vmstore.store.parts import admin as sync_admin
from vmstore.views.projection import Progress

GRACE_S = sync_admin.GRACE_S
IDLE_HOURS = sync_admin.IDLE_HOURS

if TYPE_CHECKING:
    from typing import Unpack

    from vmstore.aio.live import Live
    from vmstore.columns.page_table import PageTable
    from vmstore.vm.kernel.keywords import LiveSettings


@described_by(sync_admin.Admin)
@old_keywords_of_methods(grace="grace_s", older_than="older_than_s", at="at_us")
class Admin(Aliased):
    """See `vmstore.Admin`."""

    _aliases: ClassVar[Mapping[str, str]] = sync_admin.Admin._aliases

    def __init__(self, sync: sync_admin.Admin, worker: Worker, store: Aliased) -> None:
        self._sync = sync
        self._worker = worker
        self._store = store

    async def follow(self) -> None:
        """See `vmstore.Admin.follow`."""
        await self._worker.do(partial(self._sync.follow))

    async def compact(self, progress: Progress | None = None) -> CompactionReport:
        """See `vmstore.Admin.compact`."""
        return await self._worker.do(partial(self._sync.compact, progress))

    async def publish_views(self) -> PublishedViews:
        """See `vmstore.Admin.publish_views`."""
        return await self._worker.do(self._sync.publish_views)

    async def collect_garbage(self, *, grace_s: float = GRACE_S, dry_run: bool = False) -> SweepReport:
        """See `vmstore.Admin.collect_garbage`."""
        return await self._worker.do(partial(self._sync.collect_garbage, grace_s=grace_s, dry_run=dry_run))

    async def archive(
        self,
        sessions: str | Iterable[str] = (),
        *,
        older_than_s: float | None = None,
        grace_s: float = GRACE_S,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ArchiveReport:
        """See `vmstore.Admin.archive`."""
        return await self._worker.do(
            partial(
                self._sync.archive,
                sessions,
                older_than_s=older_than_s,
                grace_s=grace_s,
                dry_run=dry_run,
                progress=progress,
            )
        )

    async def unarchive(self, sessions: str | Iterable[str]) -> ArchiveReport:
        """See `vmstore.Admin.unarchive`."""
        return await self._worker.do(partial(self._sync.unarchive, sessions))

    async def usage(self, progress: Progress | None = None) -> Usage:
        """See `vmstore.Admin.usage`."""
        return await self._worker.do(partial(self._sync.usage, progress))

    async def close_idle(self, hours: float = IDLE_HOURS) -> list[str]:
        """See `vmstore.Admin.close_idle`."""
        return await self._worker.do(partial(self._sync.close_idle, hours))

    async def rebuild(self, view: str | None = None, progress: Progress | None = None) -> dict[str, int]:
        """See `vmstore.Admin.rebuild`."""
        return await self._worker.do(partial(self._sync.rebuild, view, progress))

    async def page_table(self, sessions: str | Iterable[str] | Mapping[str, int | None] | None = None) -> PageTable:
        """See `vmstore.Admin.page_table`."""
        return await self._worker.do(partial(self._sync.page_table, sessions))

    async def column_segments(self) -> Columns:
        """See `vmstore.Admin.column_segments`."""
        return await self._worker.do(partial(self._sync.column_segments))

    async def merge(
        self,
        other: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        agreed: Agree = False,
        key: Key | None = None,
        progress: Progress | None = None,
    ) -> MergeReport:
        """See `vmstore.Admin.merge`."""
        return await self._worker.do(
            partial(self._sync.merge, other, dry_run=dry_run, agreed=agreed, key=key, progress=progress)
        )

    async def doctor(self, *, full: bool = False, key: Key | None = None, progress: Progress | None = None) -> Health:
        """See `vmstore.Admin.doctor`."""
        return await self._worker.do(partial(self._sync.doctor, full=full, key=key, progress=progress))

    async def redrive(
        self, source: str, name: str, *, progress: Progress | None = None, **settings: Unpack[LiveSettings]
    ) -> Live:
        """See `vmstore.Admin.redrive`."""
        from vmstore.aio.live import Live

        return Live(
            await self._worker.do(partial(self._sync.redrive, source, name, progress=progress, **settings)),
            self._worker,
        )

    async def record_gap(
        self, session: str | Session, reason: str, *, at_us: int | None = None, redaction: str | None = None
    ) -> RecordedCall:
        """See `vmstore.Admin.record_gap`."""
        name = session.name if isinstance(session, Session) else session
        return await self._worker.do(partial(self._sync.record_gap, name, reason, at_us=at_us, redaction=redaction))

    async def interrupt(self, thread: int | None = None) -> None:
        """See `vmstore.Admin.interrupt`; at once, whatever the thread is doing."""
        self._sync.interrupt(thread)
