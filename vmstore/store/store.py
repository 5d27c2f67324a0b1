"""The public object: composes what a namespace offers; decides nothing itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, overload

import apsw

from vmstore.core.asof import AsOf, one_moment
from vmstore.core.clock import Clock, IdSource, SystemClock, SystemIds
from vmstore.core.redaction import policy_of
from vmstore.core.system.atomic_file import destroy_scratches
from vmstore.core.system.file_descriptors import named
from vmstore.core.system.waits import WAIT_S
from vmstore.erasure.resume import open_namespace
from vmstore.errors import InputError
from vmstore.log.port import Log
from vmstore.maintenance.backup import backup
from vmstore.maintenance.columns import VIEW, ColumnStore
from vmstore.maintenance.usage import info, usage
from vmstore.maintenance.verify import verdict_on
from vmstore.namespace.encryption import Key
from vmstore.namespace.folder import sizes
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.open import memory_namespace
from vmstore.namespace.reports import Backup, Columns, Compacted, Exported, Import, Info, Swept, Usage, Verdict
from vmstore.namespace.resolve import page_named
from vmstore.namespace.results import Entry, Hit, Page, Recorded, SessionInfo
from vmstore.shares.regions import open_region
from vmstore.store.reads.page_query import Wanted
from vmstore.store.reads.pages_across import Sought, pages_across, sessions_of
from vmstore.store.reads.search import everywhere, search
from vmstore.store.reads.tail import tail
from vmstore.store.session import Session
from vmstore.store.sessions import Sessions
from vmstore.views.projection import Progress

if TYPE_CHECKING:
    from vmstore.columns.page_table import PageTable
    from vmstore.namespace.effects import Agree
    from vmstore.seals.seal import Seal
    from vmstore.store.live.live_session import Live
    from vmstore.store.recorder import Recording
    from vmstore.vmql.execution.engine import Asker
    from vmstore.vmql.execution.result import Result
    from vmstore.vmql.syntax.nodes import Statement

GRACE_S = 3600.0


class Store:
    """One namespace of a store. Close it, or use it in a `with`; any thread may use it."""

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace
        self._columns = ColumnStore(namespace)
        self._sessions = Sessions(namespace, lambda: self._recording)
        self._asker: Asker | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the files; closing twice does nothing."""
        with self._ns.lock:
            self._columns.close()
        self._ns.close()

    @property
    def log(self) -> Log:
        """The log, the only truth; of a region for looking alone."""
        return self._ns.let.lent_log

    @property
    def views(self) -> apsw.Connection:
        """The views' database, for looking; of a region a connection that writes nothing."""
        return self._ns.let.lent_views

    @property
    def folder(self) -> Path | None:
        """The namespace's directory; None in memory."""
        return self._ns.folder

    def follow(self) -> None:
        """Brings the views to the end of the log; every question does this first."""
        with self._ns.views_lock:
            self._ns.follow()

    # ---- sessions

    def sessions(self, *, user: str | None = None, agent: str | None = None, hidden: bool = False) -> list[SessionInfo]:
        """Every session by name, or those of a user or an agent; where `hidden`, incomplete imports and its own too."""
        with self._ns.asking():
            keys = sessions_of(self._ns, Sought(user, agent), hidden=hidden)
            return [self._ns.session_info(key) for key, _ in keys]

    def pages(
        self, at: AsOf | None = None, *, user: str | None = None, agent: str | None = None, type: str | None = None,
        role: str | None = None, modality: str | None = None, tier: int | str | None = None, level: int | None = None,
        tag: str | None = None, actor: str | None = None, importance_min: float | None = None,
        dirty: bool | None = None, created_since: AsOf | None = None, entered_since: AsOf | None = None,
        order_by: str = "position", limit: int | None = None, after: str | None = None, **moment: Any,
    ) -> list[Page]:  # fmt: skip
        """The pages of all sessions, or of a user's or an agent's, each as the session that made it has it.

        The choices are those of `Session.pages`, the moment a `time` or a `logged_time`. By position
        session comes after session in the order of their names; `after` names the last page of an
        answer, as `s1/p17`.
        """
        wanted = Wanted(
            type, role, modality, tier, level, tag, actor, importance_min, dirty, created_since, entered_since,
            order_by, limit,
        )  # fmt: skip
        when = one_moment(at, moment)
        with self._ns.asking():
            return pages_across(self._ns, when, wanted, Sought(user, agent), after)

    def search(self, query: str, *, limit: int | None = 10) -> list[Hit]:
        """The pages of all sessions that hold words of a query, best first by BM25, each by who wrote it."""
        with self._ns.asking():
            return search(self._ns, everywhere(self._ns), query, limit)

    @overload
    def session(self, name: str, *, l0_tokens_max: int, **told: Any) -> Live: ...
    @overload
    def session(
        self, name: str, *, create: bool = False, user: str | None = None, agent: str | None = None,
        title: str | None = None, redaction: str | None = None,
    ) -> Session: ...  # fmt: skip
    def session(
        self, name: str, *, create: bool = False, user: str | None = None, agent: str | None = None,
        title: str | None = None, redaction: str | None = None, **live: Any,
    ) -> Session:  # fmt: skip
        """The session of a name; raises UnknownError naming the nearest, unless `create` opens it.

        `user`, `agent` and `title` are told to a session at its beginning and stay; `redaction` (off,
        mask or refuse: specs/redaction.md) holds from here on, and in its forks. With `l0_tokens_max`,
        its budget, it manages its memory, and is opened where there is none of the name: `system` and
        the schemas of `tools` then stand before all else, and the other settings of `specs/kernel.md`
        may be given too. `compressor` and `finder` are callbacks, asked for at most
        `callback_timeout_s`; they work through this handle alone, and what they say is logged.
        """
        writes = create or live or redaction is not None
        with self._ns.lock if writes else self._ns.views_lock:
            told = {"user": user, "agent": agent, "title": title}
            return self._sessions.find(name, create=create, told=told, live=live, redaction=redaction)

    def redrive(self, source: str, name: str, *, progress: Progress | None = None, **settings: Any) -> Live:
        """Says all of a session again to a new one that manages its memory (`l0_tokens_max` and other settings)."""
        with self._ns.lock:
            return self._sessions.redrive(source, name, settings, progress)

    def find(self, reference: str) -> tuple[Session, str]:
        """The session and page that a reference is an unambiguous tail of: `p17`, `s1/p17`, `vm://…`.

        Raises UnknownError naming the nearest page, or the pages it could be.
        """
        with self._ns.asking():
            session, page = page_named(self._ns, reference)
            return self.session(session), page

    def region(self, name: str, *, user: str | None = None, session: str | None = None) -> Store:
        """Another namespace of the store, as far as it is shared with this one, a user or a session of it."""
        return Store(open_region(self._ns, name, user=user, session=session))

    # ---- querying

    def query(self, text: str | Statement, *, session: str | None = None, **params: Any) -> Result:
        """Answers a VMQL statement, a text or one parsed: an iterable of tuples with its `columns` and its `basis`.

        `session` is asked where the text names none; `params` are the values of its `$names`.
        Raises QueryError, which points at what is wrong with the text.
        """
        if self._asker is None:
            with named():
                from vmstore.store.query_host import asker

            self._asker = asker(self._ns, self.session, self.verify, self._columns)
        return self._asker.ask(text, session=session, params=params)

    def interrupt(self, thread: int | None = None) -> None:
        """Stops every query of this handle, or those that a thread asked: whoever asks or takes rows gets a QueryError.

        Any thread may call it; a thread is named by its `threading.get_ident()`.
        """
        if self._asker is not None:
            self._asker.interrupt(thread)

    # ---- recording

    @cached_property
    def _recording(self) -> Recording:
        """What takes calls in; loaded with the first one."""
        with named():
            from vmstore.store.recorder import Recording

        return Recording(self._ns)

    def record(
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
        """Records one call: the request as it was sent, the answer as it came.

        `session` is a name, opened at first use, or a session. `response` is the provider's, a
        list of its stream's parts, an exception, or None where the call was aborted. `at` is in
        microseconds since 1970 (default now), `latency` in microseconds, `cost` in dollars. The
        same `request_id` again returns the first answer; `redaction` is as in `session`.
        """
        told: dict[str, Any] = {"at": at, "latency": latency, "cost": cost, "request_id": request_id}
        policy = None if redaction is None else policy_of(redaction)
        return self._recording.record(_named(session), request, response, **told, redaction=policy)

    def record_gap(
        self, session: str | Session, reason: str, *, at: int | None = None, redaction: str | None = None
    ) -> Recorded:
        """Notes that a call was made which could not be recorded, and why."""
        policy = None if redaction is None else policy_of(redaction)
        return self._recording.gap(_named(session), reason, at=at, redaction=policy)

    # ---- importing

    def import_file(
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
        """Imports a file somebody's agent wrote, or a bundle; its format is detected unless given.

        The same file again changes nothing, a grown one adds its new part. Raises InputError
        before anything is written where the file cannot be read at all. A bundle's sessions become
        new ones, or, where `exact`, the very same with their positions, salts and hashes. What is secret
        in another file is masked or refused by `redaction`, by default as the sessions there are have it.
        An exact bundle that would erase here, or change how a session here works, raises RefusedError
        unless it was `agreed` to. With `uses` it is read once more, and what each call used of the pages and
        what was said is about are logged.
        """
        from vmstore.capture.importers.formats import read
        from vmstore.transfer.bundle_import import is_bundle
        from vmstore.transfer.imports import import_source
        from vmstore.transfer.sessions import BUNDLE, import_bundle

        file = Path(path)
        if format == BUNDLE or (format is None and is_bundle(file)):
            if redaction is not None or uses:
                word = "uses" if redaction is None else "redaction"
                raise InputError(f"{file} is a bundle, which is taken in as it was exported; leave {word} out")
            with self._ns.lock:
                self._recording.forget()
                name = None if session is None else session_name(session)
                return import_bundle(self._ns, file, name=name, exact=exact, progress=progress, agreed=agreed)
        policy = None if redaction is None else policy_of(redaction)
        if exact:
            raise InputError(f"{file} is no vmstore bundle, and only those can be taken in exactly; leave exact out")
        reading = read(file, format)
        with self._ns.lock:
            self._recording.forget()
            return import_source(self._ns, reading, file, name=session, progress=progress, redaction=policy, uses=uses)

    # ---- handing on

    def export(
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
        """Exports sessions (all by default) up to a moment, with the past that forks among them share.

        `out` is a path where nothing is yet, which appears when it is whole, or, for jsonl, a binary
        stream. `format` is jsonl (a bundle, see `import_file`), parquet or sqlite. What is secret is
        masked; a bundle keeps it, and its hashes, only where `exact`, the others where not `redact`.
        """
        from vmstore.transfer.sessions import export, portions_of

        when = one_moment(at, moment)
        target = Path(out) if isinstance(out, str | os.PathLike) else out
        with self._ns.views_lock:
            names = [sessions] if isinstance(sessions, str) else sessions
            chosen = [info.session for info in self.sessions()] if names is None else list(names)
            portions = portions_of(self._ns, chosen, when)
        if exact and format != "jsonl":
            raise InputError(f"only a bundle can be exact, and {format} is none; leave exact out")
        return export(self._ns, target, portions, format, progress, hide=redact and not exact)

    def usage(self, progress: Progress | None = None) -> Usage:
        """Where the bytes are: every table, file and free page, and all contents by session and by kind."""
        with self._ns.views_lock:
            return usage(self._ns, progress)

    def backup(self, to: str | os.PathLike[str], progress: Progress | None = None) -> Backup:
        """Copies this namespace to a new folder, verified, while others may write; see `vmstore.backup`."""
        if (folder := self._ns.let.folder) is None:
            raise InputError("a store in memory has no files to back up; export it")
        return backup(folder.parent, to, namespace=self._ns.name, key=self._ns.store_key, progress=progress)

    # ---- columns and tails

    def page_table(self, sessions: str | Iterable[str] | Mapping[str, int | None] | None = None) -> PageTable:
        """The page table of sessions, by default all, as numpy arrays from column segments (the extra `columns`).

        A mapping says at which position each is asked of, None for its end.
        """
        return self._columns.page_table(sessions)

    def columns(self) -> Columns:
        """The column segments (the extra `columns`): Parquet files of all that the log holds, cut on first.

        Through a handle for reading they are as they were found, `behind` by so many commits.
        """
        return self._columns.told()

    def tail(self, after: str | None = None, *, limit: int | None = None) -> Iterator[Entry]:
        """Mutations in the order they were logged, from the start or after a cursor, up to now."""
        return tail(self._ns, after, limit)

    # ---- keeping house

    def info(self) -> Info:
        """What the namespace holds and how large its parts are."""
        return info(self._ns)

    def verify(
        self, progress: Progress | None = None, *, views: bool = True, rules: bool | None = None,
        seals: Sequence[Seal] = (),
    ) -> Verdict:  # fmt: skip
        """Checks every hash of the log; every view against a fresh fold, and every rule, unless told not to.

        The rules are left out where the views are, unless asked for; `seals` say what the log must hold.
        """
        every = views if rules is None else rules
        return verdict_on(self._ns.let, self._columns, progress, views=views, rules=every, seals=seals)

    def compact(self, progress: Progress | None = None) -> Compacted:
        """Packs the contents of the log; others read and write meanwhile, and every answer stays the same.

        Much that is new is cut into column segments, where the extra `columns` is installed.
        """
        before = sizes(self._ns.folder)[0]
        packed = self._ns.engine.log.compact(progress)
        cut = self._columns.grow(progress)
        return Compacted(packed.frames_before, packed.frames_after, before, sizes(self._ns.folder)[0], *cut)

    def sweep(self, *, grace: float = GRACE_S, dry_run: bool = False) -> Swept:
        """Deletes files of large contents that no commit names, and what a killed import left, as a crash leaves them.

        `grace` in seconds spares what was written lately. `dry_run` deletes nothing.
        """
        log = self._ns.let.log if dry_run else self._ns.engine.log
        found = log.sweep(self._ns.clock.now() - round(grace * 1e6), dry=dry_run)
        if self._ns.let.folder is not None:
            found += destroy_scratches(self._ns.let.folder, dry=dry_run)
        return Swept(not dry_run, [str(stray.path) for stray in found], sum(stray.size for stray in found))

    def rebuild(self, view: str | None = None, progress: Progress | None = None) -> dict[str, int]:
        """Forgets one view, or all, and folds the log again; the positions reached.

        `columns` are the column segments; with all they are cut again where there are any.
        """
        with self._ns.lock:
            if (access := self._ns.let.access) is not None:  # who may read no more is told of no region
                access.change()
            if view != VIEW:
                self._ns.let.projection.rebuild(view, progress)
            positions = self._ns.let.projection.positions()
            if view == VIEW or (view is None and self._columns.usable):
                positions[VIEW] = self._columns.rebuild(progress)
            return positions


def open_store(
    path: str | os.PathLike[str], mode: str = "rw", *, namespace: str = "default", key: Key | None = None,
    wait_s: float | None = WAIT_S, clock: Clock | None = None, ids: IdSource | None = None,
) -> Store:  # fmt: skip
    """Opens a store; in mode 'rw' it is made where there is none, in mode 'r' nothing is written.

    With `key`, the file of a store key or an object that wraps and unwraps, it is an encrypted one.
    Another process that holds what a call needs is waited for `wait_s` seconds, then LockedError names
    it; None waits for as long as it holds it.
    """
    return Store(open_namespace(Path(path), mode, namespace, clock or SystemClock(), ids or SystemIds(), key, wait_s))


def memory_store(*, clock: Clock | None = None, ids: IdSource | None = None) -> Store:
    """A store that lives in memory and ends with the process."""
    return Store(memory_namespace(clock or SystemClock(), ids or SystemIds()))


def _named(session: str | Session) -> str:
    return session.name if isinstance(session, Session) else session
