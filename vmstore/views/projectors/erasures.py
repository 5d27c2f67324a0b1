"""The erasures view: what was erased, when and why, and each cell that was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import apsw

from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Erase


class ErasuresProjector(Projector):
    """One row an erasure, one a cell that any of them names: the first that does.

    A fold that meets an erasure starts over, and holds nothing of what was erased then.
    """

    name = "erasures"
    schema: ClassVar = {
        "erasures": """ordinal INTEGER, position INTEGER, session INTEGER, at INTEGER, reason INTEGER, cells INTEGER,
            PRIMARY KEY(ordinal, position)""",
        "erased": "cell INTEGER PRIMARY KEY, session INTEGER, position INTEGER",
    }
    inserts: ClassVar = {"erased": "INSERT OR IGNORE"}
    indexes = ("CREATE INDEX erased_session ON erased(session, position)",)

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._unwritten: list[tuple[tuple[int, int, int, int, int], Erase]] = []

    def on_erase(self, placed: PlacedMutation, m: Erase) -> None:
        """Takes down what is erased; which cells those are is looked up when the commits are written."""
        self._unwritten.append(((placed.commit.ordinal, placed.position, placed.session, placed.at, m.reason), m))

    def flush(self) -> None:
        """Writes the erasures and the cells they name."""
        for at, erase in self._unwritten:
            _, position, session, *_ = at
            cells = list(self._cells(session, erase))
            self.rows["erasures"].append((*at, len(cells)))
            self.rows["erased"] += [(cell, session, position) for cell in cells]
        self._unwritten.clear()
        super().flush()
        assert not any(self.rows.values()), "what was flushed is in the tables, and only there"

    def _cells(self, session: int, erase: Erase) -> set[int]:
        found: set[int] = set()
        for cell, cells in self.db.execute(_UPTO, (session, erase.upto)) if erase.upto else ():
            found.update(range(cell, cell + cells))
        for position, index in erase.cells:
            row: Any = self.db.execute(_AT, (session, position)).fetchone()
            if row is not None and row[0] <= position and 0 <= index < row[2]:
                found.add(row[1] + index)
        return found

    def forget(self) -> None:
        """Drops what was not written."""
        super().forget()
        self._unwritten.clear()


_UPTO = "SELECT cell, cells FROM commits WHERE session = ? AND last <= ? AND cells > 0"
_AT = """SELECT first, cell, cells FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"""
