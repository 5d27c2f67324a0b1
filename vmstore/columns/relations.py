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


def relations(rows: ColumnRows, sessions: Iterable[Named]) -> duckdb.DuckDBPyConnection:
    """A connection with the tables of segments and of what is beyond them, and the names of sessions; all its own."""
    db = reader()
    upto = f" WHERE ordinal <= {rows.ordinal}" if rows.end > rows.ordinal else ""
    for name in TABLES:
        parts = []
        if rows.segments:
            parts.append(f"SELECT * FROM {files(segment.table(name) for segment in rows.segments)}{upto}")
        if rows.tail is not None:
            load(db, name, rows.tail.table(name), f"tail_{name}")
            parts.append(f"SELECT * FROM tail_{name}{upto}")
        db.execute(f"CREATE TEMP VIEW {name} AS {' UNION ALL '.join(parts)}")
    _name(db, list(sessions))
    return db


def _name(db: duckdb.DuckDBPyConnection, sessions: list[Named]) -> None:
    db.execute(
        'CREATE TEMP TABLE sessions(session BIGINT, "name" VARCHAR, "user" VARCHAR, agent VARCHAR, title VARCHAR)'
    )
    if sessions:
        keys, *texts = zip(*sessions, strict=True)
        given = {"session": np.array(keys, np.int64)}
        given |= {name: np.array(text, dtype=object) for name, text in zip(SESSIONS[1:], texts, strict=True)}
        db.register("given", given)
        db.execute("INSERT INTO sessions SELECT * FROM given")
        db.unregister("given")
