"""Checks the chain of one session: its commits and those it inherits, hash by hash and cell by cell.

What `verify` does for a whole log; here only what one session stands on is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from vmstore.engine.verify.verify import Erased, Finding, unsound
from vmstore.log.commit import Commit, follows, genesis
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import Erasures

BATCH = 200  # commits looked up at once


class Chain:
    """One session's chain, from the root it descends from to its end; counts what it read."""

    def __init__(self, log: Log, db: apsw.Connection, lane: Branch, erased: Erased | None = None) -> None:
        self._log = log
        self._erased = erased or Erasures(log)
        self._db = db
        self._lane = lane
        self.commits = 0
        self.mutations = 0

    def problems(self) -> Iterator[Finding]:
        """Checks the chain and yields each mismatch, oldest first."""
        uid: bytes = self._db.execute(_UID, (self._lane.stretches[-1].session,)).get
        previous, position = genesis(uid), 0
        for stretch in reversed(self._lane.stretches):
            for commit in self._read(stretch.session, stretch.low, stretch.high):
                where = f"commit {commit.ordinal}"
                if commit.first != position + 1:
                    yield Finding("position", where, f"it begins at position {commit.first}, after {position}")
                if not follows(previous, commit):
                    yield Finding("hash", where, "its bytes and its hash do not match")
                yield from self._cells(commit)
                previous, position = commit.hash, commit.last
                self.commits += 1
                self.mutations += commit.count

    def _read(self, session: int, low: int, high: int) -> Iterator[Commit]:
        while True:
            rows: list[Any] = self._db.execute(_ORDINALS, (session, low, high, BATCH)).fetchall()
            if not rows:
                return
            for ordinal, _ in rows:
                yield from self._log.tail(ordinal - 1, 1)
            low = rows[-1][1]

    def _cells(self, commit: Commit) -> Iterator[Finding]:
        numbers = range(commit.cell, commit.cell + commit.cell_count)
        cells: dict[int, Any] = dict(self._log.cells(numbers))
        for index, number in enumerate(numbers):
            wrong = unsound(cells.get(number), number, commit.commitment(index), self._erased)
            if wrong is not None:
                yield Finding("cell", f"cell {number} of commit {commit.ordinal}", wrong)


_UID = "SELECT uid FROM sessions WHERE session = ?"
_ORDINALS = "SELECT ordinal, last FROM commits WHERE session = ? AND last > ? AND last <= ? ORDER BY last LIMIT ?"
