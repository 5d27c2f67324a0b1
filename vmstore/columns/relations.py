"""The tables of a shelf as relations of a connection of their own, to be asked in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

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


class ColumnFiles(NamedTuple):
    """The tables of another log that has the same sessions: files by table, and how its sessions are called here.

    Of each session: its key there, its key here, the last position that is seen, and how many mutations it wrote.
    """

    files: Mapping[str, Sequence[Path]]
    sessions: Sequence[tuple[int, int, int, int]]


def relations_of(
    found: ColumnFiles, sessions: Iterable[Named], db: duckdb.DuckDBPyConnection | None = None, suffix: str = ""
) -> duckdb.DuckDBPyConnection | None:
    """The same relations from files of another log; None where the files lack mutations of a session."""
    own, db = db is None, reader() if db is None else db
    there, here, upto, mutations = zip(*found.sessions, strict=True)
    given = {"there": there, "here": here, "upto": upto, "mutations": mutations}
    db.register("given", {name: np.array(column, np.int64) for name, column in given.items()})
    db.execute(f"CREATE OR REPLACE TEMP TABLE keys{suffix} AS SELECT * FROM given")
    db.unregister("given")
    for name in TABLES:
        db.execute(
            f"CREATE OR REPLACE TEMP VIEW {name}{suffix} AS SELECT m.* REPLACE (k.here AS session) "
            f"FROM {files(found.files[name])} m "
            f"JOIN keys{suffix} k ON k.there = m.session AND m.position <= k.upto"
        )
    held = f"SELECT session, count(*) n FROM mutations{suffix} GROUP BY session"
    lacking = f"SELECT count(*) FROM keys{suffix} k LEFT JOIN ({held}) m ON m.session = k.here"
    if db.execute(f"{lacking} WHERE k.mutations IS DISTINCT FROM m.n").fetchall()[0][0]:
        if own:
            db.close()
        return None
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
