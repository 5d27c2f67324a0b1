"""The last commit of each session that a handle on a log has seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vmstore.log.port import ChainHead

SESSIONS_MAX = 65_536


class LastCommit(NamedTuple):
    """A session's last commit: its ordinal and the head it made."""

    ordinal: int
    head: ChainHead


class Heads:
    """The last commit of each session that has one in `(start, end]`, and of some that were asked about."""

    def __init__(self, end: int) -> None:
        self.start = self.end = end
        self._seen: dict[int, LastCommit] = {}

    def follow(self, ordinal: int, session: int, head: ChainHead) -> None:
        """Takes in the commit after the end."""
        self._seen[session] = LastCommit(ordinal, head)
        self.end = ordinal
        if len(self._seen) > SESSIONS_MAX:
            self._seen.clear()
            self.start = ordinal

    def reach_back(self, start: int, rows: Iterable[tuple[int, int, ChainHead]]) -> None:
        """Takes in the commits in `(start, self.start]`, as (ordinal, session, head) in any order."""
        assert start <= self.start, "what was taken in already is not forgotten"
        for ordinal, session, head in rows:
            if session not in self._seen or self._seen[session].ordinal < ordinal:
                self._seen[session] = LastCommit(ordinal, head)
        self.start = start

    def remember(self, ordinal: int, session: int, head: ChainHead) -> None:
        """Keeps where a session stands whose last commit was found before the start."""
        self._seen.setdefault(session, LastCommit(ordinal, head))

    def head(self, session: int, after: int) -> ChainHead | None:
        """The head of a chain, or None where it has no commit beyond `after`, which is not before the start."""
        seen = self._seen.get(session)
        return seen.head if seen is not None and seen.ordinal > after else None
