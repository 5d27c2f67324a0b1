"""A plain SQLite database of the tables, with foreign keys, indexes and full text, made by sqlite-utils.

sqlite-utils brings an SQLite of its own; it only ever opens the new file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vmstore.core.system.atomic_file import beside, flush, naming
from vmstore.errors import InputError, StoreError
from vmstore.transfer.table_rows import Row
from vmstore.transfer.tables import TABLES

BATCH_ROWS = 1000
BATCH_CHARS = 1 << 20
TYPES = {"text": str, "integer": int, "number": float, "boolean": int, "time": str}
INDEXED = (("versions", "position"), ("mutations", "kind"), ("pages", "hint"), ("tags", "tag"))


def write_database(out: Path, found: Iterable[Row]) -> int:
    """Writes rows to a new SQLite file; its size in bytes. Full text is on `versions.content`."""
    try:
        from sqlite_utils import Database
    except ImportError as error:
        raise InputError(
            "a SQLite export needs sqlite-utils; get it with: pip install sqlite-utils", code="not-installed"
        ) from error
    with beside(out) as part, naming(out):
        import sqlite3

        try:
            db = Database(part)
            try:
                _write(db, found)
            finally:
                db.close()
        except sqlite3.OperationalError as error:  # a full disk, mostly
            raise StoreError(
                f"{out} could not be written ({error}); make room, or name another path", code="not-written"
            ) from error
        flush(part)
        return part.stat().st_size


def _write(db: Any, found: Iterable[Row]) -> None:
    db.conn.execute("PRAGMA synchronous = OFF")
    db.conn.execute("PRAGMA journal_mode = OFF")  # nobody sees the file before it is whole
    for table in TABLES:
        db[table.name].create(
            {column.name: TYPES[column.kind] for column in table.columns},
            pk=table.key,
            foreign_keys=[(column.name, column.of, _key(column.of)) for column in table.columns if column.of],
        )
    inserts = {table.name: f"INSERT INTO {table.name} VALUES({','.join('?' * len(table.columns))})" for table in TABLES}
    waiting: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    weights: Counter[str] = Counter()
    for name, row in found:
        waiting[name].append(row)
        weights[name] += sum(len(value) for value in row if isinstance(value, str))
        if len(waiting[name]) == BATCH_ROWS or weights[name] > BATCH_CHARS:
            db.conn.executemany(inserts[name], waiting.pop(name))
            weights[name] = 0
    for name, some in waiting.items():
        db.conn.executemany(inserts[name], some)
    db.conn.commit()
    db["versions"].enable_fts(["content"])
    db.index_foreign_keys()
    for table_name, column in INDEXED:
        db[table_name].create_index([column])


def _key(table: str) -> str:
    return next(entry.key for entry in TABLES if entry.name == table)
