"""The tables of a shelf as relations of a connection of their own, to be asked in SQL."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import numpy as np

from vmstore.columns.parquet import files, load, reader
from vmstore.columns.schema import TABLES
from vmstore.columns.segments import ColumnRows

SESSIONS = ("session", "name", "user", "agent", "title")
Named = tuple[int, str, str | None, str | None, str | None]
"""A session's key, name, user, agent and title."""


def relations(
    rows: ColumnRows, sessions: Iterable[Named], db: duckdb.DuckDBPyConnection | None = None, suffix: str = ""
) -> duckdb.DuckDBPyConnection:
    """A connection with the tables of segments and of what is beyond them, and the names of sessions; all its own.

    With `db` they are put into that one, their names ending in `suffix`: of many logs beside one another.
    """
    db = reader() if db is None else db
    upto = f" WHERE ordinal <= {rows.ordinal}" if rows.end > rows.ordinal else ""
    for name in TABLES:
        parts = []
        if rows.segments:
            parts.append(f"SELECT * FROM {files(segment.table(name) for segment in rows.segments)}{upto}")
        if rows.tail is not None:
            load(db, name, rows.tail.table(name), f"tail_{name}{suffix}")
            parts.append(f"SELECT * FROM tail_{name}{suffix}{upto}")
        db.execute(f"CREATE OR REPLACE TEMP VIEW {name}{suffix} AS {' UNION ALL '.join(parts)}")
    _name(db, list(sessions), f"sessions{suffix}")
    return db


def _name(db: duckdb.DuckDBPyConnection, sessions: list[Named], table: str) -> None:
    named = ", ".join(f'"{name}" VARCHAR' for name in SESSIONS[1:])
    db.execute(f"CREATE OR REPLACE TEMP TABLE {table}(session BIGINT, {named})")
    if sessions:
        keys, *texts = zip(*sessions, strict=True)
        given = {"session": np.array(keys, np.int64)}
        given |= {name: np.array(text, dtype=object) for name, text in zip(SESSIONS[1:], texts, strict=True)}
        db.register("given", given)
        db.execute(f"INSERT INTO {table} SELECT * FROM given")
        db.unregister("given")
