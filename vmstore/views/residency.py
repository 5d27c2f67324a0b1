"""The residency view: which pages were in L0 from when to when, at which level and rank.

Closed residencies lie in `spans`, clustered by the bit length of their duration, so that a
moment is found by one short range in each class whatever the length of the log; open ones lie
in `residents`. A fork takes a copy of what it inherits at its first pack, and not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import apsw

from vmstore.core.mutation import Pack
from vmstore.views.lane import Lane
from vmstore.views.projector import Fact, Projector


class Resident(NamedTuple):
    """A page in L0: the position of its content, level and rank, and since when it stayed."""

    page: int
    content: int
    level: int
    rank: int
    since: int


class Residency(Projector):
    """Intervals [f, t) of pages in L0; `since` is where an unbroken stay began."""

    name = "residency"
    schema: ClassVar = {
        "spans": """session INTEGER, k INTEGER, f INTEGER, t INTEGER, page INTEGER, content INTEGER, level INTEGER,
            rank INTEGER, since INTEGER, PRIMARY KEY(session, k, f, t, page)""",
        "classes": "session INTEGER, k INTEGER, PRIMARY KEY(session, k)",
        "residents": """session INTEGER, page INTEGER, f INTEGER, content INTEGER, level INTEGER, rank INTEGER,
            since INTEGER, PRIMARY KEY(session, page)""",
        "starts": "session INTEGER PRIMARY KEY, position INTEGER",
    }
    indexes = ("CREATE INDEX spans_page ON spans(session, page)",)

    def on_pack(self, db: apsw.Connection, fact: Fact, m: Pack) -> None:
        """Closes what left or changed and opens what entered."""
        session, position = fact.session, fact.position
        self._start(db, session, position)
        for page in m.left:
            self._close(db, session, page, position)
        for page, content, level, rank in m.entered:
            since = self._close(db, session, page, position)
            db.execute(
                "INSERT INTO residents VALUES(?,?,?,?,?,?,?)",
                (session, page, position, content, level, rank, position if since is None else since),
            )

    def _start(self, db: apsw.Connection, session: int, position: int) -> None:
        """Copies what a fork inherits, at its first pack."""
        if db.execute("SELECT 1 FROM starts WHERE session = ?", (session,)).fetchone() is not None:
            return
        db.execute("INSERT INTO starts VALUES(?,?)", (session, position))
        inherited = [
            (session, r.page, f, r.content, r.level, r.rank, r.since)
            for f, r in _resident(db, Lane(db, session), position - 1)
        ]
        db.executemany("INSERT INTO residents VALUES(?,?,?,?,?,?,?)", inherited)

    def _close(self, db: apsw.Connection, session: int, page: int, position: int) -> int | None:
        """Ends a page's open residency; its `since`, or None where it had none."""
        row = db.execute(
            "DELETE FROM residents WHERE session = ? AND page = ? RETURNING f, content, level, rank, since",
            (session, page),
        ).fetchone()
        if row is None:
            return None
        f, content, level, rank, since = row
        k = (position - f).bit_length()
        db.execute("INSERT OR IGNORE INTO classes VALUES(?,?)", (session, k))
        db.execute(
            "INSERT INTO spans VALUES(?,?,?,?,?,?,?,?,?)",
            (session, k, f, position, page, content, level, rank, since),
        )
        return int(since)


def resident_at(lane: Lane, position: int) -> list[Resident]:
    """The pages in L0 at a position, in order."""
    return sorted((r for _, r in _resident(lane.db, lane, position)), key=lambda r: r.rank)


def _resident(db: apsw.Connection, lane: Lane, position: int) -> Iterator[tuple[int, Resident]]:
    """(from, resident) of every page in L0 at a position, asked of the session that knows."""
    for stretch in lane.stretches:
        moment = min(position, stretch.high)
        start = db.execute("SELECT position FROM starts WHERE session = ?", (stretch.session,)).get
        if start is not None and start <= moment:
            for f, *rest in db.execute(_AT, {"s": stretch.session, "q": moment}):
                yield f, Resident(*rest)
            return


_AT = """
SELECT spans.f, spans.page, spans.content, spans.level, spans.rank, spans.since
  FROM classes CROSS JOIN spans ON spans.session = :s AND spans.k = classes.k
   AND spans.f > :q - (1 << classes.k) AND spans.f <= :q AND spans.t > :q
 WHERE classes.session = :s
UNION ALL
SELECT f, page, content, level, rank, since FROM residents WHERE session = :s AND f <= :q
"""
