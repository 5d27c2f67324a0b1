"""How fast a session's memory works, by the clock of its log: what a fault waits for, how often pages go."""

from __future__ import annotations

from bisect import insort

MINUTE_US = 60_000_000


class Pace:
    """Times of commits, in microseconds. What stands in one commit happened at one moment: it took no time here."""

    def __init__(self) -> None:
        self._commit = self._now = 0
        self._first: int | None = None
        self._last = 0
        self._waiting: list[tuple[int, int]] = []  # faults no call has shown yet: in which commit, when
        self._took: list[int] = []  # in order

    def begin(self, at: int) -> None:
        """A commit begins that happened at a time."""
        self._commit += 1
        self._now = at

    def tick(self) -> None:
        """Something happened in it."""
        self._first = self._now if self._first is None else self._first
        self._last = max(self._last, self._now)

    def served(self) -> None:
        """A fault was served; what it brought is in the next call."""
        self._waiting.append((self._commit, self._now))

    def called(self) -> None:
        """A call shows what was asked for before; what its own commit asked for nobody waited for."""
        for commit, at in self._waiting:
            if commit != self._commit:
                insort(self._took, max(0, self._now - at))
        self._waiting.clear()

    def latency_ms(self, percent: int) -> float | None:
        """The time from a fault to the call that shows the page, that so many of a hundred keep; None without one."""
        if not self._took:
            return None
        return self._took[-(-len(self._took) * percent // 100) - 1] / 1_000

    def a_minute(self, count: int) -> float | None:
        """A count over the time from the first commit to the last; None where no time went by."""
        span = self._last - (self._last if self._first is None else self._first)
        return round(count * MINUTE_US / span, 6) if span > 0 else None
