"""Resources that a forked process releases before it does anything else.

SQLite's locks belong to a process, and its table of open files to the memory that a fork copies: a
child believes that it holds locks which its parent alone has. The next process to close the log
then takes itself for the last one and removes the WAL under the child, whose commits go to a file without a
name. So a child closes the connections it inherited, which folds nothing and removes nothing, and
opens its own; the parent keeps those it has.

That is safe only where nobody was inside a connection, so a fork waits for that, a limited time. What
is in use even then stays as it is, and its file cannot be opened in the child.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from weakref import WeakSet

import apsw

from vmstore.core.clock import SystemClock

WAIT_US = 2_000_000  # a fork waits so long, in all, for the threads inside a connection
LOCK_ORDER = HANDLE, FILE, KEYS = range(3)  # as one thread takes them

T = TypeVar("T")


class ReentrantLock(Protocol):
    """A lock that one thread holds, and may take again."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes it; whether that was possible."""
        ...

    def release(self) -> None:
        """Releases it."""
        ...


class ForkResource(Protocol):
    """Has something that a forked process must not share, such as the descriptor of a lock."""

    def forked(self) -> None:
        """Releases it, in the forked process."""
        ...


class Owner(ABC):
    """Has connections, which are used by who holds its entry."""

    lock_order = HANDLE

    @property
    @abstractmethod
    def entry(self) -> ReentrantLock:
        """The lock under which the connections are used."""

    def connections(self) -> Iterable[apsw.Connection]:
        """Those of SQLite that are open."""
        return ()

    def forking(self) -> None:
        """Releases what must not be in memory while the fork copies it; nobody is inside."""
        return

    @abstractmethod
    def forked(self, quiet: bool) -> None:
        """Forgets them, in the forked process; `quiet` where nobody was inside, and they are closed."""


class _Fork(NamedTuple):
    """A fork under way: all owners, so that none is freed meanwhile, and the entries that are held."""

    owners: list[Owner]
    held: list[ReentrantLock]


class _Process:
    """This process: how it came to be, and what of its parent's it must not touch."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.parent = 0  # the process it was forked from, once it was
        self.busy: set[tuple[int, int]] = set()  # files, as device and inode, that are open behind our back
        self.owners: WeakSet[Owner] = WeakSet()
        self.heirs: WeakSet[ForkResource] = WeakSet()
        self.forks: dict[int, _Fork] = {}  # by the thread that forks


_process = _Process()


def owns(owner: Owner) -> None:
    """Has the connections of an owner closed in forked processes."""
    assert owner.lock_order in LOCK_ORDER, (
        "a fork takes the locks in the order every thread does, or both wait for ever"
    )
    _process.owners.add(owner)


def inherits(heir: ForkResource) -> None:
    """Has an heir called in forked processes."""
    _process.heirs.add(heir)


def busy(path: Path) -> str | None:
    """Explains why a file cannot be opened in this process; None where it can."""
    if not _process.busy:
        return None
    with suppress(OSError):
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in _process.busy:
            return (
                f"{path} was in use when this process, {_process.pid}, was forked from {_process.parent}, so it cannot "
                "be opened here: fork while nothing is under way in it, or start the process by 'spawn'"
            )
    return None


def belongs_to_parent(path: Path) -> str:
    """The message of an error for the use of something that was begun before the fork."""
    return (
        f"what was begun with {path} before this process, {_process.pid}, was forked belongs to process "
        f"{_process.parent}: begin it again here, with the store or with one opened here"
    )


def unlocked(lock: threading.RLock) -> threading.RLock:
    """The lock for a forked process to use: a new one where a thread that is not here holds it."""
    if lock.acquire(blocking=False):
        lock.release()
        return lock
    return threading.RLock()


def keep(thing: object) -> None:
    """Keeps something for as long as the process lives, its end included: to free it would be worse."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


# ---- around a fork


def _before() -> None:
    """Waits until nobody is inside a connection, and keeps everybody out; a limited time."""
    clock = SystemClock()
    assert threading.get_ident() not in _process.forks, "what this thread holds for a fork is let go of after it"
    fork = _process.forks[threading.get_ident()] = _Fork(_all(_process.owners), [])
    end = clock.ticks() + WAIT_US
    for owner in sorted(fork.owners, key=lambda owner: owner.lock_order):
        guard = owner.entry
        if guard.acquire(timeout=max(0, end - clock.ticks()) / 1_000_000):
            fork.held.append(guard)
            owner.forking()


def _after() -> None:
    fork = _process.forks.pop(threading.get_ident(), None)
    for guard in reversed(fork.held) if fork is not None else ():
        guard.release()


def _in_child() -> None:
    """Closes what was inherited; what cannot be closed is kept, and its files are not opened here."""
    owners = {*_all(_process.owners), *(owner for fork in _process.forks.values() for owner in fork.owners)}
    _after()
    _process.forks.clear()
    _process.parent, _process.pid = _process.pid, os.getpid()
    for heir in _all(_process.heirs):
        heir.forked()
    for owner in owners:
        guard = owner.entry
        quiet = guard.acquire(blocking=False)  # else another thread had it, which is not here
        for db in owner.connections():
            if not (quiet and _closed(db)):
                keep(db)
        if quiet:
            guard.release()
        owner.forked(quiet)
    for db in apsw.connections():
        with suppress(apsw.Error, OSError):
            if db.filename:
                status = os.stat(db.filename)
                _process.busy.add((status.st_dev, status.st_ino))


def _closed(db: apsw.Connection) -> bool:
    """Closes an inherited connection without folding its WAL; whether that was possible, or needless."""
    try:
        if db.filename and db.txn_state() == apsw.SQLITE_TXN_WRITE:
            return False  # what it has written so far would be taken back, in the file of the parent
        if db.filename:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            db.close(True)
    except apsw.ConnectionClosedError:
        return True
    except apsw.Error:
        return False
    return True


def _all(things: Iterable[T]) -> list[T]:
    """A copy of a collection that other threads may add to meanwhile."""
    while True:
        try:
            return list(things)
        except RuntimeError:
            continue


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
