"""The relations as tables of SQLite, each at the moment asked about: what SQL reads, and all that it can read.

A table hands out the rows of its relation as VMQL answers them. `pages` is of the moment of the
question, `pages_at('turn', 40)` of another, and a third argument names another session. Rows are
read when a statement first wants them, only the columns it names; what is looked up by value is
found by an index over them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import apsw

from vmstore.vmql.execution.virtual_table import RowCursor, RowTable
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.relations.facts import FACTS
from vmstore.vmql.relations.python_rows import CONTEXT
from vmstore.vmql.relations.relation import Field, Relation

Row = tuple[Any, ...]
Moment = tuple[Any, Any, Any]
"""The arguments of a table: the unit and the number of a moment, and a session; None where none is given."""
Filters = tuple[tuple[str, Any], ...]
Read = Callable[[Relation, tuple[str, ...], Moment, Filters], list[Row]]
"""Reads columns of a relation at a moment, of the rows with certain values, or of more than those."""

ARGUMENTS = ("at_unit", "at_value", "at_session")
HERE: Moment = (None, None, None)
LOOKUPS = 2  # values looked up by a statement of their own; from then on all rows are read once
EVER = FACTS._replace(name="FACTS_EVER", now="")
"""The facts that hold no more, or were replaced, with those that do: in VMQL `FACTS ALL`."""
SERVED: dict[str, Relation] = {
    **{name.lower(): relation for name, relation in RELATIONS.items()},
    **{"context": CONTEXT, "facts_ever": EVER},
}
"""The relations by the names of their tables."""
TABLES: dict[str, Relation] = {**SERVED, **{f"{name}_at": relation for name, relation in SERVED.items()}}


class Loaded(NamedTuple):
    """Rows of a relation at a moment, and the indexes over them by the columns they look up."""

    columns: tuple[str, ...]
    rows: list[Row]
    indexes: dict[tuple[str, ...], dict[Row, list[Row]]]

    def found(self, names: tuple[str, ...], key: Row) -> list[Row]:
        """The rows with certain values."""
        index = self.indexes.get(names)
        if index is None:
            index = self.indexes[names] = {}
            places = [self.columns.index(name) for name in names]
            for row in self.rows:
                index.setdefault(tuple(row[at] for at in places), []).append(row)
        return index.get(key, [])


class Source:
    """What the tables of one connection read, and what a statement has read of it already."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, read: Read | None) -> None:
        """Begins a statement, or, with None, ends one: nothing is kept between two."""
        self._read = read
        self._loaded: dict[Any, Loaded] = {}
        self._asked: dict[Any, int] = {}

    def rows(self, relation: Relation, columns: tuple[str, ...], moment: Moment, filters: Filters) -> list[Row]:
        """Columns of the rows at a moment that have certain values."""
        assert self._read is not None, "a statement was begun"
        key = (relation.name, columns, moment)
        loaded = self._loaded.get(key)
        names = tuple(name for name, _ in filters)
        if loaded is None:
            asked = self._asked[key, names] = self._asked.get((key, names), 0) + 1
            if filters and asked <= LOOKUPS:
                return self._read(relation, columns, moment, filters)
            loaded = self._loaded[key] = Loaded(columns, self._read(relation, columns, moment, ()), {})
        return loaded.found(names, tuple(value for _, value in filters)) if filters else loaded.rows


def kept(value: Any) -> Any:
    """A value of an answer as SQL has it: lists and objects as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


class SqlTable(RowTable):
    """The table of one relation: its columns, those that are dear hidden from `*`, as are the arguments."""

    def __init__(self, source: Source, relation: Relation) -> None:
        self.source, self.relation = source, relation
        shown = [field.name for field in relation.shown]
        asked = [name for name, field in relation.fields.items() if field.asked]
        self.columns = (*shown, *ARGUMENTS, *asked)
        self.first = len(shown)  # of the arguments
        named = [f'"{name}"' if name in shown else f'"{name}" HIDDEN' for name in self.columns]
        super().__init__(named)

    def BestIndexObject(self, info: Any) -> bool:  # noqa: N802
        """By the values that are looked up, where they are known by then; else all rows."""
        arguments, looked_up = [], []
        for number in range(info.nConstraint):
            column = info.get_aConstraint_iColumn(number)
            if column < 0 or info.get_aConstraint_op(number) != apsw.SQLITE_INDEX_CONSTRAINT_EQ:
                continue
            usable = info.get_aConstraint_usable(number)
            if self.columns[column] in ARGUMENTS:
                if not usable:
                    return False
                arguments.append((column, number))
            elif usable and info.get_aConstraint_collation(number) == "BINARY":
                looked_up.append((column, number))
        taken = arguments + list(dict(looked_up).items())
        for place, (column, number) in enumerate(taken, 1):
            info.set_aConstraintUsage_argvIndex(number, place)
            info.set_aConstraintUsage_omit(number, self.columns[column] in ARGUMENTS)
        used = sorted(info.colUsed)
        info.idxStr = f"{','.join(map(str, used))}|{','.join(str(column) for column, _ in taken)}"
        info.estimatedCost = 10.0 ** (6 - 2 * min(2, len(taken) - len(arguments)))
        info.estimatedRows = 10 ** (4 - min(3, len(taken) - len(arguments)))
        return True

    def Open(self) -> SqlCursor:  # noqa: N802
        """A cursor."""
        return SqlCursor(self)


class SqlCursor(RowCursor):
    """A cursor over rows that were read."""

    def __init__(self, table: SqlTable) -> None:
        self.table = table
        self.places: dict[int, int] = {}
        self.moment: Moment = HERE

    def Filter(self, _number: int, plan: str | None, values: tuple[Any, ...]) -> None:  # noqa: N802
        """Begins with the first row."""
        used, _, taken = (plan or "|").partition("|")
        columns, source = self.table.columns, self.table.source
        given = dict(zip((int(at) for at in taken.split(",") if at), values, strict=True))
        named = {columns[at]: value for at, value in given.items()}
        self.moment = tuple(named.pop(name, None) for name in ARGUMENTS)
        fields = self.table.relation.fields
        filters = tuple((name, value) for name, value in named.items() if suits(fields[name], value))
        wanted = sorted({int(at) for at in used.split(",") if at} | {columns.index(name) for name, _ in filters})
        wanted = [at for at in wanted if columns[at] not in ARGUMENTS] or [0]
        self.places = {at: place for place, at in enumerate(wanted)}
        none = any(value is None for value in named.values())  # nothing equals NULL
        names = tuple(columns[at] for at in wanted)
        self.begin(() if none else source.rows(self.table.relation, names, self.moment, filters))

    def Column(self, number: int) -> Any:  # noqa: N802
        """A value of the row, or of the arguments."""
        if number < 0:
            return self.number
        if number in self.places and self.row is not None:
            return self.row[self.places[number]]
        place = number - self.table.first
        return self.moment[place] if 0 <= place < len(ARGUMENTS) else None


def suits(field: Field, value: Any) -> bool:
    """Whether rows may be looked up by a value: one of another kind SQLite compares in its own way."""
    if field.form.type in ("integer", "real", "boolean"):
        return isinstance(value, int | float)
    return isinstance(value, str)


def register(db: apsw.Connection, tables: Mapping[str, Relation] = TABLES) -> Source:
    """Has a connection know the tables; what they read."""
    source = Source()
    for name, relation in tables.items():
        SqlTable(source, relation).register(db, name)
    return source
