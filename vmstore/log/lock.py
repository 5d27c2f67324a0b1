"""The writers' queue across processes: a waiter gets its turn, or an error naming the holder; a kill frees the lock.

SQLite's own write lock goes to the writer that tries at the right moment, so one of several can
starve for seconds. Writers therefore hold this file lock around their transaction. One of
those waiting stands at the door, held by a second lock, and the others behind it: a writer that
releases it and wants it again at once finds somebody at the door, and cannot overtake a process that is
only being woken.

The system lets nobody stop waiting for such a lock, so who has to wait does it in a thread of its
own, and gives up when that took as long as it may. What a waiting thread holds that questions need,
others have meanwhile.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from vmstore.core.system import after_fork
from vmstore.core.system.waits import MINE, WAIT_S, ReleasedLoans, seconds
from vmstore.errors import LockedError, StoreError
from vmstore.log.holder import LockHolder, holder_of, sign

if sys.platform != "win32":
    import fcntl

BACK_S = 0.05  # a question that takes longer is waited for without the lock


class WriteLock:
    """Held in a `with`, also within itself, by one thread at a time; waits for `wait_s` seconds, None for ever."""

    def __init__(self, path: Path, wait_s: float | None = WAIT_S) -> None:
        self._paths = path, path.with_suffix(".queue")
        self._queue: _Queue | None = None
        self._turn = threading.RLock()
        self._depth = 0
        self._wait_s = wait_s
        self._gave_up: tuple[float, LockHolder] | None = None  # when, and on whom
        self._sharing: _Queue | None = None
        after_fork.inherits(self)

    def __enter__(self) -> None:
        self._enter_turn()
        try:
            if self._queue is None:
                self._queue = _Queue(self._open(), fcntl.LOCK_EX)
            if self._depth == 0:
                self._take(self._queue)
                sign(self._queue.files[0])
            self._depth += 1
        except BaseException:
            self._turn.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._queue is not None:  # in a process forked meanwhile there is none
            self._queue.let_go()
        self._turn.release()

    @property
    def held(self) -> bool:
        """Whether this handle holds it."""
        return self._depth > 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keeps the other threads of this handle from it, and no other process."""
        self._enter_turn()
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def within(self, wait_s: float) -> Iterator[None]:
        """Held, unless that takes longer than so many seconds."""
        with self.turn():
            usual = self._wait_s
            self._wait_s = wait_s if usual is None else min(usual, wait_s)
            try:
                self.__enter__()
            finally:
                self._wait_s = usual
            try:
                yield
            finally:
                self.__exit__(None, None, None)

    @contextmanager
    def shared(self, make: bool) -> Iterator[None]:
        """Waits in the queue like everybody, then holds it together with others who share it; not within itself.

        Where its files are not there, and are not to be made or cannot be, nobody holds it.
        """
        assert not self.held and self._sharing is None, "a process that waited for its own lock would wait for ever"
        files = [file for path in self._paths if (file := _to_share(path, make)) is not None]
        queue = _Queue((files[0], files[1]), fcntl.LOCK_SH) if len(files) == len(self._paths) else None
        self._sharing = queue
        try:
            if queue is not None and not queue.passed():
                given = ReleasedLoans()
                try:
                    if not queue.wait(self._wait_s):
                        raise self._locked(queue)
                finally:
                    given.take_back()
            yield
        finally:
            if queue is None:
                for file in files:
                    os.close(file)
            elif self._sharing is queue:  # else in a process that was forked meanwhile
                queue.close()
            self._sharing = None

    def _enter_turn(self) -> None:
        """Waits for the other threads of this handle, who may wait for another process."""
        while not self._turn.acquire(blocking=False):
            given = ReleasedLoans()
            MINE.since = seconds() if MINE.since is None else MINE.since
            try:
                self._turn.acquire()
            except BaseException:
                given.take_back()
                raise
            if given.take_back(BACK_S):
                return
            self._turn.release()  # a long question, which may want the lock itself
            given.take_back()

    def _take(self, queue: _Queue) -> None:
        """Takes the lock from other processes, or raises LockedError when that took too long."""
        until = None if self._wait_s is None else seconds() + self._wait_s
        while not queue.passed():
            given = ReleasedLoans()
            try:
                self._wait(queue, until)
            except BaseException:
                given.take_back()
                raise
            if given.take_back(BACK_S):
                break
            queue.let_go()  # a long question: other processes write meanwhile
            began = seconds()
            given.take_back()
            until = None if until is None else until + seconds() - began
        MINE.since = self._gave_up = None

    def _wait(self, queue: _Queue, until: float | None) -> None:
        """Waits in the queue of processes; who waited for a thread that gave up on the holder gives up too."""
        since, MINE.since = MINE.since, None
        if self._gave_up is not None and since is not None:
            when, holder = self._gave_up
            if since <= when and holder_of(self._paths[0])[:2] == holder[:2] and not queue.wait(0.0):
                raise self._locked(queue)
        if not queue.wait(None if until is None else until - seconds()):
            self._gave_up = seconds(), holder_of(self._paths[0])
            raise self._locked(queue)

    def _locked(self, queue: _Queue) -> LockedError:
        """The error of a wait that took too long: who holds the lock, or stands stopped at the door."""
        holder = holder_of(self._paths[0])
        if not holder.stopped and not queue.at_door and (next_one := holder_of(self._paths[1])).stopped:
            holder = next_one
        return LockedError(
            f"{self._paths[0]} is held by {holder}, and did not come free within {self._wait_s:g} s: nothing was "
            f"written; {holder.remedy}, then try again"
        )

    def _open(self) -> tuple[int, int]:
        """Opens the files: a lock belongs to the opened file, so each handle opens its own."""
        opened: list[int] = []
        for path in self._paths:
            try:
                opened.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
            except OSError as error:
                for file in opened:
                    os.close(file)
                raise StoreError(
                    f"{path} cannot be locked ({error.strerror}); open the store with mode 'r'", code="not-lockable"
                ) from error
        return opened[0], opened[1]

    def close(self) -> None:
        """Closes the files; a wait that is not over closes its own at its end."""
        if self._queue is not None:
            self._queue.close()
        self._queue = None

    def forked(self) -> None:
        """Closes the files, which are shared with the parent: its locks would outlive it here."""
        for queue in (self._queue, self._sharing):
            for file in () if queue is None else queue.files:
                os.close(file)
        self._queue, self._sharing, self._depth = None, None, 0
        self._turn = after_fork.unlocked(self._turn)


