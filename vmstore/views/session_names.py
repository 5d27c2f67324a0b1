"""Names of sessions as people give them: whole, the beginning that no other has, or `-` for the newest."""

from __future__ import annotations

import apsw

from vmstore.views.projectors.sessions import NAMED

NEWEST = "-"
CANDIDATES_MAX = 6


def meant(db: apsw.Connection, name: str) -> list[str]:
    """The sessions that a name can mean: one where it is its name, else those that begin so, some of them if many.

    A whole name goes before a beginning. The newest is the one in which something happened last; sessions whose source
    held no times come after all others, the last imported first.
    """
    if db.execute(f"SELECT 1 FROM sessions WHERE name = ? AND {NAMED}", (name,)).get:
        return [name]
    if name == NEWEST:
        return [row[0] for row in db.execute(_NEWEST)]
    end = name + chr(0x10FFFF)
    return [row[0] for row in db.execute(_BEGINNING, (name, end, CANDIDATES_MAX))] if name else []


_NEWEST = """SELECT name FROM sessions s WHERE hidden = 0 ORDER BY timed DESC, iif(timed, (SELECT at_max FROM commits c
   WHERE c.session = s.session ORDER BY c.last DESC LIMIT 1), 0) DESC, session DESC LIMIT 1"""
_BEGINNING = "SELECT name FROM sessions WHERE name >= ? AND name < ? AND hidden = 0 ORDER BY name LIMIT ?"
