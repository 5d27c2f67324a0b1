"""A session's lane: its own mutations, and before them those of the sessions it forked from.

Positions are unique along a chain of forks, so a position alone tells which session wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from vmstore.core.page import Origin

NEVER = 1 << 62


class Stretch(NamedTuple):
    """Positions above `low`, up to and including `high`, written by one session."""

    session: int
    low: int
    high: int


class Lane:
    """Who wrote which positions, as one session sees them; its own stretch first."""

    def __init__(self, db: apsw.Connection, session: int) -> None:
        self.db = db
        self.session = session
        self.stretches = list(_stretches(db, session))

    def upto(self, position: int) -> list[Stretch]:
        """The stretches that hold anything at or before a position, each cut there."""
        return [
            Stretch(s.session, s.low, min(s.high, position)) for s in self.stretches if s.low < min(s.high, position)
        ]

    def owner(self, position: int) -> int:
        """The session that wrote a position."""
        for stretch in self.stretches:
            if position > stretch.low:
                return stretch.session
        return self.stretches[-1].session

    def rows(self, sql: str, positions: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        """Rows of `sql` (parameters: session, JSON list of positions), each asked of its writer."""
        groups: dict[int, list[int]] = {}
        for position in positions:
            groups.setdefault(self.owner(position), []).append(position)
        for session, wanted in groups.items():
            listed = "[" + ",".join(map(str, wanted)) + "]"
            yield from self.db.execute(sql, (session, listed))


def _stretches(db: apsw.Connection, session: int) -> Iterator[Stretch]:
    high = NEVER
    while True:
        row = db.execute("SELECT origin, parent, fork_position FROM sessions WHERE session = ?", (session,)).fetchone()
        forked = row is not None and row[0] == Origin.FORK and row[1] is not None
        low = row[2] if row is not None and forked else 0
        yield Stretch(session, low, high)
        if row is None or not forked:
            return
        session, high = row[1], min(high, low)
