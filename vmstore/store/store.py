"""The public object: composes what a namespace offers; decides nothing itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from vmstore.capture.importer import Importer
from vmstore.capture.sources import read
from vmstore.core.clock import Clock, IdSource, SystemClock, SystemIds
from vmstore.core.mutation import Unknown, decode
from vmstore.core.reference import page_name, page_position, parse, resolve
from vmstore.engine.gate import Opening
from vmstore.engine.verify import Finding, verify
from vmstore.errors import InputError, UnknownError
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.store.answers import (
    Entry,
    Import,
    Imported,
    Info,
    LineProblem,
    Problem,
    Recorded,
    SessionInfo,
    Verdict,
)
from vmstore.store.folder import LOG, find, sizes
from vmstore.store.namespace import Namespace, session_name
from vmstore.store.recording import Recording
from vmstore.store.session import Session
from vmstore.store.viewfile import open_views
from vmstore.views.projection import Progress, Projection


class Store:
    """One namespace of a store. Close it, or use it in a `with`; any thread may use it."""

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace
        self._recording = Recording(namespace)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the files; closing twice does nothing."""
        self._ns.close()

    @property
    def log(self) -> Log:
        """The log, the only truth."""
        return self._ns.log

    @property
    def views(self) -> apsw.Connection:
        """The views' database, for looking."""
        return self._ns.views

    @property
    def folder(self) -> Path | None:
        """The namespace's directory; None in memory."""
        return self._ns.folder

    def follow(self) -> None:
        """Brings the views to the end of the log; every question does this first."""
        with self._ns.lock:
            self._ns.follow()

    # ---- sessions

    def sessions(self, *, hidden: bool = False) -> list[SessionInfo]:
        """Every session by name; those of imports not yet complete only where `hidden` says so."""
        with self._ns.asking():
            rows = self._ns.views.execute("SELECT session FROM sessions WHERE hidden <= ? ORDER BY name", (hidden,))
            keys: list[Any] = rows.fetchall()
            return [self._ns.session_info(key) for (key,) in keys]

    def session(
        self,
        name: str,
        *,
        create: bool = False,
        user: str | None = None,
        agent: str | None = None,
        title: str | None = None,
    ) -> Session:
        """The session of a name; raises UnknownError naming the nearest, unless `create` opens it.

        `user`, `agent` and `title` are told to a session at its beginning and stay.
        """
        with self._ns.lock:
            key = self._ns.key(session_name(name))
            if key is None and create:
                told = {"user": user, "agent": agent, "title": title}
                opening = Opening(name, {word: text for word, text in told.items() if text is not None})
                key = self._ns.retried(lambda: self._opened(opening))
            if key is None:
                names = [info.session for info in self.sessions()]
                raise UnknownError(f"there is no session {name!r}; {self._ns.nearest(name, names)}")
            return Session(self._ns, self._recording, key, name)

    def _opened(self, opening: Opening) -> int:
        """The key of a session, opened where nobody did."""
        key = self._ns.key(opening.name)
        if key is None:
            now = self._ns.clock.now()
            key = self._ns.begin(opening, now).commit(now)[-1].session
            self._ns.follow()
        return key

    def find(self, reference: str) -> tuple[Session, str]:
        """The session and page that a reference is an unambiguous tail of: `p17`, `s1/p17`, `vm://…`.

        Raises UnknownError naming the nearest page, or the pages it could be.
        """
        told = parse(reference)
        with self._ns.asking():
            position = page_position(told.page)
            hits = self._pages("(p.page = ? OR p.hint = ?)", (-1 if position is None else position, told.page))
            name = resolve(told, hits or self._pages("p.page > ?", (0,)))
            return self.session(name[1]), name[2]

    def _pages(self, condition: str, arguments: tuple[Any, ...]) -> list[tuple[str, str, str]]:
        """Pages by namespace, session and each of their names."""
        rows: list[Any] = self._ns.views.execute(
            "SELECT s.name, p.page, p.hint FROM pages p JOIN sessions s ON s.session = p.session"
            f" WHERE s.hidden = 0 AND {condition}",
            arguments,
        ).fetchall()
        names = [(self._ns.name, session, page_name(page)) for session, page, _ in rows]
        return names + [(self._ns.name, session, hint) for session, _, hint in rows if hint]

    # ---- recording

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
    ) -> Recorded:
        """Records one call: the request as it was sent, the answer as it came.

        `session` is a name, opened at first use, or a session. `response` is the provider's, a
        list of its stream's parts, an exception, or None where the call was aborted. `at` is in
        microseconds since 1970 (default now), `latency` in microseconds, `cost` in dollars. The
        same `request_id` again returns the first answer.
        """
        with self._ns.lock:
            return self._recording.record(
                _named(session),
                request,
                response,
                at=at,
                latency=latency,
                cost=cost,
                request_id=request_id,
            )

    def record_gap(self, session: str | Session, reason: str, *, at: int | None = None) -> Recorded:
        """Notes that a call was made which could not be recorded, and why."""

        with self._ns.lock:
            return self._recording.gap(_named(session), reason, at=at)

    # ---- importing

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        format: str | None = None,
        progress: Progress | None = None,
    ) -> Import:
        """Imports a file somebody's agent wrote; its format is detected unless given.

        The same file again changes nothing, a grown one adds its new part. Raises InputError
        before anything is written where the file cannot be read at all.
        """
        file = Path(path)
        reading = read(file, format)
        with self._ns.lock:
            taken = Importer(self._ns.engine, reading, file, None if session is None else session_name(session)).run(
                progress
            )
            self._recording.forget()
            self._ns.follow()
            infos = [self._ns.session_info(one.session) for one in taken]
        return Import(
            sessions=[_imported(info, reading.format) for info in infos],
            new=sum(one.new for one in taken),
            problems=[LineProblem(*problem) for one in taken for problem in one.problems],
            torn=None if reading.torn is None else reading.torn.line,
        )

    # ---- tails

    def tail(self, after: str | None = None, *, limit: int | None = None) -> Iterator[Entry]:
        """Mutations in the order they were logged, from the start or after a cursor, up to now."""
        ordinal, skip = _cursor(after)
        if ordinal > self._ns.log.ordinal:
            raise UnknownError(f"cursor {after!r} lies beyond the log, which ends at {self._ns.log.ordinal}")
        given = 0
        while limit is None or given < limit:
            with self._ns.asking() as end:
                commits = [c for c in self._ns.log.tail(max(ordinal - 1, 0), 100) if c.ordinal <= end]
                names = self._names({c.session for c in commits})
            if not commits:
                return
            for commit in commits:
                if commit.ordinal < ordinal:
                    continue
                for index, mutation in enumerate(decode(commit.body)):
                    if commit.ordinal == ordinal and index < skip:
                        continue
                    if limit is not None and given >= limit:
                        return
                    given += 1
                    yield Entry(
                        cursor=f"{commit.ordinal}.{index + 1}",
                        session=names[commit.session],
                        position=commit.first + index,
                        kind=mutation.kind,
                        at=commit.at,
                        logged_at=commit.logged_at,
                        mutation=None if isinstance(mutation, Unknown) else msgspec.structs.asdict(mutation),
                    )
            ordinal, skip = commits[-1].ordinal + 1, 0

    def _names(self, sessions: set[int]) -> dict[int, str]:
        sql = "SELECT name FROM sessions WHERE session = ?"
        return {session: self._ns.views.execute(sql, (session,)).get for session in sessions}

    # ---- keeping house

    def info(self) -> Info:
        """What the namespace holds and how large its parts are."""
        with self._ns.asking():
            sessions, commits, mutations, pages = self._ns.views.execute(
                "SELECT coalesce(sum(hidden = 0), 0), coalesce(sum(commits), 0), coalesce(sum(mutations), 0),"
                " coalesce(sum(pages), 0) FROM sessions"
            ).get
            log, views, blobs = sizes(self._ns.folder)
            positions = self._ns.projection.positions()
            return Info(sessions, commits, mutations, pages, log, views, blobs, positions)

    def verify(self, progress: Progress | None = None, *, views: bool = True, rules: bool | None = None) -> Verdict:
        """Checks every hash of the log; every view against a fresh fold, and every rule, unless told not to.

        The rules are left out where the views are, unless they are asked for.
        """
        rules = views if rules is None else rules
        with self._ns.lock:
            problems: list[Finding] = []
            try:
                if views:
                    self._ns.follow()
            except Exception as error:  # the views could not be folded: the log check says why
                problems.append(Finding("views", "views", f"{type(error).__name__}: {error}"))
            counts, found = verify(self._ns.log, self._ns.projection, progress, views=views, rules=rules)
            problems = found + [p for p in problems if not found]
            return Verdict(not problems, *counts, [Problem(*p) for p in problems])

    def rebuild(self, view: str | None = None, progress: Progress | None = None) -> dict[str, int]:
        """Forgets one view, or all, and folds the log again; the positions reached."""
        with self._ns.lock:
            self._ns.projection.rebuild(view, progress)
            return self._ns.projection.positions()


