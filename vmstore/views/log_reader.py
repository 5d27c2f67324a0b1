"""Reads a session's commits from the log, as its views name them; those that lie together are read together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from vmstore.errors import CorruptError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.branch import NEVER

RUN_MAX = 500  # commits read at once
NEAR = 4  # ordinals further on than this are looked up again; what lies between costs less than a look


class LogReader:
    """Commits of a log by what its views know of them; they are read without their cells."""

    def __init__(self, log: Log, db: apsw.Connection) -> None:
        self._log = log
        self._db = db

    def ordinals(self, session: int, after: int = 0, upto: int = NEVER, *, limit: int = -1) -> list[int]:
        """The ordinals of what a session wrote after a position, up to another or the commit that holds it."""
        rows: Any = self._db.execute(_WRITTEN, (session, after, upto, limit))
        return [ordinal for (ordinal,) in rows]

    def commits(self, session: int, after: int = 0, upto: int = NEVER, *, limit: int = -1) -> Iterator[Commit]:
        """Those commits, the oldest first."""
        return read_commits(self._log, self.ordinals(session, after, upto, limit=limit))

    def holding(self, session: int, position: int) -> Commit | None:
        """The commit of a session that holds a position; None where it did not come so far."""
        return self._one(_HOLDING, session, position)

    def ending(self, session: int, position: int) -> Commit | None:
        """The commit of a session that ends at a position; None where none does."""
        return self._one(_ENDING, session, position)

    def _one(self, sql: str, session: int, position: int) -> Commit | None:
        ordinal: Any = self._db.execute(sql, (session, position)).get
        return None if ordinal is None else commit_at(self._log, ordinal)


def commit_at(log: Log, ordinal: int) -> Commit:
    """The commit of an ordinal; CorruptError where the log has it no more."""
    return next(read_commits(log, (ordinal,)))


def read_commits(log: Log, ordinals: Sequence[int]) -> Iterator[Commit]:
    """Commits by their ordinals, in order; CorruptError where the log lacks one."""
    at = 0
    while at < len(ordinals):
        first, end = ordinals[at], at + 1
        while end < len(ordinals) and 0 < ordinals[end] - ordinals[end - 1] <= NEAR and ordinals[end] < first + RUN_MAX:
            end += 1
        wanted = ordinals[at:end]
        assert wanted[0] == first and wanted[-1] - first < RUN_MAX, "a run is no longer than what is held at once"
        read = log.tail(first - 1, wanted[-1] - first + 1)
        asked = set(wanted)
        commits = [commit for commit in read if commit.ordinal in asked]
        if [commit.ordinal for commit in commits] != list(wanted):
            raise CorruptError(
                f"commit {first} or one that follows is missing from the log; run `vmstore verify`",
                code="commit-missing",
            )
        yield from commits
        at = end
    assert at == len(ordinals), "the runs cover every ordinal, each once"


_WRITTEN = "SELECT ordinal FROM commits WHERE session = ? AND last > ? AND first <= ? ORDER BY last LIMIT ?"
_HOLDING = "SELECT ordinal FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
_ENDING = "SELECT ordinal FROM commits WHERE session = ? AND last = ?"
