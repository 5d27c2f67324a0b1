"""What a projector is: a name, a version, tables, and one handler for each kind it follows.

A handler is a method `on_<kind>(db, fact, mutation)`; `on_commit(db, scene, mutations)` sees
each commit once, before its mutations. A projector changes its own tables and reads only what
the log says up to the fact: itself, the commit, and views ahead of it in the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import apsw

from vmstore.core.mutation import CellRef
from vmstore.log.commit import Commit

Handler = Callable[[apsw.Connection, "Fact", Any], None]


class Cells(Protocol):
    """Finds the cells a mutation names."""

    def number(self, session: int, commit: Commit, ref: CellRef) -> int:
        """The log's number of a cell."""
        ...

    def commitment(self, session: int, commit: Commit, ref: CellRef) -> bytes:
        """A cell's commitment."""
        ...

    def content(self, session: int, commit: Commit, ref: CellRef) -> bytes:
        """A cell's bytes, checked."""
        ...


class Fact(NamedTuple):
    """One mutation with its moment: where it stands and in which turn and call."""

    commit: Commit
    position: int
    turn: int
    call: int
    cells: Cells

    @property
    def session(self) -> int:
        """The session's key in this log."""
        return self.commit.session

    def number(self, ref: CellRef | None) -> int | None:
        """The log's number of a cell."""
        return None if ref is None else self.cells.number(self.session, self.commit, ref)

    def commitment(self, ref: CellRef) -> bytes:
        """The commitment of a cell."""
        return self.cells.commitment(self.session, self.commit, ref)

    def content(self, ref: CellRef | None) -> bytes | None:
        """The bytes of a cell: for names and labels, not for contents."""
        return None if ref is None else self.cells.content(self.session, self.commit, ref)

    def text(self, ref: CellRef | None) -> str | None:
        """The text of a cell."""
        content = self.content(ref)
        return None if content is None else plain(content.decode("utf-8", "surrogatepass"))


def plain(text: object) -> str | None:
    """A text as a view can hold it: lone surrogates become question marks; what is no text is left out."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else None


class Projector:
    """The fold rule of one view; subclasses add tables and handlers."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    schema: ClassVar[dict[str, str]]  # table -> its columns and keys, as in CREATE TABLE
    indexes: ClassVar[tuple[str, ...]] = ()

    def create(self, db: apsw.Connection) -> None:
        """Makes the view's empty tables."""
        for table, columns in self.schema.items():
            db.execute(f"CREATE TABLE {table}({columns}) WITHOUT ROWID")
        for index in self.indexes:
            db.execute(index)

    def drop(self, db: apsw.Connection) -> None:
        """Forgets the view; the log can give it back."""
        for table in self.schema:
            db.execute(f"DROP TABLE IF EXISTS {table}")

    def on_commit(self, db: apsw.Connection, fact: Fact, mutations: list[Any]) -> None:
        """Sees a whole commit; `fact` is the moment before its first mutation."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by kind."""
        return {name[3:]: getattr(self, name) for name in dir(self) if name.startswith("on_") and name != "on_commit"}
