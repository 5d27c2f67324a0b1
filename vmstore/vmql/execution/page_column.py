"""One column of all pages, for statements over rows that name a page: `FAULTS page.type`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

from vmstore.core.page import Origin
from vmstore.vmql.host import Host

Fork = tuple[str, int]
"""The name of the session that another was forked from, and the position it was forked at."""


class PageColumn:
    """The values of a column by session and position; a session's pages are also those it inherited."""

    def __init__(self, values: Mapping[tuple[str | None, int], Any], forks: Mapping[str, Fork]) -> None:
        self._values, self._forks = values, forks

    def of(self, session: str | None, position: int | None) -> Any:
        """The value of a page; None of none, and of one that there was not yet."""
        while session is not None and position is not None and session in self._forks:
            parent, forked_at = self._forks[session]
            if position > forked_at:
                break
            session = parent
        return None if position is None else self._values.get((session, position))


def forks_of(world: Host) -> dict[str, Fork]:
    """Where each session that is a fork left another, by its name."""
    sql = f"""SELECT s.name, p.name, s.fork_position FROM sessions s JOIN sessions p ON p.session = s.parent
      WHERE s.origin = {int(Origin.FORK)}"""
    rows: list[Any] = world.views.execute(sql).fetchall()
    return {name: (parent, position) for name, parent, position in rows}


def register(db: apsw.Connection) -> None:
    """Has a connection know how a column of a page is looked up."""
    db.create_scalar_function("vm_of", _of, 3)


def _of(*given: Any) -> Any:
    column, session, position = given
    return column.of(session, position)
