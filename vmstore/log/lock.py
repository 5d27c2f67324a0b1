"""The writers' queue across processes: whoever waits gets its turn, and a killed holder lets go.

SQLite's own write lock is taken by whoever asks at the right moment, so one of several writers can
be kept out for seconds. Writers therefore hold this lock around their transaction. It is two file
locks: a waiter holds the `door` while it waits for the `seat`, so that the one who just left the
seat has to queue at the door again, behind those who already stand there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from vmstore.errors import StoreError

if sys.platform != "win32":
    import fcntl


class WriteLock:
    """Held in a `with`; not by two threads at a time, which the log sees to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._door = self._seat = -1

    def __enter__(self) -> None:
        if self._seat < 0:
            self._open()
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._seat, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        fcntl.flock(self._seat, fcntl.LOCK_UN)

    def _open(self) -> None:
        """Opens the two files: a lock belongs to an opened file, so each handle opens its own."""
        try:
            self._door, self._seat = (
                os.open(self._path.with_suffix(suffix), os.O_RDWR | os.O_CREAT, 0o644) for suffix in (".door", ".seat")
            )
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be locked ({error.strerror}); open the store with mode 'r'"
            ) from error

    def close(self) -> None:
        """Lets go of the files."""
        for handle in (self._door, self._seat):
            if handle >= 0:
                os.close(handle)
        self._door = self._seat = -1
