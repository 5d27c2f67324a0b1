"""The writers' queue across processes: whoever waits gets its turn, and a killed holder lets go.

SQLite's own write lock is taken by whoever asks at the right moment, so one of several writers can
be kept out for seconds. Writers therefore hold this file lock around their transaction; the
system wakes those who wait for it in turn.
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
    """Held in a `with`, also within itself; not by two threads at a time, which the log sees to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._depth = 0

    def __enter__(self) -> None:
        if self._file < 0:
            self._file = self._open()
        if self._depth == 0:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    @property
    def held(self) -> bool:
        """Whether this handle holds it."""
        return self._depth > 0

    def _open(self) -> int:
        """Opens the file: a lock belongs to the opened file, so each handle opens its own."""
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be locked ({error.strerror}); open the store with mode 'r'"
            ) from error

    def close(self) -> None:
        """Lets go of the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
