"""Tables as Parquet files, written and read by duckdb."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path

import duckdb
import numpy as np

from vmstore.columns.schema import NULL, TABLES, WIDE
from vmstore.columns.segment_writer import Column, Columns

NARROW_MAX = (1 << 31) - 1


@functools.cache
def _instance(process: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"temp_directory": "", "enable_external_file_cache": False})


def reader() -> duckdb.DuckDBPyConnection:
    """A connection to the one database of this process, which is empty and in memory: making one takes long."""
    return _instance(os.getpid()).cursor()  # after a fork its threads are gone


def write(db: duckdb.DuckDBPyConnection, name: str, columns: Columns, path: Path) -> None:
    """Writes a table's columns to a new file."""
    db.register("given", columns)
    try:
        db.execute(
            f"COPY ({_select(name, columns)}) TO {quoted(path)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)"
        )
    finally:
        db.unregister("given")


def load(db: duckdb.DuckDBPyConnection, name: str, columns: Columns, table: str) -> None:
    """Puts a table's columns into a new table that only this connection sees."""
    db.register("given", columns)
    try:
        db.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {_select(name, columns)}")
    finally:
        db.unregister("given")


def _select(name: str, columns: Columns) -> str:
    """Every column, as wide as it must be, NULL where there is no value."""
    columns_sql = (
        f'NULLIF("{column}", {NULL})::{_type(column, columns[column])} AS "{column}"' for column in TABLES[name]
    )
    return f"SELECT {', '.join(columns_sql)} FROM given"


def _type(name: str, values: Column) -> str:
    given = values[values != NULL]
    narrow = name not in WIDE and (not given.size or (given.min() >= -NARROW_MAX and given.max() <= NARROW_MAX))
    return "INTEGER" if narrow else "BIGINT"


def read(db: duckdb.DuckDBPyConnection, paths: Iterable[Path], columns: Iterable[str]) -> Columns:
    """Columns of a table in several files, in the order of the log, NULL where a row has no value."""
    listed = ", ".join(f'"{column}"' for column in columns)
    found = db.execute(f"SELECT {listed} FROM {files(paths)}").fetchnumpy()
    return {
        name: np.ma.filled(values.astype(np.int64), NULL) if np.ma.isMaskedArray(values) else values
        for name, values in found.items()
    }


def files(paths: Iterable[Path]) -> str:
    """Several files as one table of a statement."""
    return f"read_parquet([{', '.join(map(quoted, paths))}], union_by_name = true)"


def quoted(text: object) -> str:
    """A text of a statement."""
    return "'" + str(text).replace("'", "''") + "'"
