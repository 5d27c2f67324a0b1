"""Publishes sessions: what a cold tier lacks goes there, then a manifest that names all of it.

Archives are written from the log, whatever keeps it, by who keeps erasures waiting meanwhile. A kill leaves objects
that no manifest names; done again, the same command goes on, and `vmstore sweep` finds what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vmstore.cells.cell import ERASED
from vmstore.cold.catalogue import sealed
from vmstore.cold.log import opened
from vmstore.cold.manifest import KIND, FoundManifest, Manifest, PublishedSegment, PublishedSession, StoredObject
from vmstore.cold.tier import ColdTier
from vmstore.core.page import Origin
from vmstore.core.system.atomic_file import scratch
from vmstore.errors import ConflictError, InputError, RefusedError, UnknownError
from vmstore.log.archive.file import Under, chained, write
from vmstore.log.cell_reader import key_under
from vmstore.log.commit import Commit
from vmstore.log.frame_encryption import PLAIN, NoEncryption
from vmstore.log.port import Progress
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import PublishedPart, PublishReport, SkippedSession
from vmstore.seals.seal import uid_of
from vmstore.views.erased_cells import Erasures
from vmstore.views.log_reader import LogReader
from vmstore.views.selection import Portion, commits_as_they_lie, select, whole

NEW, GREW, ERASING = "new", "grew", "erased"
Upload = Callable[[ColdTier, list[PublishedSegment]], list[PublishedSegment]]


class SessionStanding(NamedTuple):
    """A session here, as it would stand in a manifest, and the commits that its archive would hold."""

    name: str
    entry: PublishedSession
    portions: list[Portion]


class Publication:
    """A namespace on its way to a tier.

    `segments` uploads its column segments and gives them, handed those that are there; without it these stay.
    """

    def __init__(
        self,
        ns: Namespace,
        tier: ColdTier,
        segments: Upload | None = None,
        progress: Progress | None = None,
        tables: Sequence[str] = (),
    ) -> None:
        if ns.cache is None:
            raise InputError("a store in memory is not published; keep it in a folder first", code="in-memory")
        self._ns = ns
        self._cache: Path = ns.cache
        self._tier = tier
        self._segments = segments
        self._progress = progress
        self._tables = tables
        self._erasures = Erasures(ns.log)
        self._made: dict[tuple[str, int, int], PublishedSession] = {}  # by uid, position and cells erased

    # ---- which sessions

    def chosen(self, names: Sequence[str], older_than_s: float | None) -> list[SessionStanding]:
        """The sessions named, or old, or all; with those they were forked from."""
        ns = self._ns
        views = ns.views
        if older_than_s is not None:
            limit = ns.clock.now() - round(older_than_s * 1e6)
            rows: list[Any] = views.execute(_OLDER, (limit,)).fetchall()
        elif names:
            rows = [(self._key(name),) for name in dict.fromkeys(names)]
        else:
            rows = views.execute("SELECT session FROM sessions WHERE hidden = 0").fetchall()
        return self.standing({key for (key,) in rows})

    def standing(self, keys: set[int]) -> list[SessionStanding]:
        """Sessions by their keys, and those they were forked from, in the order of the log; within `asking`."""
        views: Any = self._ns.views
        wanted = set(keys)
        for key in keys:
            wanted |= {ancestor for (ancestor,) in views.execute(_LINE, (key,))}
        found = []
        for key in sorted(wanted):
            portions = select(views, [whole(views, key)])
            *past, mine = portions
            assert mine.session == key, "a session comes after those it was forked from"
            counts = [views.execute(_COUNTS, (one.session, one.upto)).fetchone() for one in portions]
            last = LogReader(self._ns.log, views).ending(key, mine.upto)
            assert last is not None, "a portion ends with a commit"
            entry = PublishedSession(
                uid=mine.uid.hex(),
                key=key,
                position=mine.upto,
                hash=last.hash.hex(),
                commits=len(mine.ordinals),
                cells=int(counts[-1][0]),
                mutations=int(counts[-1][1]),
                archive=StoredObject("", 0, ""),
                parent=views.execute(_PARENT, (key, int(Origin.FORK))).get,
                past=[portion.uid.hex() for portion in past],
                past_commits=sum(len(portion.ordinals) for portion in past),
                past_cells=sum(int(cells) for cells, _ in counts[:-1]),
                erased=sum(int(views.execute(_ERASED, (one.session, one.upto)).get) for one in portions),
            )
            found.append(SessionStanding(mine.name, entry, portions))
        return found

    def _key(self, name: str) -> int:
        key = self._ns.key(name)
        if key is None:
            known = [row[0] for row in self._ns.views.execute("SELECT name FROM sessions WHERE hidden = 0")]
            raise UnknownError(f"there is no session {name!r}; {self._ns.nearest(name, known)}", code="no-session")
        return key

    # ---- publishing

    def publish(self, standing: Sequence[SessionStanding], *, dry_run: bool = False) -> PublishReport:
        """Uploads what is not there, then the manifest; decides again where another publisher was first.

        The caller keeps erasures waiting.
        """
        self._erasures.follow()
        while True:
            found = self._tier.newest()
            try:
                return self._once(found, standing, dry_run)
            except ConflictError as error:
                if error.code != "object-exists":
                    raise

    def _once(self, found: FoundManifest | None, standing: Sequence[SessionStanding], dry_run: bool) -> PublishReport:
        ns = self._ns
        there = self._there(found)
        parts, skipped = [], []
        for nth, session in enumerate(standing):
            before = there.get(session.entry.uid)
            why = self._lacking(before, session)
            if why is None:
                skipped.append(SkippedSession(session.name, "it is there already"))
                continue
            size = 0
            if not dry_run:
                there[session.entry.uid] = made = self._session(session)
                size = made.archive.size
            new = session.entry.commits - (0 if before is None else before.commits)
            parts.append(PublishedPart(session.name, why, new, size))
            if self._progress is not None:
                self._progress(nth + 1, len(standing))
        segments = [] if found is None else found.manifest.segments
        if dry_run:
            return PublishReport(False, self._tier.address, _number(found), parts, skipped, len(segments), 0)
        if self._segments is not None:
            segments = self._segments(self._tier, segments)
        tables = sorted({*self._tables, *(() if found is None else found.manifest.tables)})
        if not parts and found and (segments, tables) == (found.manifest.segments, found.manifest.tables):
            return PublishReport(True, self._tier.address, _number(found), [], skipped, len(segments), 0)
        manifest = Manifest(
            kind=KIND,
            number=_number(found) + 1,
            before=None if found is None else found.sha256,
            namespace=uid_of(ns.log),
            at=ns.clock.now(),
            encrypted=ns.store_key is not None,
            catalogue=self._catalogue(there),
            sessions=sorted(there.values(), key=lambda one: one.key),
            segments=segments,
            tables=tables,
        )
        self._tier.add(manifest)
        return PublishReport(
            True, self._tier.address, manifest.number, parts, skipped, len(segments), sum(part.bytes for part in parts)
        )

    def _there(self, found: FoundManifest | None) -> dict[str, PublishedSession]:
        """The sessions that a manifest has, by uid; RefusedError where it is of another namespace."""
        if found is None:
            return {}
        manifest = found.manifest
        if manifest.namespace != uid_of(self._ns.log) or manifest.encrypted != (self._ns.store_key is not None):
            raise RefusedError(
                f"{self._tier.address} holds another namespace that is called {self._tier.namespace!r}; name another "
                "prefix",
                code="another-namespace",
            )
        return {session.uid: session for session in manifest.sessions}

    def _lacking(self, there: PublishedSession | None, session: SessionStanding) -> str | None:
        """Returns why a session has to be published; None where it is there as it is here, or longer."""
        if there is None:
            return NEW
        entry, ns = session.entry, self._ns
        if there.position <= entry.position:
            with ns.asking():
                ours = LogReader(ns.log, ns.views).ending(entry.key, there.position)
            if ours is None or ours.hash.hex() != there.hash:
                raise RefusedError(
                    f"session {session.name!r} went on differently at {self._tier.address} after it was published "
                    "from a copy of this store; name another prefix, or merge that copy first",
                    code="parted",
                )
        if there.position < entry.position:
            return GREW
        return ERASING if there.erased < entry.erased and there.position == entry.position else None

    def _session(self, session: SessionStanding) -> PublishedSession:
        """Uploads the archive of a session, once, and says what it holds."""
        asked = session.entry.uid, session.entry.position, session.entry.erased
        if asked not in self._made:
            with scratch(self._cache) as folder:
                self._made[asked] = self._archive(session, folder / "session.archive")
        return self._made[asked]

    def _archive(self, session: SessionStanding, path: Path) -> PublishedSession:
        log = self._ns.log
        vault: NoEncryption = PLAIN
        under: Under = _no_key
        if isinstance(log, SqliteLog):
            vault, under = log.vault, partial(key_under, log.file)
        erasures = self._erasures
        portions = [map(partial(_without, erasures), commits_as_they_lie(log, one)) for one in session.portions]
        uids = {portion.session: portion.uid for portion in session.portions}
        commits, source = chained(chain.from_iterable(portions), uids, erasures.position, under)
        write(path, commits, source, vault)
        with closing(opened(self._tier.address, session.entry, path, self._ns.store_key)):  # proves every byte of it
            stored = self._tier.put("archives", path.read_bytes())
        return msgspec.structs.replace(session.entry, archive=stored)

    def _catalogue(self, there: dict[str, PublishedSession]) -> StoredObject:
        """Uploads the names of the sessions that are published."""
        with self._ns.asking():
            rows: Any = self._ns.views.execute("SELECT uid, name FROM sessions").fetchall()
        names = {bytes(uid).hex(): name for uid, name in rows}
        content = sealed(
            {uid: names.get(uid, f"session-{uid[:12]}") for uid in there}, self._ns.ids, self._ns.store_key
        )
        return self._tier.put("catalogues", content)


def holding(ns: Namespace) -> AbstractContextManager[object]:
    """Keeps erasures and archiving waiting, so that what is uploaded is what a manifest may name."""
    return ns.log.settled()


def _without(erasures: Erasures, commit: Commit) -> Commit:
    """A commit with its cells, those recorded as erased destroyed."""
    cells = tuple(ERASED if erasures(commit.cell + at) else cell for at, cell in enumerate(commit.cells))
    return msgspec.structs.replace(commit, cells=cells)


def _no_key(number: int) -> bytes:
    return b""


def _number(found: FoundManifest | None) -> int:
    return 0 if found is None else found.manifest.number


_OLDER = (
    "SELECT session FROM sessions s WHERE hidden = 0"
    " AND (SELECT max(at_max) FROM commits c WHERE c.session = s.session) < ?"
)
_LINE = (  # a fork may have inherited nothing of its parent's own, and names it all the same
    f"WITH RECURSIVE line(session) AS (SELECT ? UNION SELECT s.parent FROM line JOIN sessions s"
    f" ON s.session = line.session WHERE s.origin = {int(Origin.FORK)}) SELECT session FROM line"
)
_PARENT = (
    "SELECT lower(hex(p.uid)) FROM sessions s JOIN sessions p ON p.session = s.parent"
    " WHERE s.session = ? AND s.origin = ?"
)
_ERASED = (
    "SELECT count(*) FROM commits c JOIN erased e ON e.cell >= c.cell AND e.cell < c.cell + c.cells"
    " WHERE c.session = ? AND c.last <= ? AND c.cells > 0"
)
_COUNTS = "SELECT sum(cells), sum(last - first + 1) FROM commits WHERE session = ? AND last <= ?"
