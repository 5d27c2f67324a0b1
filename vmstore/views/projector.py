"""The base of all projectors: a name, a version, tables, and one handler for each kind that is followed.

A handler is a method `on_<kind>(fact, mutation)`; `on_commit(fact, mutations)` sees each commit
once, before its mutations. Handlers collect rows and keep what they need of the past at hand;
`flush` writes a batch's rows at once, in the order of their keys. A projector changes its own
tables and reads only what the log says up to the fact: itself, the commit, and the tables as the
last flush left them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import apsw

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.core.mutation_kind import MUTATION_NAMES, PLANNED, CellRef
from vmstore.core.text.json_text import is_text, plain
from vmstore.log.commit import Commit

if TYPE_CHECKING:
    from vmstore.views.cell_resolver import CellResolver

Row = tuple[Any, ...]
VALUES_MAX = 2000  # bound at once: longer statements save no more


class PlacedMutation:
    """One mutation with its moment: where it stands and in which turn and call.

    One object serves a whole commit; the fold moves it from mutation to mutation.
    """

    __slots__ = ("_cellar", "_commitments", "at", "call", "cell", "commit", "position", "session", "turn")

    def __init__(self, commit: Commit, turn: int, call: int, cellar: CellResolver) -> None:
        self.commit = commit
        self.position = commit.first
        self.turn = turn
        self.call = call
        self.session = commit.session
        self.at = commit.at
        self.cell = commit.cell
        self._commitments = commit.commitments
        self._cellar = cellar

    def sealed(self, ref: CellRef | None) -> tuple[int | None, bytes | None]:
        """The log's number of a cell, and its commitment."""
        if type(ref) is int:
            at = ref * COMMITMENT_BYTES
            found = self._commitments[at : at + COMMITMENT_BYTES]
            if len(found) == COMMITMENT_BYTES:
                return self.cell + ref, found
        return (None, None) if ref is None else self._cellar.sealed(self.commit, ref)

    def number(self, ref: CellRef | None) -> int | None:
        """The log's number of a cell."""
        return self.cell + ref if type(ref) is int else self.sealed(ref)[0]

    def erased(self, ref: CellRef) -> bool:
        """Whether a cell is known to be erased."""
        return self._cellar.erased(self.commit, ref)

    def content(self, ref: CellRef | None) -> bytes | None:
        """The bytes of a cell, None where it was erased: for names and labels, not for contents."""
        return None if ref is None else self._cellar.content(self.commit, ref)

    def read(self, ref: CellRef | None) -> bytes | None:
        """The bytes of a cell of which nothing of their length is kept, None where it was erased."""
        return None if ref is None else self._cellar.content(self.commit, ref, kept=False)

    def text(self, ref: CellRef | None) -> str | None:
        """The text of a cell."""
        content = self.content(ref)
        if content is None or is_text(content):
            return None if content is None else plain(content.decode("utf-8", "surrogatepass"))
        return content.decode("utf-8", "replace")  # an earlier version let it in


def check_handlers(listener: type) -> None:
    """Raises TypeError where a class has a handler that would never be called, because no mutation is of its kind."""
    kinds = {name for number, name in MUTATION_NAMES.items() if number not in PLANNED}
    for name in dir(listener):
        if name.startswith("on_") and name != "on_commit" and name[3:] not in kinds:
            raise TypeError(
                f"{listener.__name__}.{name} would never be called: there is no mutation of the kind {name[3:]!r}; "
                f"the kinds are {', '.join(sorted(kinds))}"
            )


class Projector:
    """The fold rule of one view and its running state; subclasses add tables and handlers.

    A handler whose name is no kind of mutation is refused when the class is made.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    schema: ClassVar[dict[str, str]]  # table -> its columns and keys, as in CREATE TABLE; the key's columns first
    selects: ClassVar[dict[str, str]] = {}  # what is read as a table and stored in others
    indexes: ClassVar[tuple[str, ...]] = ()
    inserts: ClassVar[dict[str, str]] = {}  # how rows come into a table where it is no plain INSERT

    def __init_subclass__(cls) -> None:
        """Refuses a handler that would never be called."""
        super().__init_subclass__()
        check_handlers(cls)

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.rows: dict[str, list[Row]] = {table: [] for table in self.schema}

    @classmethod
    def create(cls, db: apsw.Connection) -> None:
        """Makes the view's empty tables."""
        for statement in cls.statements():
            db.execute(statement)

    @classmethod
    def statements(cls) -> Iterator[str]:
        """The SQL statements that create its tables, views and indexes."""
        yield from (f"CREATE TABLE {table}({columns}) WITHOUT ROWID" for table, columns in cls.schema.items())
        yield from (f"CREATE VIEW {name} AS {select}" for name, select in cls.selects.items())
        yield from cls.indexes

    @classmethod
    def drop(cls, db: apsw.Connection) -> None:
        """Forgets the view; the log can give it back."""
        for name in cls.selects:
            db.execute(f"DROP VIEW IF EXISTS {name}")
        for table in cls.schema:
            db.execute(f"DROP TABLE IF EXISTS {table}")

    @classmethod
    def kinds(cls) -> list[str]:
        """The kinds of mutation it follows."""
        return [name[3:] for name in dir(cls) if name.startswith("on_") and name != "on_commit"]

    def on_commit(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Sees a whole commit; `fact` is the moment before its first mutation."""

    def flush(self) -> None:
        """Writes the rows collected since the last time."""
        for table, rows in self.rows.items():
            if rows:
                put(self.db, f"{self.inserts.get(table, 'INSERT')} INTO {table}", rows)
                rows.clear()

    def forget(self) -> None:
        """Drops everything in memory; the tables have the rest."""
        for rows in self.rows.values():
            rows.clear()


def put(db: apsw.Connection, insert: str, rows: list[Row]) -> None:
    """Writes rows in the order of their keys, many to a statement."""
    rows.sort()
    width = len(rows[0])
    assert width == len(rows[-1]) <= VALUES_MAX, "rows of one table have one width, and a statement holds at least one"
    marks = "(" + ",".join("?" * width) + ")"
    together = VALUES_MAX // width
    whole = len(rows) - len(rows) % together
    if whole:
        many = f"{insert} VALUES" + ",".join([marks] * together)
        db.executemany(many, (flat(rows[at : at + together]) for at in range(0, whole, together)))
    if whole < len(rows):
        db.executemany(f"{insert} VALUES{marks}", rows[whole:])


def columns(declaration: str) -> tuple[str, ...]:
    """The names of the columns that a table is declared with, in order."""
    names, _, _ = declaration.partition("PRIMARY KEY(")
    return tuple(column.split()[0] for column in names.split(",") if column.strip())


def flat(rows: Iterable[Row]) -> Row:
    """The values of rows, one after the other."""
    return tuple(chain.from_iterable(rows))
