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


class RelationTable:
    """The table of one relation: its fields in order, `row` (from 1) and, hidden, what makes them."""

    def __init__(self, relation: Relation) -> None:
        self.fields = len(relation.fields)
        names = ", ".join(f'"{name}"' for name in relation.fields)
        self.schema = f'CREATE TABLE made({names}, "row", made HIDDEN)'

    def Connect(self, *_: Any) -> tuple[str, RelationTable]:  # noqa: N802  the names are SQLite's
        """Nothing is kept between statements."""
        return self.schema, self

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
        return RowCursor(self.fields)

    def Disconnect(self) -> None:  # noqa: N802
        """Nothing to let go of."""

    Destroy = Disconnect


class RowCursor:
    """A cursor over rows as they are made."""

    def __init__(self, fields: int) -> None:
        self.fields = fields
        self.rows: Iterator[Row] = iter(())
        self.row: Row | None = None
        self.number = 0

    def Filter(self, _number: int, _name: str | None, values: tuple[Any, ...]) -> None:  # noqa: N802
        """Begins with the first row."""
        self.rows = iter(values[0]())
        self.number = 0
        self.Next()

    def Next(self) -> None:  # noqa: N802
        """Makes the next row."""
        self.row = next(self.rows, None)
        self.number += 1

    def Eof(self) -> bool:  # noqa: N802
        """Whether there was none."""
        return self.row is None

    def Column(self, number: int) -> Any:  # noqa: N802
        """A value of the row."""
        if number < 0 or number == self.fields:
            return self.number
        return self.row[number] if self.row is not None and number < self.fields else None

    def Rowid(self) -> int:  # noqa: N802
        """The number of the row."""
        return self.number

    def Close(self) -> None:  # noqa: N802
        """Releases the iterator that makes the rows."""
        self.rows = iter(())


def register(db: apsw.Connection) -> None:
    """Has a connection know the tables."""
    for relation in MADE:
        name = f"vm_{relation.name.lower()}"
        table: Any = RelationTable(relation)
        db.create_module(name, table, use_bestindex_object=True, eponymous_only=True, read_only=True)
