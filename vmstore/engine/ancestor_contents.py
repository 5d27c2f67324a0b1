"""Contents that a fork names in its past, which another process may have erased since they were found there."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from vmstore.core.mutation import CellRef
from vmstore.views.branch import Lane


def lost(db: apsw.Connection, session: int, refs: Iterable[CellRef]) -> bool:
    """Whether any of some cells that a session inherits was erased; the views are at the log's end."""
    lane = Lane(db, session)
    return any(
        db.execute(_LOST, (lane.owner(ref[0]), ref[0], ref[1])).fetchone() is not None
        for ref in refs
        if not isinstance(ref, int)
    )


_LOST = """SELECT 1 FROM commits c JOIN erased e ON e.cell = c.cell + ?3
  WHERE c.session = ?1 AND c.last = (SELECT min(last) FROM commits WHERE session = ?1 AND last >= ?2)"""
