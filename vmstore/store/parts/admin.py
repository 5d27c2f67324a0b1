"""The care of an open store: packing, garbage, archives, rebuilding, and what can be read of its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Unpack

import apsw

from vmstore.core.aliases import Aliased, old_keywords_of_methods
from vmstore.core.page import Standing
from vmstore.core.redaction import policy_of
from vmstore.core.system.atomic_file import destroy_scratches
from vmstore.errors import InputError
from vmstore.log.port import Log
from vmstore.maintenance.columns import VIEW
from vmstore.maintenance.usage import usage
from vmstore.namespace.backends.port import sizes_of
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
from vmstore.store.host import StoreHost
from vmstore.views.projection import Progress

if TYPE_CHECKING:
    from vmstore.columns.page_table import PageTable
    from vmstore.namespace.effects import Agree
    from vmstore.store.live.live_session import Live
    from vmstore.store.session import Session
    from vmstore.store.sessions import Sessions
    from vmstore.vm.kernel.keywords import LiveSettings

GRACE_S = 3600.0
IDLE_HOURS = 24.0  # after which a session counts as over


@old_keywords_of_methods(grace="grace_s", older_than="older_than_s", at="at_us")
class Admin(Aliased):
    """Maintenance of a store: `store.admin`."""

    _aliases: ClassVar[Mapping[str, str]] = {
        "find": "_store.catalog.find_page|Store.catalog.find_page",
        "language": "_store.index.language|Store.index.language",
        "set_language": "_store.index.set_language|Store.index.set_language",
    }

    def __init__(self, store: StoreHost, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions
        self._ns = store._ns

    @property
    def log(self) -> Log:
        """The log, the only truth; of a region for looking alone."""
        return self._ns.let.lent_log

    @property
    def views(self) -> apsw.Connection:
        """The views' database, for looking; of a region a connection that writes nothing."""
        return self._ns.let.lent_views

    def follow(self) -> None:
        """Brings the views to the end of the log; every question does this first."""
        with self._ns.views_lock:
            self._ns.follow()

    # ---- space

    def compact(self, progress: Progress | None = None) -> CompactionReport:
        """Packs the contents of the log; others read and write meanwhile, and every answer stays the same.

        Much that is new is cut into column segments, where the extra `columns` is installed.
        """
        before = sizes_of(self._ns.place).log
        packed = self._ns.engine.log.compact(progress)
        cut = self._store._columns.grow(progress)
        return CompactionReport(packed.frames_before, packed.frames_after, before, sizes_of(self._ns.place).log, *cut)

    def publish_views(self) -> PublishedViews:
        """Keeps the folded views in the database, so that a new host begins with them and folds only what came since.

        An erasure removes them: publish again then. InputError where the views lie beside the log, as in a folder.
        """
        if (place := self._ns.let.place) is None:
            raise InputError("a store in memory has no other host to publish its views to", code="in-memory")
        with self._ns.lock, self._ns.engine.log.settled():
            self._ns.follow()
            return place.publish_views(self._ns.views)

    def collect_garbage(self, *, grace_s: float = GRACE_S, dry_run: bool = False) -> SweepReport:
        """Deletes files of large contents that no commit names, and what a killed import left, as a crash leaves them.

        `grace_s` spares what was written within so many seconds. `dry_run` deletes nothing.
        """
        log = self._ns.let.log if dry_run else self._ns.engine.log
        found = log.sweep(self._ns.clock.now() - round(grace_s * 1e6), dry=dry_run)
        if self._ns.let.cache is not None:
            found += destroy_scratches(self._ns.let.cache, dry=dry_run)
        return SweepReport(not dry_run, [str(stray.path) for stray in found], sum(stray.size for stray in found))

    def archive(
        self,
        sessions: str | Iterable[str] = (),
        *,
        older_than_s: float | None = None,
        grace_s: float = GRACE_S,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ArchiveReport:
        """Moves the contents of sessions to an archive file each, while others may read and write.

        Of the sessions named, or of those in which nothing happened for `older_than_s` seconds. One that was
        written to within the last `grace_s` seconds is left alone, or refused where it was named. `dry_run` only
        says what would move.
        """
        from vmstore.maintenance.archive import archive

        return archive(
            self._store, sessions, older_than_s=older_than_s, grace_s=grace_s, dry_run=dry_run, progress=progress
        )

    def unarchive(self, sessions: str | Iterable[str]) -> ArchiveReport:
        """Moves the contents of archived sessions back into the log, and deletes their archives."""
        from vmstore.maintenance.archive import unarchive

        return unarchive(self._store, sessions)

    def usage(self, progress: Progress | None = None) -> Usage:
        """Bytes on disk: every table, file and free page, and all contents by session and by kind."""
        with self._ns.views_lock:
            return usage(self._ns, progress)

    def close_idle(self, hours: float = IDLE_HOURS) -> list[str]:
        """Ends each active session in which nothing was written for so many hours, and says why; their names.

        As `close` does: where a session compacts itself, what was said is summed up. A later message takes it up.
        """
        from vmstore.store.close import idle_reason, is_idle

        if not isinstance(hours, int | float) or not hours > 0:
            raise InputError(f"{hours!r:.40} is no number of hours; give more than 0")
        names = [info.session for info in self._store.sessions() if info.status == Standing.ACTIVE.word]
        idle = [session for name in names if is_idle(session := self._store.session(name), hours)]
        for session in idle:
            session.close(reason=idle_reason(hours))
        return [session.name for session in idle]

    # ---- views and columns

    def rebuild(self, view: str | None = None, progress: Progress | None = None) -> dict[str, int]:
        """Forgets one view, or all, and folds the log again; the positions reached.

        `columns` are the column segments, `text` is the text index; with all they are made again where there are any.
        """
        from vmstore.search.place import TEXT

        columns = self._store._columns
        with self._ns.lock:
            if (access := self._ns.let.access) is not None:  # a reader whose grant ended learns of no region
                access.change()
            if view not in (VIEW, TEXT):
                self._ns.let.projection.rebuild(view, progress)
            positions = self._ns.let.projection.positions()
            if view == VIEW or (view is None and columns.usable):
                positions[VIEW] = columns.rebuild(progress)
            if view == TEXT or (view is None and self._ns.text_index_made is not None):
                positions[TEXT] = self._ns.rebuild_text(progress)
            return positions

    def page_table(self, sessions: str | Iterable[str] | Mapping[str, int | None] | None = None) -> PageTable:
        """The page table of sessions, by default all, as numpy arrays from column segments (the extra `columns`).

        A mapping says at which position each is asked of, None for its end.
        """
        return self._store._columns.page_table(sessions)

    def column_segments(self) -> Columns:
        """The column segments (the extra `columns`): Parquet files of all that the log holds, cut on first.

        Through a handle for reading they are as they were found, `behind` by so many commits.
        """
        return self._store._columns.report()

    # ---- other stores, health

    def merge(
        self, other: str | os.PathLike[str], *, dry_run: bool = False, agreed: Agree = False, key: Key | None = None,
        progress: Progress | None = None,
    ) -> MergeReport:  # fmt: skip
        """Brings every session of this namespace of another store into this one.

        A session that is not here comes whole; of one that both hold, what is missing here is appended; where both
        went on differently nothing of it is written, and the reason named. The other store is verified first and only
        read. What was erased there is erased here, if `agreed`. `key` is the store key of those that are encrypted.
        """
        from vmstore.transfer.merge import merge

        if (place := self._ns.let.place) is None:
            raise InputError("a store in memory has no files; merge a bundle of it with `import_file`")
        return merge(
            place.backend, other, namespace=self._ns.name, dry_run=dry_run, agreed=agreed, key=key, progress=progress
        )

    def doctor(self, *, full: bool = False, key: Key | None = None, progress: Progress | None = None) -> Health:
        """Checks this namespace, and names a remedy for each fault.

        The structure of the log, its chain and its seals are checked; with `full` all that `verify` checks.
        """
        from vmstore.maintenance.doctor import doctor

        if (place := self._ns.let.place) is None:
            raise InputError("a store in memory has no files; use `verify`", code="in-memory")
        return doctor(
            place.backend, namespace=self._ns.name, full=full, key=key or self._ns.store_key, progress=progress
        )

    # ---- sessions

    def redrive(
        self, source: str, name: str, *, progress: Progress | None = None, **settings: Unpack[LiveSettings]
    ) -> Live:
        """Copies a recorded session into a new live one: its messages are replayed to a kernel.

        `l0_tokens_max` is its budget; its other settings are those of `store.live_session`.
        """
        with self._ns.lock:
            return self._sessions.redrive(source, name, dict(settings), progress)

    def record_gap(
        self, session: str | Session, reason: str, *, at_us: int | None = None, redaction: str | None = None
    ) -> RecordedCall:
        """Notes that a call was made which could not be recorded, and why."""
        from vmstore.store.session import Session

        policy = None if redaction is None else policy_of(redaction)
        name = session.name if isinstance(session, Session) else session
        return self._store._recording.gap(name, reason, at=at_us, redaction=policy)

    def interrupt(self, thread: int | None = None) -> None:
        """Stops every query of this handle, or those that a thread asked: their callers get a QueryError.

        Any thread may call it; a thread is named by its `threading.get_ident()`.
        """
        if self._store._asker is not None:
            self._store._asker.interrupt(thread)
