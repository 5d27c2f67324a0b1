"""Folding into a views file: of several processes, the one that holds the lock beside it.

The lock is the operating system's, so a kill frees it. Its file says who holds it and how
far they are; one who waits sees from it whether the holder still moves, and waits for no stopped one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vmstore.core.system import after_fork
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import LockedError
from vmstore.log.holder import PID_BYTES, holder_of

if sys.platform != "win32":
    import fcntl

WAIT_S_MIN = 0.0002
WAIT_S_MAX = 0.02
STUCK_S = 10.0
BUSY_S_MIN = 0.1
STOPPED_S = 0.2  # one that is stopped may go on just now

assert WAIT_S_MIN < WAIT_S_MAX < STOPPED_S < STUCK_S, "the holder is looked at several times before it is given up"
assert PID_BYTES == 10, "`holder_of` reads the process where `moved` writes it, before the ordinal"


class Applier:
    """The election among those who follow one log into one file; each handle has its own."""

    def __init__(self, path: Path, wait_s: float | None = WAIT_S) -> None:
        self.path = path
        self._stuck_s = STUCK_S if wait_s is None else min(STUCK_S, wait_s)
        self._file = -1
        after_fork.inherits(self)

    @property
    def busy_ms(self) -> int:
        """How long SQLite waits for a lock of its own on what is folded into."""
        return round(max(self._stuck_s, BUSY_S_MIN) * 1_000)

    def take(self) -> bool:
        """Becomes the one who folds, unless another is."""
        if self._file < 0:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.moved(0)
        return True

    def moved(self, ordinal: int) -> None:
        """Tells those who wait how far the fold is."""
        with suppress(OSError):  # a full disk: they wait for the rows instead
            os.pwrite(self._file, b"%-10d%-20d" % (os.getpid(), ordinal), 0)

    def release(self) -> None:
        """Lets another fold."""
        if self._file >= 0:  # in a process forked meanwhile there is none
            fcntl.flock(self._file, fcntl.LOCK_UN)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Folds alone; waits for another as long as it moves."""
        self.until(lambda: False)
        try:
            yield
        finally:
            self.release()

    def until(self, done: Callable[[], bool]) -> bool:
        """Waits until it may fold or need not: whether it may. Raises LockedError where the other stands still."""
        waited, wait, before = 0.0, WAIT_S_MIN, b""
        while not done():
            if self.take():
                return True
            assert self._file >= 0, "`take` opened the file, though another holds its lock"
            holder = os.pread(self._file, 30, 0)
            if holder != before:
                waited, before = 0.0, holder
            if waited > min(self._stuck_s, STOPPED_S) and (waited > self._stuck_s or holder_of(self.path).stopped):
                raise LockedError(self._still())
            time.sleep(wait)
            waited += wait
            wait = min(wait * 1.5, WAIT_S_MAX)
        return False

    def _still(self) -> str:
        """The error about a holder that stands still."""
        holder = holder_of(self.path)
        return (
            f"{self.path.with_suffix('')} is being written by {holder}, and nothing has come of it since: "
            f"{holder.remedy}, or open the store with mode 'r'"
        )

    def close(self) -> None:
        """Closes the lock's file, which stays for others."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def forked(self) -> None:
        """Closes the lock's file, which is shared with the parent."""
        self.close()
