"""Rows that are made in Python as a table of SQLite: filtered, grouped and ordered like any other.

A statement names a table `vm_<relation>(:rows)` and binds what makes the rows; they are made as
they are taken, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apsw

from vmstore.vmql.relations.python_rows import MADE
from vmstore.vmql.relations.relation import Relation

Row = tuple[Any, ...]
Make = Callable[[], Iterable[Row]]


class RowTable:
    """A table of SQLite that has no rows of its own."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.schema = f"CREATE TABLE made({', '.join(columns)})"

    def Connect(self, *_: Any) -> tuple[str, RowTable]:  # noqa: N802  the names are SQLite's
        """Nothing is kept between statements."""
        return self.schema, self

    def Disconnect(self) -> None:  # noqa: N802
        """Nothing to let go of."""

    Destroy = Disconnect

    def register(self, db: apsw.Connection, name: str) -> None:
        """Has a connection know it by a name."""
        table: Any = self
        db.create_module(name, table, use_bestindex_object=True, eponymous_only=True, read_only=True)


class RowCursor:
    """A cursor over rows, which are taken one at a time; `number` is that of the row, from 1."""

    rows: Iterator[Row] = iter(())
    row: Row | None = None
    number = 0

    def begin(self, rows: Iterable[Row]) -> None:
        """Takes the first of some rows."""
        self.rows, self.number = iter(rows), 0
        self.Next()

    def Next(self) -> None:  # noqa: N802
        """Takes the next row."""
        self.row = next(self.rows, None)
        self.number += 1

    def Eof(self) -> bool:  # noqa: N802
        """Whether there was none."""
        return self.row is None

    def Rowid(self) -> int:  # noqa: N802
        """The number of the row."""
        return self.number

    def Close(self) -> None:  # noqa: N802
        """Releases the rows, and what makes them."""
        self.rows = iter(())


class RelationTable(RowTable):
    """The table of one relation: its fields in order, `row` (from 1) and, hidden, what makes them."""

    def __init__(self, relation: Relation) -> None:
        self.fields = len(relation.fields)
        super().__init__((*(f'"{name}"' for name in relation.fields), '"row"', "made HIDDEN"))

    def BestIndexObject(self, info: Any) -> bool:  # noqa: N802
        """The one way to the rows is to make them."""
        for number in range(info.nConstraint):
            if info.get_aConstraint_iColumn(number) == self.fields + 1:
                if not info.get_aConstraint_usable(number):
                    return False
                info.set_aConstraintUsage_argvIndex(number, 1)
                info.set_aConstraintUsage_omit(number, True)
        info.estimatedCost = 1e6
        return True

    def Open(self) -> RowCursor:  # noqa: N802
        """A cursor."""
        return MadeCursor(self.fields)


class MadeCursor(RowCursor):
    """A cursor over rows as they are made."""

    def __init__(self, fields: int) -> None:
        self.fields = fields

    def Filter(self, _number: int, _plan: str | None, values: tuple[Any, ...]) -> None:  # noqa: N802
        """Begins with the first row."""
        self.begin(values[0]())

    def Column(self, number: int) -> Any:  # noqa: N802
        """A value of the row."""
        if number < 0 or number == self.fields:
            return self.number
        return self.row[number] if self.row is not None and number < self.fields else None


def register(db: apsw.Connection) -> None:
    """Has a connection know the tables."""
    for relation in MADE:
        RelationTable(relation).register(db, f"vm_{relation.name.lower()}")
