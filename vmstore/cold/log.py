"""A cold tier as a log that is only read: the sessions of a manifest, one after the other, each from its archive.

A session's commits and cells are numbered after those of the sessions before it, by what the manifest counts, so an
archive is fetched when something of it is read. What a fork inherits stands in its archive too and is left out here,
where the session it came from has it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from vmstore.cells.cell import Cell
from vmstore.cells.storekey import StoreKey
from vmstore.cold.manifest import PublishedSession
from vmstore.errors import CorruptError, ReadOnlyError
from vmstore.log.archive.file import ArchiveLog
from vmstore.log.commit import Commit
from vmstore.log.readonly import ReadLog

OPEN_MAX = 64  # archives kept open


class ColdLog(ReadLog):
    """The sessions of a manifest. Any thread may use it; `fetched` gives the path of a session's archive."""

    def __init__(
        self,
        address: str,
        sessions: Sequence[PublishedSession],
        fetched: Callable[[PublishedSession], Path],
        store_key: StoreKey | None = None,
    ) -> None:
        super().__init__(Path(address))
        self._address = address
        self._sessions = sessions
        self._fetched = fetched
        self._store_key = store_key
        self._commits = [0, *accumulate(session.commits for session in sessions)]  # up to each session
        self._cells = [0, *accumulate(session.cells for session in sessions)]
        self._open: OrderedDict[int, ArchiveLog] = OrderedDict()
        self._reading = threading.RLock()

    def _archive(self, nth: int) -> ArchiveLog:
        """The archive of a session, proven when it is opened."""
        log = self._open.get(nth)
        if log is None:
            session = self._sessions[nth]
            log = self._open[nth] = opened(self._address, session, self._fetched(session), self._store_key)
            while len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(nth)
        return log

    # ---- the log port, for reading

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""
        found: list[Commit] = []
        after = max(after, 0)
        with self._reading:
            while len(found) < limit and after < self.ordinal:
                nth = bisect_right(self._commits, after) - 1
                there = self._sessions[nth].past_commits + after - self._commits[nth]
                own = self._archive(nth).tail(there, limit - len(found))
                found += [self._numbered(nth, commit) for commit in own]
                after += len(own)
        return found

    def _numbered(self, nth: int, commit: Commit) -> Commit:
        """A commit of an archive as it is numbered here."""
        session, before = self._sessions[nth], self._commits[nth]
        return msgspec.structs.replace(
            commit,
            session=before + 1,
            ordinal=commit.ordinal - session.past_commits + before,
            cell=commit.cell and commit.cell - session.past_cells + self._cells[nth],
        )

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers, those of an archive read together."""
        wanted: dict[int, list[int]] = {}
        for number in numbers:
            if 0 < number <= self.last_cell:
                wanted.setdefault(bisect_right(self._cells, number - 1) - 1, []).append(number)
        found: dict[int, Cell] = {}
        with self._reading:
            for nth, those in wanted.items():
                shift = self._sessions[nth].past_cells - self._cells[nth]
                there = self._archive(nth).cells([number + shift for number in those])
                found |= {number - shift: cell for number, cell in there.items()}
        return found

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit."""
        return self._commits[-1]

    @property
    def last_cell(self) -> int:
        """The number of the last cell."""
        return self._cells[-1]

    def close(self) -> None:
        """Closes the archives."""
        with self._reading:
            for log in self._open.values():
                log.close()
            self._open.clear()

    def _refused(self) -> ReadOnlyError:
        return ReadOnlyError(f"{self._address} is a cold tier, which is only read; write to the store it came from")


def opened(address: str, session: PublishedSession, path: Path, store_key: StoreKey | None) -> ArchiveLog:
    """The archive of a session, which has to hold what its manifest says."""
    log = ArchiveLog(path, store_key=store_key)
    last = log.tail(log.ordinal - 1, 1)
    if (
        log.ordinal != session.past_commits + session.commits
        or not last
        or (last[0].last, last[0].hash.hex()) != (session.position, session.hash)
        or log.last_cell != session.past_cells + session.cells
    ):
        log.close()
        raise CorruptError(
            f"{address}/{session.archive.name} does not end where its manifest says; publish the session again from "
            "its store",
            code="cold-damaged",
        )
    return log
