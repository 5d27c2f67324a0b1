"""A sealed segment: a folder with the tables of a stretch of the log, and the seal that names it.

The seal ties the segment to the log (the hash of its last commit, and SHA-256 over the hashes of
all) and to its own bytes. A segment is there when its folder has its name, which it gets last.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import duckdb
import msgspec

from vmstore.columns.parquet import write
from vmstore.columns.schema import SCHEMA, TABLES
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.core.system.safe_files import read_within, regular

SEAL = "seal.json"
UNFINISHED = ".new"
_NAME = re.compile(rf"{SCHEMA}-(\d+)-(\d+)-([0-9a-f]{{16}})")


class SegmentSeal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The seal of a segment: the range of its commits, tied to the chain and to its bytes."""

    tables: str
    after: int
    upto: int
    mutations: int
    last: str
    chain: str
    files: dict[str, str]


class SegmentFolder(NamedTuple):
    """A segment by the name of its folder."""

    path: Path
    after: int
    upto: int
    last: str  # the first 16 digits of its last commit's hash

    def table(self, name: str) -> Path:
        """The file of a table."""
        return self.path / f"{name}.parquet"

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.stat().st_size for file in self.path.iterdir())


def found_in(folder: Path) -> list[SegmentFolder]:
    """The segments of this version in a folder, in the order of the log, the longest of a beginning first."""
    try:
        entries = list(folder.iterdir())
    except OSError:  # there is none, or none that may be read
        return []
    found = []
    for entry in entries:
        if match := _NAME.fullmatch(entry.name):
            found.append(SegmentFolder(entry, int(match[1]), int(match[2]), match[3]))
    return sorted(found, key=lambda folder_of: (folder_of.after, -folder_of.upto))


def seal_of(segment: SegmentFolder) -> SegmentSeal:
    """A segment's seal; raises ValueError with the reason where it is not what it was when it was sealed."""
    seal = msgspec.json.decode(read_within(segment.path / SEAL, link=False), type=SegmentSeal)
    if (seal.tables, seal.after, seal.upto) != (SCHEMA, segment.after, segment.upto):
        raise ValueError("its seal is another segment's")
    if not seal.last.startswith(segment.last) or set(seal.files) != set(TABLES):
        raise ValueError("its seal and its name do not match")
    for name, digest in seal.files.items():
        if _digest(segment.table(name)) != digest:
            raise ValueError(f"the bytes of {name}.parquet are not those that were sealed")
    return seal


def sealed(folder: Path, cut: SegmentWriter, db: duckdb.DuckDBPyConnection) -> SegmentFolder:
    """Writes what was cut as a new segment, durable before it bears its name; raises OSError or duckdb.Error."""
    last = cut.last.hex()
    path = folder / f"{SCHEMA}-{cut.after}-{cut.ordinal}-{last[:16]}"
    beside = path.with_name(path.name + UNFINISHED)
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    digests = {}
    for name in TABLES:
        file = beside / f"{name}.parquet"
        write(db, name, cut.table(name), file)
        digests[name] = _digest(file)
    seal = SegmentSeal(SCHEMA, cut.after, cut.ordinal, cut.mutations, last, cut.chain.hexdigest(), digests)
    (beside / SEAL).write_bytes(msgspec.json.format(msgspec.json.encode(seal), indent=1) + b"\n")
    for entry in (*beside.iterdir(), beside):
        _flush(entry)
    os.rename(beside, path)
    _flush(folder)
    return SegmentFolder(path, cut.after, cut.ordinal, last[:16])


def _digest(file: Path) -> str:
    with regular(file, link=False) as reading:
        return hashlib.file_digest(reading, "sha256").hexdigest()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
