"""A folder of Parquet files, one a table, made by duckdb.

duckdb never sees the store: rows reach it as JSON lines, in temporary files that have no name, so that a
killed export leaves none of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import msgspec

from vmstore.core.system.atomic_file import beside, flush, naming
from vmstore.errors import InputError, StoreError
from vmstore.transfer.table_rows import Row
from vmstore.transfer.tables import TABLES, ExportTable

TYPES = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "time": "TIMESTAMP"}
OBJECT_BYTES_MAX = 1 << 30


def write_parquet(out: Path, found: Iterable[Row]) -> int:
    """Writes rows to `out/TABLE.parquet`, a new folder; the size of its files in bytes."""
    try:
        import duckdb
    except ImportError as error:
        raise InputError(
            "a Parquet export needs duckdb; get it with: pip install duckdb", code="not-installed"
        ) from error
    with beside(out) as part, naming(out), ExitStack() as stack:
        part.mkdir()
        lines = {table.name: stack.enter_context(tempfile.TemporaryFile()) for table in TABLES}
        _write_lines(lines, found)
        db = duckdb.connect(config={"temp_directory": ""})
        try:
            for table in TABLES:
                _convert(db, table, lines[table.name], part)
        except duckdb.Error as error:
            raise StoreError(
                f"{out} could not be written ({error}); make room, or name another path", code="not-written"
            ) from error
        finally:
            db.close()
        for file in part.iterdir():
            flush(file)
        return sum(file.stat().st_size for file in part.iterdir())


def _write_lines(files: Mapping[str, IO[bytes]], found: Iterable[Row]) -> None:
    encode = msgspec.json.Encoder().encode
    names = {table.name: [column.name for column in table.columns] for table in TABLES}
    for name, row in found:
        files[name].write(encode(dict(zip(names[name], row, strict=True))) + b"\n")
    for file in files.values():
        file.flush()


def _convert(db: Any, table: ExportTable, lines: IO[bytes], out: Path) -> None:
    place = f"/dev/fd/{lines.fileno()}"
    columns = ", ".join(f"{_quoted(column.name)}: '{TYPES[column.kind]}'" for column in table.columns)
    target = _quoted(str(out / f"{table.name}.parquet"))
    db.execute(
        f"COPY (SELECT * FROM read_json({_quoted(place)}, format = 'newline_delimited',"
        f" columns = {{{columns}}}, maximum_object_size = {OBJECT_BYTES_MAX}))"
        f" TO {target} (FORMAT parquet, COMPRESSION zstd)"
    )
    lines.close()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
