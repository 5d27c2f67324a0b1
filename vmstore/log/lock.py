"""The writers' queue across processes: whoever waits gets its turn, and a killed holder lets go.

SQLite's own write lock is taken by whoever asks at the right moment, so one of several writers can
be kept out for seconds. Writers therefore hold this file lock around their transaction. One of
those who wait stands at the door, held by a second lock, and the others behind it: a writer that
lets go and wants again at once finds somebody at the door, and cannot overtake who is only being
woken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from vmstore.core import process
from vmstore.errors import StoreError

if sys.platform != "win32":
    import fcntl


class WriteLock:
    """Held in a `with`, also within itself; not by two threads at a time, which the log sees to."""

    def __init__(self, path: Path) -> None:
        self._paths = path, path.with_suffix(".queue")
        self._files: tuple[int, ...] = ()
        self._sharing: tuple[int, ...] = ()
        self._depth = 0
        process.inherits(self)

    def __enter__(self) -> None:
        if not self._files:
            self._files = self._open()
        if self._depth == 0:
            held, door = self._files
            fcntl.flock(door, fcntl.LOCK_EX)
            try:
                fcntl.flock(held, fcntl.LOCK_EX)
            finally:
                fcntl.flock(door, fcntl.LOCK_UN)
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._files:  # in a process forked meanwhile there are none
            fcntl.flock(self._files[0], fcntl.LOCK_UN)

    @property
    def held(self) -> bool:
        """Whether this handle holds it."""
        return self._depth > 0

    @contextmanager
    def shared(self, make: bool) -> Iterator[None]:
        """Waits in the queue like everybody, then holds it together with others who share it; not within itself.

        Where its files are not there, and are not to be made or cannot be, nobody holds it.
        """
        self._sharing = tuple(file for path in self._paths if (file := _to_share(path, make)) is not None)
        try:
            if len(self._sharing) == len(self._paths):
                held, door = self._sharing
                fcntl.flock(door, fcntl.LOCK_SH)
                fcntl.flock(held, fcntl.LOCK_SH)
                fcntl.flock(door, fcntl.LOCK_UN)
            yield
        finally:
            for file in self._sharing:
                fcntl.flock(file, fcntl.LOCK_UN)  # what another library forked may have the file open too
                os.close(file)
            self._sharing = ()

    def _open(self) -> tuple[int, ...]:
        """Opens the files: a lock belongs to the opened file, so each handle opens its own."""
        opened: list[int] = []
        for path in self._paths:
            try:
                opened.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
            except OSError as error:
                for file in opened:
                    os.close(file)
                raise StoreError(f"{path} cannot be locked ({error.strerror}); open the store with mode 'r'") from error
        return tuple(opened)

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files:
            os.close(file)
        self._files = ()

    def forked(self) -> None:
        """Lets go of the files, which are one with those of the parent: held here, they would outlive its death."""
        for file in self._files + self._sharing:
            os.close(file)
        self._files, self._sharing, self._depth = (), (), 0


def _to_share(path: Path, make: bool) -> int | None:
    """A file to be locked by who only reads; None where there is none, and none is to be made or can be."""
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT) if make else (os.O_RDONLY,):
        with suppress(OSError):
            return os.open(path, flags, 0o644)
    return None
