"""What a question may take: seconds, rows of its answer, bytes; and the watch that stops one which takes more."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, NamedTuple

import apsw

from vmstore.errors import InputError
from vmstore.vmql.execution.result import Cancellation, Row, cancelled
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import SourceSpan

MESSAGES = {
    "time": ("the statement took longer than it may", "timeout", "narrow it, or give it more: timeout_s="),
    "memory": ("the statement needs more memory than it may", "too-large", "narrow it, or give it more: memory="),
}
LOOKED = 256  # rows between two looks at the limits


class QueryLimits(NamedTuple):
    """What a statement may take: seconds, rows of its answer, bytes; None for as much as it needs."""

    timeout_s: float | None = None
    rows: int | None = None
    memory: int | None = None

    @classmethod
    def of(cls, timeout_s: float | None, rows: int | None, memory: int | None) -> QueryLimits:
        """Limits as they are handed in; InputError names one that is none."""
        for name, limit in (("timeout_s", timeout_s), ("rows", rows), ("memory", memory)):
            if limit is None:
                continue
            number = isinstance(limit, int | float) and not isinstance(limit, bool) and isfinite(limit) and limit > 0
            if not number or (name != "timeout_s" and not isinstance(limit, int)):
                raise InputError(f"{name}={limit!r} is no limit; give a number above 0", code="not-a-limit")
        return cls(timeout_s, rows, memory)

    def more(self, text: str) -> QueryError:
        """What to say of an answer that has more rows."""
        span, hint = SourceSpan(0, len(text)), "write LIMIT, sum them up, or give it more: rows="
        message = f"the answer has more than {self.rows:,} rows"
        return QueryError(message, code="too-large", text=text, span=span, hint=hint)


class LimitedQuery(Cancellation):
    """Whether a statement is to stop: somebody wants it to, or it has passed a limit."""

    __slots__ = ("_bytes", "_end", "_held", "_memory", "_stopped", "_text", "_ticks", "passed")

    def __init__(self, limits: QueryLimits, ticks: Any, text: str) -> None:
        self._stopped = False
        self._ticks, self._text = ticks, text
        self._end = None if limits.timeout_s is None else ticks() + int(limits.timeout_s * 1_000_000)
        self._memory, self._held, self._bytes = limits.memory, apsw.memory_used(), 0
        self.passed: str | None = None
        super().__init__()

    @property
    def stopped(self) -> bool:
        """Whether it is to stop now."""
        if self._end is not None and self._ticks() > self._end:
            self.passed = self.passed or "time"
        elif self._memory is not None and max(apsw.memory_used() - self._held, 0) + self._bytes > self._memory:
            self.passed = self.passed or "memory"
        return self._stopped or self.passed is not None

    @stopped.setter
    def stopped(self, value: bool) -> None:
        self._stopped = value

    def error(self) -> QueryError:
        """What it ends in: the limit it passed, or that somebody stopped it."""
        if self.passed is None:
            return cancelled()
        message, code, hint = MESSAGES[self.passed]
        return QueryError(message, code=code, text=self._text, span=SourceSpan(0, len(self._text)), hint=hint)

    def took(self, row: Row) -> None:
        """Counts a row that is kept in memory."""
        self._bytes += 64 + sum(len(value) + 56 if isinstance(value, str | bytes) else 16 for value in row)

    def kept(self, rows: Iterable[Row]) -> list[Row]:
        """Rows that are kept until they are taken, each counted."""
        found: list[Row] = []
        for row in rows:
            self.took(row)
            found.append(row)
            if len(found) % LOOKED == 0:
                self.check()
        self.check()
        return found
