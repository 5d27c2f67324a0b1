"""The schema each database of a store must have, and the pragmas of a connection to it.

Anybody who can write to a file, or hands one over, can put triggers, views and tables into it, which
SQLite would obey. A connection runs no trigger and trusts nothing that the file defines; and what
the file holds beyond what this version makes is named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import apsw

from vmstore.errors import CorruptError

_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
)
TAKEN_OUT = ", or take it out: "
_ROWS = "SELECT type, name, sql, tbl_name FROM sqlite_schema"


def guard(db: apsw.Connection) -> None:
    """Has a connection run no trigger and trust no function that the file names, and keeps SQLite's own tables."""
    for setting, value in _SETTINGS:
        db.config(setting, value)


def made_by(script: str) -> frozenset[str]:
    """The statements of a script that make tables, as a file keeps them."""
    parts = script.replace("IF NOT EXISTS ", "").split(";")
    return kept(part[part.index("CREATE ") :] for part in parts if "CREATE " in part)


def kept(statements: Iterable[str]) -> frozenset[str]:
    """Statements that make tables, indexes and views, one each, as a file keeps them."""
    return frozenset(" ".join(statement.split()) for statement in statements)


def stranger(db: apsw.Connection, made: Collection[str]) -> tuple[str, str] | None:
    """The first thing in a file that none of these statements makes, as its kind and its name."""
    for kind, name, sql, table in db.execute(_ROWS).fetchall():
        own = sql is None and kind == "index" and str(name).startswith(f"sqlite_autoindex_{table}_")
        if not own and " ".join(str(sql).split()) not in made:
            return str(kind), str(name)
    return None


def check(db: apsw.Connection, path: Path, made: Collection[str]) -> None:
    """Raises CorruptError, with what is to be done, where a file holds what none of these statements makes."""
    found = stranger(db, made)
    if found is None:
        return
    kind, name = found
    import shlex

    ours = any(statement.startswith(f"CREATE TABLE {name}(") for statement in made)
    plain = name.isidentifier() and not ours  # else it is nothing to be pasted into a shell
    remedy = f"{TAKEN_OUT}sqlite3 {shlex.quote(str(path))} 'DROP {kind.upper()} {name}'" if plain else ""
    raise CorruptError(
        f"{path} holds the {kind} {name!r}, which vmstore does not make like that, so somebody else wrote to it; "
        f"nothing of it is obeyed: put back a backup{remedy}",
        code="foreign-schema",
    )
