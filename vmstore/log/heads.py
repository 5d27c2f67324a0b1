"""Where sessions stand, kept in memory for the end of the log only.

Nothing is read when a log is opened. Commits beyond the end that was found then are taken in as
they come, older ones only when somebody asks about them: a caller who knows a session as of an
ordinal needs no more than what follows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vmstore.log.port import Head

SESSIONS_MAX = 65_536


class Seen(NamedTuple):
    """A session's last commit: its ordinal and the head it made."""

    ordinal: int
    head: Head


class Heads:
    """The last commit of each session that has one in `(start, end]`, and of some that were asked about."""

    def __init__(self, end: int) -> None:
        self.start = self.end = end
        self._seen: dict[int, Seen] = {}

    def follow(self, ordinal: int, session: int, head: Head) -> None:
        """Takes in the commit after the end."""
        self._seen[session] = Seen(ordinal, head)
        self.end = ordinal
        if len(self._seen) > SESSIONS_MAX:
            self._seen.clear()
            self.start = ordinal

    def reach_back(self, start: int, rows: Iterable[tuple[int, int, Head]]) -> None:
        """Takes in the commits in `(start, self.start]`, as (ordinal, session, head) in any order."""
        assert start <= self.start, "what was taken in already is not forgotten"
        for ordinal, session, head in rows:
            if session not in self._seen or self._seen[session].ordinal < ordinal:
                self._seen[session] = Seen(ordinal, head)
        self.start = start

    def remember(self, ordinal: int, session: int, head: Head) -> None:
        """Keeps where a session stands whose last commit was found before the start."""
        self._seen.setdefault(session, Seen(ordinal, head))

    def head(self, session: int, after: int) -> Head | None:
        """Where a session stands, or None where it has no commit beyond `after`, which is not before the start."""
        seen = self._seen.get(session)
        return seen.head if seen is not None and seen.ordinal > after else None