class _Queue:
    """A place in the queue of processes for a lock; `files` are the lock and the door."""

    def __init__(self, files: tuple[int, int], kind: int) -> None:
        self.files = files
        self.at_door = False
        self._kind = kind
        self._mutex = threading.Lock()  # over what follows
        self._thread: threading.Thread | None = None  # of a wait that is not over
        self._ended = threading.Event()
        self._wanted = self._closed = False
        self._error: OSError | None = None

    def passed(self) -> bool:
        """Takes the lock where nobody is in the way."""
        if self._thread is not None:  # a wait that was given up is still under way, and would release the lock
            return False
        turnstile, door = self.files
        with suppress(BlockingIOError):
            fcntl.flock(door, self._kind | fcntl.LOCK_NB)
            try:
                fcntl.flock(turnstile, self._kind | fcntl.LOCK_NB)
                return True
            finally:
                fcntl.flock(door, fcntl.LOCK_UN)
        return False

    def wait(self, wait_s: float | None) -> bool:
        """Waits for the lock; whether it came in time. One that comes later is let go of at once."""
        with self._mutex:
            self._wanted = True
            if self._thread is None:
                if wait_s is not None and wait_s <= 0:
                    return False
                self._ended.clear()
                self._thread = threading.Thread(target=self._stand, name="vmstore-wait", daemon=True)
                self._thread.start()
        try:
            came = self._ended.wait(None if wait_s is None else max(0.0, wait_s)) or not self._given_up()
        except BaseException:
            if not self._given_up():
                self.let_go()
            raise
        if self._error is not None:
            raise StoreError(f"a lock cannot be had ({self._error}); mend the disk, then try again") from self._error
        return came

    def let_go(self) -> None:
        """Lets others have the lock; a forked process may have the file open too."""
        fcntl.flock(self.files[0], fcntl.LOCK_UN)

    def close(self) -> None:
        """Releases the lock and the files, now or when the wait for it ends."""
        with self._mutex:
            self._closed = True
            if self._thread is None:
                self._close()

    def _given_up(self) -> bool:
        """Wants the lock no more; False where it came just now."""
        with self._mutex:
            self._wanted = self._thread is None
            return not self._wanted

    def _close(self) -> None:
        assert self._thread is None, "a wait that is not over still needs the files"
        self.let_go()
        for file in self.files:
            os.close(file)

    def _stand(self) -> None:
        turnstile, door = self.files
        self._error = None
        try:
            fcntl.flock(door, self._kind)
            self.at_door = True
            sign(door)
            try:
                fcntl.flock(turnstile, self._kind)
            finally:
                fcntl.flock(door, fcntl.LOCK_UN)
        except OSError as error:
            self._error = error
        with self._mutex:
            assert self._thread is threading.current_thread(), "one thread at a time waits for a place in the queue"
            self.at_door, self._thread = False, None
            if not self._wanted:
                self.let_go()
            if self._closed:
                self._close()
            self._ended.set()


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock of a file, found without keeping anybody from it for longer than a moment."""
    file = _to_share(path, make=False)
    if file is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _to_share(path: Path, make: bool) -> int | None:
    """A file to be locked by who only reads; None where there is none, and none is to be made or can be."""
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT) if make else (os.O_RDONLY,):
        with suppress(OSError):
            return os.open(path, flags, 0o644)
    return None
