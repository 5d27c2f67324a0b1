"""Sources of time, ids and randomness: callers pass these in, and no room below reads its own.

Times are whole microseconds since 1970 UTC. This is the only module below the doors that asks
the machine; everything else is given a `Clock` or an `IdSource`.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import Protocol

from vmstore.errors import InputError

SALT_BYTES = 16
MICROSECONDS_MAX = 100_000 * 366 * 24 * 3600 * 10**6
assert 2 * MICROSECONDS_MAX < 1 << 63, "a time and a lag, and their sum, fit into a column"


class Clock(Protocol):
    """Tells when it is."""

    def now(self) -> int:
        """Microseconds since 1970 UTC."""
        ...


class Stopwatch(Clock, Protocol):
    """A clock that can also measure how long something took."""

    def ticks(self) -> int:
        """Microseconds since some moment in the past; never runs backwards."""
        ...


class IdSource(Protocol):
    """Makes the values that must not repeat or must not be guessed."""

    def salt(self) -> bytes:
        """Sixteen fresh bytes."""
        ...

    def salts(self, count: int) -> list[bytes]:
        """As many salts as are needed now, at once."""
        ...


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def now(self) -> int:
        """Microseconds since 1970 UTC."""
        return time.time_ns() // 1_000

    def ticks(self) -> int:
        """Microseconds of the machine's monotonic clock."""
        return time.monotonic_ns() // 1_000


class SystemIds:
    """Ids and salts from the operating system.

    Salts are drawn together where several are needed, and never ahead: a buffer would be shared
    with a forked process.
    """

    __slots__ = ()

    def salt(self) -> bytes:
        """Sixteen random bytes."""
        return os.urandom(SALT_BYTES)

    def salts(self, count: int) -> list[bytes]:
        """As many as that, sixteen random bytes each."""
        assert count > 0, "salts are drawn for the cells there are, never ahead"
        drawn = os.urandom(SALT_BYTES * count)
        return [drawn[at : at + SALT_BYTES] for at in range(0, len(drawn), SALT_BYTES)]


class ManualClock:
    """A clock for tests: each look at it answers, then moves it on by `step`."""

    __slots__ = ("_at", "_step")

    def __init__(self, start: int = 0, step: int = 1) -> None:
        assert step >= 0, "a clock that runs backwards is set with `advance`"
        self._at = start
        self._step = step

    def now(self) -> int:
        """The time it stands at; moves it on by one step."""
        at = self._at
        self._at += self._step
        return at

    def ticks(self) -> int:
        """The same as `now`."""
        return self.now()

    def advance(self, by: int) -> None:
        """Moves the clock by `by` microseconds, backwards where negative."""
        self._at += by


class SeededIds:
    """Ids and salts for tests: the same seed gives the same ones in the same order."""

    __slots__ = ("_count", "_seed")

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._count = 0

    def salt(self) -> bytes:
        """The next sixteen bytes."""
        return self._next()

    def salts(self, count: int) -> list[bytes]:
        """The next so many."""
        return [self._next() for _ in range(count)]

    def _next(self) -> bytes:
        self._count += 1
        return hashlib.sha256(f"{self._seed}/{self._count}".encode()).digest()[:SALT_BYTES]


def within(what: str, number: int | None) -> int | None:
    """A number of microseconds, refused where the log could not hold it."""
    if number is not None and (type(number) is not int or abs(number) > MICROSECONDS_MAX):
        raise InputError(
            f"{what} {number!r:.40} is no whole number of microseconds within 100,000 years", code="not-a-time"
        )
    return number
