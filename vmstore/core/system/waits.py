"""Locks that a thread lends to others while it waits, and since when it waits.

A writer may wait for another process, and the threads beside it have questions that wait for nobody.
So whatever a thread holds that questions need it gives up for as long as it waits, and takes back after.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from vmstore.core.clock import SystemClock

WAIT_S = 30.0  # for other processes, unless a store is opened with another limit
WAIT_S_MAX = 1_000_000


class Loan(Protocol):
    """A lock of one thread that may be given up for a while."""

    def give_up(self) -> int:
        """Lets others have it; how often this thread held it, 0 where it cannot be given up now."""
        ...

    def take_back(self, depth: int, seconds: float = -1.0) -> bool:
        """Holds it as often again; whether that was possible within some seconds, by default whenever it is."""
        ...


class _Mine(threading.local):
    """The locks that the current thread holds, and since when it waits for others of its process."""

    def __init__(self) -> None:
        self.loans: list[Loan] = []
        self.since: float | None = None


MINE = _Mine()


class ReleasedLoans:
    """Loans that were given up, to be taken back."""

    def __init__(self) -> None:
        self._given = [(loan, depth) for loan in MINE.loans if (depth := loan.give_up())]

    def take_back(self, seconds: float = -1.0) -> bool:
        """Takes all of them back; False where that took longer, and then none is taken."""
        for at, (loan, depth) in enumerate(self._given):
            if not loan.take_back(depth, seconds):
                for released, _ in self._given[:at]:
                    released.give_up()
                return False
        return True


@contextmanager
def queued() -> Iterator[None]:
    """Waits within for another thread, which may wait for another process: others have what this one holds."""
    given = ReleasedLoans()
    if MINE.since is None:
        MINE.since = seconds()
    try:
        yield
    finally:
        given.take_back()


def seconds() -> float:
    """Seconds of a clock that never runs backwards."""
    return SystemClock().ticks() / 1e6
