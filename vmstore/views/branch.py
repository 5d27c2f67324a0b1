"""A session's lane: its own mutations, and before them those of the sessions it forked from.

Positions are unique along a chain of forks, so a position alone tells which session wrote it.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import apsw

from vmstore.core.page import Origin

NEVER = 1 << 62


class BranchRange(NamedTuple):
    """Positions above `low`, up to and including `high`, written by one session.

    `turn` and `call` are those in force at `low`.
    """

    session: int
    low: int
    high: int
    turn: int = 0
    call: int = 0


Way = tuple[list[BranchRange], list[int]]
"""The stretches of a lane, its own first, and where they begin, the oldest first. Never changed once made."""


class Branch:
    """The branch of a session: which session wrote which positions, its own stretch first."""

    def __init__(self, db: apsw.Connection, session: int, way: Way | None = None) -> None:
        self.db = db
        self.session = session
        self.stretches, self._lows = _way(db, session) if way is None else way
        assert len(self.stretches) == len(self._lows), "`at` finds a stretch by the place of its beginning"
        # What was asked before and never changes: what contents are, by position; where walks went.
        self.known: dict[int, tuple[Any, ...]] = {}
        self.walks: dict[Any, Any] = {}

    def alone(self) -> Branch:
        """The branch without what the session inherited."""
        other = copy.copy(self)
        other.stretches, other.walks = self.stretches[:1], {}
        other._lows = self._lows[-1:]  # the other way round than stretches: its own is last
        assert other.stretches[0].low == other._lows[0], "what is left of both is the session's own"
        return other

    def upto(self, position: int) -> list[BranchRange]:
        """The stretches that hold anything at or before a position, each cut there."""
        return [
            s if s.high <= position else s._replace(high=position)
            for s in self.stretches
            if s.low < s.high and s.low < position
        ]

    def at(self, position: int) -> BranchRange:
        """The stretch that holds a position."""
        return self.stretches[-max(bisect_left(self._lows, position), 1)]

    def owner(self, position: int) -> int:
        """The session that wrote a position."""
        return self.at(position).session

    def rows(self, sql: str, positions: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        """Rows of `sql` (parameters: session, JSON list of positions), each asked of its writer."""
        groups: dict[int, list[int]] = {}
        if len(self.stretches) == 1:
            groups = {self.stretches[0].session: list(positions)}
        else:
            for position in positions:
                groups.setdefault(self.owner(position), []).append(position)
        for session, wanted in groups.items():
            yield from self.db.execute(sql, (session, str(wanted)))


def holder_of(db: apsw.Connection, position: int) -> int | None:
    """The only session with a commit that ends at a position; None where there is none, or are several.

    An archive holds of a fork's past what was inherited, and not always the session that it was forked from: where
    that one was forked later than this, nothing of its own was inherited.
    """
    rows: list[Any] = db.execute("SELECT session FROM commits WHERE last = ? LIMIT 2", (position,)).fetchall()
    assert len(rows) < 3, "two are enough to know that there are several"
    return int(rows[0][0]) if len(rows) == 1 else None


def each_alone(db: apsw.Connection) -> Iterator[tuple[str, Branch, int]]:
    """Every session without what it inherited: its name, its branch, and the last position of it."""
    for session, name, position, low, turn, call in db.execute(_EACH, {"fork": int(Origin.FORK)}):
        own = BranchRange(session, low, NEVER, turn, call)
        yield name, Branch(db, session, ([own], [low])), position


def _way(db: apsw.Connection, session: int) -> Way:
    """The ancestry of a session. A parent's past never changes, so that of recent forks is cached."""
    kept = _KEPT.setdefault(db, {})
    way = kept.get(session)
    if way is None:
        stretches = _longer(db, session, kept) or list(_stretches(db, session))
        way = stretches, _lows(stretches)
        if len(stretches) > 1:
            kept[session] = way
            while len(kept) > WAYS_MAX:
                kept.pop(next(iter(kept)), None)
    assert way[0][0].session == session, "a way is kept under the session whose own stretch is its first"
    return way


def _longer(db: apsw.Connection, session: int, kept: Mapping[int, Way]) -> list[BranchRange] | None:
    """The stretches of a fork, from those of its parent where they are kept."""
    row: Any = db.execute(_OWN, {"session": session, "fork": int(Origin.FORK)}).fetchone()
    if row is None or row[3] not in kept:
        return None
    low, turn, call, parent = row
    longer = [BranchRange(session, low, NEVER, turn, call)]
    for stretch in kept[parent][0]:
        longer.append(stretch if stretch.high <= low else stretch._replace(high=low))
    return longer


def _lows(stretches: Sequence[BranchRange]) -> list[int]:
    """The first position of each stretch, oldest first; an empty stretch begins where the one after it does."""
    return list(accumulate((stretch.low for stretch in stretches), min))[::-1]


def _stretches(db: apsw.Connection, session: int) -> Iterator[BranchRange]:
    high = NEVER
    rows: list[Any] = db.execute(_CHAIN, {"session": session, "fork": int(Origin.FORK)}).fetchall()
    for writer, low, turn, call in rows:
        yield BranchRange(writer, low, high, turn, call)
        high = min(high, low)
    if not rows:
        yield BranchRange(session, 0, NEVER)


WAYS_MAX = 32  # of forks, for each database
_KEPT: WeakKeyDictionary[apsw.Connection, dict[int, Way]] = WeakKeyDictionary()
_EACH = """SELECT session, name, position, iif(origin = :fork, fork_position, 0), turn_before, call_before
  FROM sessions WHERE hidden = 0"""
_OWN = """SELECT iif(origin = :fork, fork_position, 0), turn_before, call_before, iif(origin = :fork, parent, NULL)
  FROM sessions WHERE session = :session"""
_CHAIN = """
WITH RECURSIVE chain(depth, session, low, turn, call, parent) AS (
  SELECT 0, session, iif(origin = :fork, fork_position, 0), turn_before, call_before, iif(origin = :fork, parent, NULL)
    FROM sessions WHERE session = :session
  UNION ALL
  SELECT depth + 1, s.session, iif(origin = :fork, fork_position, 0), turn_before, call_before,
         iif(origin = :fork, s.parent, NULL)
    FROM chain CROSS JOIN sessions s ON s.session = chain.parent)
SELECT session, low, turn, call FROM chain ORDER BY depth
"""
