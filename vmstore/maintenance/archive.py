"""Archives: the contents of sessions that rest, moved to one file each, and back.

    agent.vms/default/archive/<uid of the session>.archive

Commits stay in the log, so views, chains, seals, proofs and questions stay as they are; what a fold
reads, names and labels, stays there too. Contents are read from the file when somebody asks.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from vmstore.cold.place import cold_address
from vmstore.core.aliases import old_keywords
from vmstore.core.mutation import decode
from vmstore.core.page import Origin
from vmstore.errors import InputError, OvertakenError, RefusedError, UnknownError
from vmstore.log.archive.mover import CellRun, runs_of
from vmstore.log.cell_reader import key_under
from vmstore.log.commit import NO_REQUEST
from vmstore.log.port import Progress
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.publish import publish
from vmstore.namespace.backends.port import directory_of
from vmstore.namespace.folder import ARCHIVE, BLOBS, LOG
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import ArchivedSession, ArchiveReport, SkippedSession
from vmstore.views.branch import Branch
from vmstore.views.cell_resolver import READ
from vmstore.views.erased_cells import Erasures
from vmstore.views.log_reader import LogReader
from vmstore.views.selection import Portion, commits_as_they_lie, select, whole

GRACE_S = 3600.0


class Archivable(Protocol):
    """The part of a store that archiving needs."""

    _ns: Namespace


class _Chosen(NamedTuple):
    """A session to be archived: its commits and those it inherits, and where its cells lie and will lie."""

    key: int
    uid: bytes
    name: str
    portions: list[Portion]
    runs: list[CellRun]


@old_keywords(older_than="older_than_s", grace="grace_s")
def archive(
    store: Archivable,
    sessions: str | Iterable[str] = (),
    *,
    older_than_s: float | None = None,
    grace_s: float = GRACE_S,
    to: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ArchiveReport:
    """Moves the contents of sessions to an archive each, while others may read and write.

    With `to`, the address of a cold tier, they are published there and leave this disk: a question about them
    fetches the archive, and `unarchive` brings them back.

    Of the sessions named, or of those in which nothing happened for `older_than_s` seconds. One that
    was written to within the last `grace_s` seconds counts as open: it is refused, or left alone where
    it was not named. `dry_run` only says what would move. A session that is written to afterwards
    grows in the log; archived again, that moves too.
    """
    ns, log = store._ns, _log(store, dry_run)
    names = [sessions] if isinstance(sessions, str) else list(sessions)
    if bool(names) == (older_than_s is not None):
        raise InputError(
            "name the sessions to archive, or say since when nothing happened in them, and not both",
            code="which-sessions",
        )
    before = _bytes(ns)
    with ns.asking():
        keys, skipped = _keys(ns, names, older_than_s, grace_s)
        keep = _folded(ns, {key for key, _ in keys})
        chosen = [_chosen(ns, key, name) for key, name in keys]
    moved = []
    for nth, session in enumerate(chosen):
        left = _left(log, session.runs)
        if not left:
            skipped.append(SkippedSession(session.name, "all of it is archived already"))
            continue
        path = log.archives.path(session.uid)
        size = 0
        if not dry_run:
            with log.archives.alone():
                _write(log, session)
                size = _move(log, session, keep, _share(progress, nth, len(chosen)))
            _forget(ns, session)
        moved.append(ArchivedSession(session.name, str(path), left, size, path.stat().st_size if path.exists() else 0))
    there = None if to is None else _left_to(store, log, chosen, to, dry_run)
    return ArchiveReport(not dry_run, moved, skipped, before, _bytes(ns), there)


def _left_to(
    store: Archivable, log: SqliteLog, chosen: Sequence[_Chosen], to: str | os.PathLike[str], dry_run: bool
) -> str:
    """Publishes archived sessions, and leaves their contents to the tier; its address."""
    address = cold_address(to)
    publish(store, to, [session.name for session in chosen], dry_run=dry_run)
    tier = address.tier(store._ns.name)
    there = {} if dry_run else {session.uid: session for session in tier.manifest().manifest.sessions}
    for session in () if dry_run else chosen:
        stored = there[session.uid.hex()].archive
        with log.archives.alone():
            found = tier.objects.head(stored.name)
            if log.archives.path(session.uid).exists() and found is not None and found.size == stored.size:
                log.archives.leave(session.uid, address.objects)
    return tier.address


def unarchive(store: Archivable, sessions: str | Iterable[str]) -> ArchiveReport:
    """Moves the contents of archived sessions back into the log, and deletes their archives."""
    ns, log = store._ns, _log(store, False)
    before = _bytes(ns)
    moved, skipped = [], []
    for name in [sessions] if isinstance(sessions, str) else list(sessions):
        with ns.asking():
            key = _key(ns, name)
            uid = ns.views.execute("SELECT uid FROM sessions WHERE session = ?", (key,)).get
        with log.archives.alone():
            places = [cells for _, cells, place in log.mover.places() if place.uid == uid]
            if not places:
                skipped.append(SkippedSession(name, "nothing of it is archived"))
                continue
            file = log.archives.address(uid) or str(log.archives.path(uid))
            moved.append(ArchivedSession(name, file, log.mover.back(uid)))
    return ArchiveReport(True, moved, skipped, before, _bytes(ns))


def archived_sessions(store: Archivable) -> dict[str, Path | str]:
    """The sessions of which something is archived, by name, and where: a file, or the address of a cold tier."""
    ns = store._ns
    if (log := _archiving(ns)) is None:
        return {}
    with ns.asking():
        names = dict(ns.views.execute("SELECT uid, name FROM sessions"))
    uids = {place.uid for _, _, place in log.mover.places()}
    archives = log.archives
    return {str(names.get(uid, uid.hex())): archives.address(uid) or archives.path(uid) for uid in sorted(uids)}


def _log(store: Archivable, reading: bool) -> SqliteLog:
    ns = store._ns
    directory_of(ns.place, "so nothing of it is archived: export it")
    log = _archiving(ns)
    assert log is not None, "a log that lies in a directory can archive"
    if not reading:
        ns.engine  # noqa: B018 (refuses where the handle is for reading)
    return log


def _archiving(ns: Namespace) -> SqliteLog | None:
    return None if ns.place is None else ns.place.archiving(ns.log)


# ---- which sessions


def _keys(
    ns: Namespace, names: Sequence[str], older_than: float | None, grace: float
) -> tuple[list[tuple[int, str]], list[SkippedSession]]:
    now = ns.clock.now()
    if older_than is None:
        keys = [(_key(ns, name), name) for name in dict.fromkeys(names)]
    else:
        rows: list[Any] = ns.views.execute(_OLDER, (now - round(older_than * 1e6),)).fetchall()
        keys = [(key, name) for key, name in rows]
    chosen, skipped = [], []
    for key, name in keys:
        why = _open(ns, key, now - round(grace * 1e6))
        if why is None:
            chosen.append((key, name))
        elif names:
            raise RefusedError(
                f"session {name!r} {why}; archive it when it rests, or say how long it must (grace)", code="in-use"
            )
        else:
            skipped.append(SkippedSession(name, why))
    return chosen, skipped


def _key(ns: Namespace, name: str) -> int:
    key = ns.key(name)
    if key is None:
        known = [row[0] for row in ns.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")]
        raise UnknownError(f"there is no session {name!r}; {ns.nearest(name, known)}", code="no-session")
    return key


def _open(ns: Namespace, key: int, since: int) -> str | None:
    """The reason why a session cannot be archived yet; None where it can."""
    if key in ns.live:
        return "manages its memory through this very handle"
    logged: Any = ns.views.execute("SELECT max(logged_at) FROM commits WHERE session = ?", (key,)).get
    return f"was written to {max(0, ns.clock.now() - logged) // 1_000_000} s ago" if logged > since else None


def _chosen(ns: Namespace, key: int, name: str) -> _Chosen:
    portions = select(ns.views, [whole(ns.views, key)])
    inherited = sum(_spans(ns, portion.session, portion.upto)[1] for portion in portions if portion.session != key)
    mine = next(portion for portion in portions if portion.session == key)
    spans, _ = _spans(ns, key, mine.upto)
    return _Chosen(key, mine.uid, name, portions, runs_of(spans, 1 + inherited))


def _spans(ns: Namespace, key: int, upto: int) -> tuple[list[tuple[int, int]], int]:
    """The first cell of each commit of a session up to a position and how many, and how many in all."""
    sql = "SELECT cell, cells FROM commits WHERE session = ? AND last <= ? AND cells > 0 ORDER BY last"
    rows: list[Any] = ns.views.execute(sql, (key, upto)).fetchall()
    return rows, sum(cells for _, cells in rows)


def _left(log: SqliteLog, runs: Sequence[CellRun]) -> int:
    """How many cells of these runs lie in no archive."""
    ranges = [(first, first + cells) for first, cells, _ in log.mover.places()]
    starts = [first for first, _ in ranges]
    left = 0
    for run in runs:
        end = run.first + run.cells
        near = ranges[max(bisect_right(starts, run.first) - 1, 0) : bisect_right(starts, end)]
        left += run.cells - sum(max(min(end, after) - max(run.first, first), 0) for first, after in near)
    return left


def _folded(ns: Namespace, keys: set[int]) -> set[int]:
    """The cells that folding these sessions, and those that share their past, reads: names and labels."""
    cellar = ns.projection.fold.cellar
    found: set[int] = set()
    for key in keys | _heirs(ns, keys):
        for commit in LogReader(ns.log, ns.views).commits(key):
            if commit.request != NO_REQUEST:
                found.add(commit.cell + commit.request)
            for mutation in decode(commit.body):
                for field in READ.get(type(mutation), ()):
                    if (ref := getattr(mutation, field)) is not None:
                        found.add(cellar.sealed(commit, ref)[0])
    return found


def _heirs(ns: Namespace, keys: set[int]) -> set[int]:
    """The forks that share the past of these sessions."""
    forks: list[Any] = ns.views.execute("SELECT session FROM sessions WHERE origin = ?", (int(Origin.FORK),)).fetchall()
    return {key for (key,) in forks if keys & {stretch.session for stretch in Branch(ns.views, key).stretches}}


# ---- writing


def _forget(ns: Namespace, chosen: _Chosen) -> None:
    """Forgets which contents were sealed in an archived session, so that later ones are not named after them."""
    with ns.lock:
        rows: list[Any] = ns.views.execute("SELECT first FROM commits WHERE session = ?", (chosen.key,)).fetchall()
        for key in {chosen.key} | _heirs(ns, {chosen.key}):
            ns.forget(key, [first for (first,) in rows])


def _write(log: SqliteLog, chosen: _Chosen) -> None:
    """Writes the archive of a session, proven before anything leaves the log."""
    commits = chain.from_iterable(commits_as_they_lie(log, portion) for portion in chosen.portions)
    uids = {portion.session: portion.uid for portion in chosen.portions}
    log.archives.write(chosen.uid, commits, uids, Erasures(log).position, partial(key_under, log.file)).close()


def _move(log: SqliteLog, chosen: _Chosen, keep: set[int], progress: Progress | None) -> int:
    """Moves the cells of a session, how many bytes; an archive that does not hold them is not left behind."""
    try:
        return log.mover.away(chosen.uid, chosen.runs, keep, progress)
    except OvertakenError:
        if all(place.uid != chosen.uid for _, _, place in log.mover.places()):
            log.archives.drop(chosen.uid)
        raise


def _bytes(ns: Namespace) -> int:
    folder = directory_of(ns.place, "export it")
    files = [folder / LOG, *(folder / BLOBS).glob("*/*"), *(folder / ARCHIVE).glob("*")]
    size = 0
    for file in files:
        with suppress(FileNotFoundError):  # another process has just finished or removed it
            size += file.lstat().st_size
    return size


def _share(progress: Progress | None, number: int, of: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(number * 1000 + 1000 * done // max(total, 1), of * 1000)


_OLDER = (
    "SELECT session, name FROM sessions s WHERE hidden = 0"
    " AND (SELECT max(at_max) FROM commits c WHERE c.session = s.session) < ? ORDER BY name"
)
