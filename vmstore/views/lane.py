"""A session's lane: its own mutations, and before them those of the sessions it forked from.

Positions are unique along a chain of forks, so a position alone tells which session wrote it.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import apsw

from vmstore.core.page import Origin

NEVER = 1 << 62


class Stretch(NamedTuple):
    """Positions above `low`, up to and including `high`, written by one session.

    `turn` and `call` are those in force at `low`.
    """

    session: int
    low: int
    high: int
    turn: int = 0
    call: int = 0


class Lane:
    """Who wrote which positions, as one session sees them; its own stretch first."""

    def __init__(self, db: apsw.Connection, session: int) -> None:
        self.db = db
        self.session = session
        self.stretches = list(_stretches(db, session))
        self._lows = _lows(self.stretches)
        # What was asked before and never changes: what contents are, by position; where walks went.
        self.known: dict[int, tuple[Any, ...]] = {}
        self.walks: dict[Any, Any] = {}

    def alone(self) -> Lane:
        """What the session itself wrote, and nothing it inherited."""
        other = copy.copy(self)
        other.stretches, other.walks = self.stretches[:1], {}
        other._lows = self._lows[-1:]
        return other

    def upto(self, position: int) -> list[Stretch]:
        """The stretches that hold anything at or before a position, each cut there."""
        return [
            s if s.high <= position else s._replace(high=position)
            for s in self.stretches
            if s.low < s.high and s.low < position
        ]

    def at(self, position: int) -> Stretch:
        """The stretch that holds a position."""
        return self.stretches[-max(bisect_left(self._lows, position), 1)]

    def owner(self, position: int) -> int:
        """The session that wrote a position."""
        return self.at(position).session

    def rows(self, sql: str, positions: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        """Rows of `sql` (parameters: session, JSON list of positions), each asked of its writer."""
        groups: dict[int, list[int]] = {}
        for position in positions:
            groups.setdefault(self.owner(position), []).append(position)
        for session, wanted in groups.items():
            yield from self.db.execute(sql, (session, str(wanted)))


def _lows(stretches: Sequence[Stretch]) -> list[int]:
    """Where stretches begin, the oldest first; one that holds nothing begins where the one after it does."""
    return list(accumulate((stretch.low for stretch in stretches), min))[::-1]


def _stretches(db: apsw.Connection, session: int) -> Iterator[Stretch]:
    high = NEVER
    rows: list[Any] = db.execute(_CHAIN, {"session": session, "fork": int(Origin.FORK)}).fetchall()
    for writer, low, turn, call in rows:
        yield Stretch(writer, low, high, turn, call)
        high = min(high, low)
    if not rows:
        yield Stretch(session, 0, NEVER)


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
