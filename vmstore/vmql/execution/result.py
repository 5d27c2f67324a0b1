"""What a query answers: rows as they are taken, their columns, and the moment they hold for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.vmql.syntax.errors import QueryError, fault

Row = tuple[Any, ...]


class Column(NamedTuple):
    """A column of an answer; `type` is integer, real, text, boolean, time, list or json."""

    name: str
    type: str


def unlike(names: Sequence[str]) -> list[str]:
    """Names of which no two are the same: the second `tokens` is `tokens_2`."""
    used: dict[str, None] = {}
    for name in names:
        number, free = 1, name
        while free in used or (number > 1 and free in names):
            number += 1
            free = f"{name}_{number}"
        used[free] = None
    return list(used)


class Cancellation:
    """Whether somebody wants a query to stop; the query looks as it goes."""

    __slots__ = ("__weakref__", "asker", "stopped")

    def __init__(self) -> None:
        self.stopped = False
        self.asker = threading.get_ident()  # the thread that asks

    def check(self) -> None:
        """Raises QueryError where it was stopped."""
        if self.stopped:
            raise self.error()

    def error(self) -> QueryError:
        """What it ends in."""
        return cancelled()

    def kept(self, rows: Iterable[Row]) -> list[Row]:
        """Rows that are kept until they are taken."""
        return list(rows)


def cancelled() -> QueryError:
    """What a query that was stopped ends in."""
    return fault("the query was cancelled", "cancelled")


class Result:
    """An answer: an iterable of tuples, made as they are taken, once.

    `basis` is the moment it holds for; given back (AS OF POSITION basis.position) it repeats the
    answer. `kind` says how it may be drawn: table, context, diff, history, lineage, why, text,
    messages, explain. `next` is, once a limited answer was taken whole, the cursor for AFTER, None
    where nothing follows.
    """

    def __init__(
        self,
        kind: str,
        basis: dict[str, Any],
        columns: Sequence[Column],
        rows: Iterator[Row],
        *,
        watch: Cancellation,
        ticks: Callable[[], int],
        began: int,
        statement: Any = None,
        following: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.kind = kind
        self.basis = basis
        self.columns = tuple(columns)
        self.statement = statement
        self._rows = rows
        self._watch = watch
        self._ticks = ticks
        self._began = began
        self._elapsed = ticks() - began
        self._following = following
        self._left: int | None = None  # rows that may still be taken
        self._more: Callable[[], QueryError] = cancelled

    def within(self, rows: int | None, more: Callable[[], QueryError]) -> Result:
        """The same answer with so many rows at most, and what it raises where there are more."""
        self._left, self._more = rows, more
        return self

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        self._watch.check()
        try:
            row = next(self._rows)
        finally:
            self._elapsed = self._ticks() - self._began
        if self._left is not None:
            if self._left == 0:
                raise self._more()
            self._left -= 1
        return row

    @property
    def next(self) -> str | None:
        """The cursor after a limited answer that was taken whole."""
        return self._following()

    @property
    def elapsed_ms(self) -> float:
        """How long it took to ask and to take what was taken so far, in milliseconds."""
        return self._elapsed / 1000

    def cancel(self) -> None:
        """Stops it, from any thread: the thread that takes rows gets a QueryError."""
        self._watch.stopped = True

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows that are left, each by the names of its columns."""
        names = unlike([column.name for column in self.columns])
        return [dict(zip(names, row, strict=True)) for row in self]

    def to_json(self) -> dict[str, Any]:
        """The whole answer as plain values, the same as `vmql --json` prints; `next` where more follows."""
        rows = self.to_dicts()
        fields: dict[str, Any] = {
            "basis": self.basis,
            "columns": [column._asdict() for column in self.columns],
            "rows": rows,
            "elapsed_ms": round(self.elapsed_ms, 3),
        }
        if self.next is not None:
            fields["next"] = self.next
        return fields

    def arrow(self) -> Any:
        """The rows that are left as an Arrow table; needs pyarrow."""
        import pyarrow

        types = {
            "integer": pyarrow.int64(),
            "real": pyarrow.float64(),
            "boolean": pyarrow.bool_(),
            "list": pyarrow.list_(pyarrow.string()),
        }
        rows = list(self)
        arrays = []
        for at, column in enumerate(self.columns):
            values = [row[at] for row in rows]
            if column.type == "json":
                values = [None if value is None else json.dumps(value) for value in values]
            arrays.append(pyarrow.array(values, types.get(column.type, pyarrow.string())))
        return pyarrow.Table.from_arrays(arrays, [column.name for column in self.columns])