def open_store(
    path: str | os.PathLike[str],
    mode: str = "rw",
    *,
    namespace: str = "default",
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Store:
    """Opens a store; in mode 'rw' it is made where there is none, in mode 'r' nothing is written."""
    if mode not in ("r", "rw"):
        raise InputError(f"mode {mode!r} is none of 'r' (read) and 'rw' (read and write)")
    readonly = mode == "r"
    folder = find(Path(path), namespace, create=not readonly)
    log = SqliteLog(folder / LOG, readonly=readonly)
    try:
        projection = open_views(folder, log, readonly=readonly)
    except BaseException:
        log.close()
        raise
    return Store(
        Namespace(
            log,
            projection,
            folder=folder,
            readonly=readonly,
            clock=clock or SystemClock(),
            ids=ids or SystemIds(),
        )
    )


def memory_store(*, clock: Clock | None = None, ids: IdSource | None = None) -> Store:
    """A store that lives in memory and ends with the process."""
    log = MemoryLog()
    projection = Projection(log, apsw.Connection(":memory:"))
    return Store(
        Namespace(log, projection, folder=None, readonly=False, clock=clock or SystemClock(), ids=ids or SystemIds())
    )


def _imported(info: SessionInfo, format: str) -> Imported:
    return Imported(
        info.session,
        format,
        info.fidelity,
        info.turns,
        info.calls,
        info.messages,
        info.pages,
        info.mutations,
        info.raw,
        info.position,
    )


def _named(session: str | Session) -> str:
    return session.name if isinstance(session, Session) else session


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, 0
    ordinal, _, index = after.partition(".")
    if not (ordinal.isdecimal() and index.isdecimal()):
        raise InputError(f"{after!r} is no cursor; pass one that a tail gave")
    return int(ordinal), int(index)
