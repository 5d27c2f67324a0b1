"""Brings the sessions of one log into another with the very commits they have, each whole or not at all.

Sessions are the same where their uids are. Of one that both hold, the longer past wins if the other
is its beginning: a chain of hashes that agree at a position agree before it. Where they parted nothing
is written, and the position is named.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from vmstore.core.mutation import Open, decode
from vmstore.core.page import Origin
from vmstore.engine.engine import Arrival, Engine
from vmstore.engine.transfer.ingest import ForeignCommits, hash_at
from vmstore.log.port import Log
from vmstore.views.log_reader import LogReader
from vmstore.views.projection import Projection

NEW, GREW, SAME, BEHIND, PARTED, TAKEN, ORPHAN = "new", "grew", "same", "behind", "parted", "taken", "orphan"
COMING = (NEW, GREW)
CONFLICTS = (PARTED, TAKEN, ORPHAN)


class GuestSession(NamedTuple):
    """A session of the other log."""

    session: int
    uid: bytes
    name: str
    position: int
    hidden: bool


class MergeProgress(NamedTuple):
    """Progress of a guest session: `outcome`, its key here (0 where it is new), and the last position both logs share.

    `name` is whose name it is that is taken, or whose past is missing.
    """

    guest: GuestSession
    outcome: str
    session: int
    position: int
    name: str = ""


class LogMerge:
    """Another log, which is sound, on its way into this one."""

    def __init__(self, engine: Engine, log: Log, views: Projection) -> None:
        self._engine = engine
        self._log = log
        self._views = views

    def guests(self) -> list[GuestSession]:
        """The other log's sessions, parents before their forks; unfinished imports too, its charter not.

        What a namespace grants and approves is its own affair, and does not travel.
        """
        sql = "SELECT session, uid, name, position, hidden FROM sessions WHERE hidden != ? ORDER BY session"
        return [GuestSession(*row) for row in self._views.db.execute(sql, (Open.CHARTER,))]

    def standing(self, guest: GuestSession, coming: set[bytes] | None = None) -> MergeProgress:
        """The progress of a guest given both logs; `coming` are uids of guests that are merged before it."""
        db = self._engine.projection.db
        row: Any = db.execute("SELECT session, position FROM sessions WHERE uid = ?", (guest.uid,)).fetchone()
        if row is None:
            if db.execute("SELECT 1 FROM sessions WHERE name = ?", (guest.name,)).fetchone() is not None:
                return MergeProgress(guest, TAKEN, 0, 0, guest.name)
            lacking = self._lacking(guest, coming or set())
            return MergeProgress(guest, NEW, 0, 0) if lacking is None else MergeProgress(guest, ORPHAN, 0, 0, lacking)
        session, position = row
        common = min(position, guest.position)
        mine = hash_at(db, self._engine.log, session, common)
        if mine is None or mine != hash_at(self._views.db, self._log, guest.session, common):
            return MergeProgress(guest, PARTED, session, self._parted(guest, session))
        outcome = SAME if position == guest.position else GREW if position < guest.position else BEHIND
        return MergeProgress(guest, outcome, session, common)

    def _lacking(self, guest: GuestSession, coming: set[bytes]) -> str | None:
        """The name of the session whose past a fork lacks here; None where it lacks nothing."""
        first = self._commits(guest, 0)[0]
        opened = decode(first.body)[0]
        assert isinstance(opened, Open), "a session begins with its open"
        if opened.origin != Origin.FORK or opened.parent in coming:
            return None
        for name, session, uid in self._ancestors(guest):
            ours: Any = self._engine.projection.db.execute("SELECT session FROM sessions WHERE uid = ?", (uid,)).get
            there = hash_at(self._views.db, self._log, session, opened.parent_position)
            if there is None:  # the fork point lies further back
                continue
            db, log = self._engine.projection.db, self._engine.log
            return None if ours is not None and hash_at(db, log, ours, opened.parent_position) == there else name
        return guest.name

    def _ancestors(self, guest: GuestSession) -> Iterator[tuple[str, int, bytes]]:
        """The sessions a fork came from, its parent first: name, key there, uid."""
        sql = "SELECT name, session, uid FROM sessions WHERE session = (SELECT parent FROM sessions WHERE session = ?)"
        row: Any = self._views.db.execute(sql, (guest.session,)).fetchone()
        while row is not None:
            yield row
            row = self._views.db.execute(sql, (row[1],)).fetchone()

    def _parted(self, guest: GuestSession, session: int) -> int:
        """The last position at which both are the same."""
        sql = "SELECT last FROM commits WHERE session = ? ORDER BY last"
        ends = [row[0] for row in self._views.db.execute(sql, (guest.session,))]

        def differs(last: int) -> bool:
            mine = hash_at(self._engine.projection.db, self._engine.log, session, last)
            return mine is None or mine != hash_at(self._views.db, self._log, guest.session, last)

        at = bisect_left(ends, True, key=differs)
        return ends[at - 1] if at else 0

    def _commits(self, guest: GuestSession, after: int) -> ForeignCommits:
        return ForeignCommits(self._log, LogReader(self._log, self._views.db).ordinals(guest.session, after))

    def new(self, standing: MergeProgress) -> ForeignCommits:
        """The commits of a guest that are not here and would come."""
        return self._commits(standing.guest, standing.position)

    def lacks(self, standing: MergeProgress) -> int:
        """How many commits of a guest are not here."""
        return len(self.new(standing)) if standing.outcome in COMING else 0

    def bring(self, guest: GuestSession) -> tuple[MergeProgress, int]:
        """Writes what of a guest is not here, durable; what became of it and how many commits are new."""
        last: list[MergeProgress] = []

        def lacking() -> list[Arrival]:
            last[:] = [self.standing(guest)]
            if last[0].outcome not in COMING:
                return []
            return [Arrival(self.new(last[0]), last[0].session, last[0].position)]

        ingested = self._engine.ingest(lacking)
        return last[0], sum(entry.commits for entry in ingested)
