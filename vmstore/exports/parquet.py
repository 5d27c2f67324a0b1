"""A folder of Parquet files, one a table, made by duckdb.

duckdb never sees the store: rows reach it as JSON lines in the system's folder for such (TMPDIR).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from vmstore.errors import InputError, StoreError
from vmstore.exports.newfile import beside, flush, naming
from vmstore.exports.rows import Row
from vmstore.exports.tables import TABLES, Table

TYPES = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "time": "TIMESTAMP"}
LINES = ".jsonl"
OBJECT_BYTES_MAX = 1 << 30


def write_parquet(out: Path, found: Iterable[Row]) -> int:
    """Writes rows to `out/TABLE.parquet`, a new folder; the size of its files in bytes."""
    try:
        import duckdb
    except ImportError as error:
        raise InputError("a Parquet export needs duckdb; get it with: pip install duckdb") from error
    with beside(out) as part, naming(out), tempfile.TemporaryDirectory(prefix="vmstore-rows-") as lines:
        part.mkdir()
        _write_lines(Path(lines), found)
        db = duckdb.connect()
        try:
            for table in TABLES:
                _convert(db, table, Path(lines), part)
        except duckdb.Error as error:
            raise StoreError(f"{out} could not be written ({error}); make room, or name another path") from error
        finally:
            db.close()
        for file in part.iterdir():
            flush(file)
        return sum(file.stat().st_size for file in part.iterdir())


def _write_lines(folder: Path, found: Iterable[Row]) -> None:
    encode = msgspec.json.Encoder().encode
    names = {table.name: [column.name for column in table.columns] for table in TABLES}
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / f"{name}{LINES}").open("wb")) for name in names}
        for name, row in found:
            files[name].write(encode(dict(zip(names[name], row, strict=True))) + b"\n")


def _convert(db: Any, table: Table, folder: Path, out: Path) -> None:
    lines = folder / f"{table.name}{LINES}"
    columns = ", ".join(f"{_quoted(column.name)}: '{TYPES[column.kind]}'" for column in table.columns)
    target = _quoted(str(out / f"{table.name}.parquet"))
    db.execute(
        f"COPY (SELECT * FROM read_json({_quoted(str(lines))}, format = 'newline_delimited',"
        f" columns = {{{columns}}}, maximum_object_size = {OBJECT_BYTES_MAX}))"
        f" TO {target} (FORMAT parquet, COMPRESSION zstd)"
    )
    lines.unlink()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
