"""Tables as Parquet files, written and read by duckdb."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from vmstore.columns.cut import Columns
from vmstore.columns.table import NULL, TABLES


def connection() -> duckdb.DuckDBPyConnection:
    """A database in memory that keeps the order of rows and leaves no file behind."""
    return duckdb.connect(config={"temp_directory": "", "autoinstall_known_extensions": False})


def write(db: duckdb.DuckDBPyConnection, name: str, columns: Columns, path: Path) -> None:
    """Writes a table's columns to a new file."""
    db.register("given", columns)
    try:
        db.execute(f"COPY ({_select(name, 'given')}) TO {quoted(path)} (FORMAT parquet, COMPRESSION zstd)")
    finally:
        db.unregister("given")


def load(db: duckdb.DuckDBPyConnection, name: str, columns: Columns, table: str) -> None:
    """Puts a table's columns into a new table of a database."""
    db.register("given", columns)
    try:
        db.execute(f"CREATE TABLE {table} AS {_select(name, 'given')}")
    finally:
        db.unregister("given")


def _select(name: str, source: str) -> str:
    """Every column, NULL where there is no value."""
    told = (f'NULLIF("{column}", {NULL})::BIGINT AS "{column}"' for column in TABLES[name])
    return f"SELECT {', '.join(told)} FROM {source}"


def read(db: duckdb.DuckDBPyConnection, paths: Iterable[Path], columns: Iterable[str]) -> Columns:
    """Columns of a table in several files, in the order of the log; one with rows that have no value is masked."""
    told = ", ".join(f'"{column}"' for column in columns)
    found: Columns = db.execute(f"SELECT {told} FROM {files(paths)}").fetchnumpy()
    return found


def files(paths: Iterable[Path]) -> str:
    """Several files as one table of a statement."""
    return f"read_parquet([{', '.join(map(quoted, paths))}])"


def quoted(text: object) -> str:
    """A text of a statement."""
    return "'" + str(text).replace("'", "''") + "'"
