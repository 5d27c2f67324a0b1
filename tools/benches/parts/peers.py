"""The contenders and floors beside vmstore: the same records as others would store them."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
import os
import sqlite3
import struct
import sys
import types
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benches.parts.records import SESSION, Record, encode
from benches.parts.rounds import MissingError

PREALLOCATED_BYTES = 256 << 20
flush = getattr(os, "fdatasync", os.fsync)


# ---- sqlite3 rows

_ROWS = (
    "CREATE TABLE mutations(seq INTEGER PRIMARY KEY, session TEXT, page TEXT, op TEXT, turn INTEGER, at REAL,"
    " payload BLOB)"
)


class Rows:
    """sqlite3 with one row of seven columns a mutation: WAL, flushed at each commit."""

    def __init__(self, path: Path, dumps: Callable[[Any], Any] = encode) -> None:
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(_ROWS)
        self._dumps = dumps
        self._seq = 0

    def append(self, records: Sequence[Any]) -> None:
        """Encodes and inserts records in one transaction."""
        dumps, seq = self._dumps, self._seq
        rows = [(seq + n, r.session, r.page, r.op, r.turn, r.at, dumps(r)) for n, r in enumerate(records, 1)]
        self._seq += len(rows)
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO mutations VALUES(?,?,?,?,?,?,?)", rows)
        self._db.execute("COMMIT")

    def close(self) -> int:
        """Closes the file; its bytes, the WAL folded in."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()
        return self.path.stat().st_size


def json_text(value: Any) -> str:
    """A record as JSON text, as `json.dumps` writes it."""
    return json.dumps(msgspec.to_builtins(value))


# ---- raw files


class Floor:
    """Appends to a file that grows, flushed each time: what no commit can be faster than by much."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append(self, data: bytes) -> None:
        """Writes and flushes."""
        os.write(self._file, data)
        flush(self._file)

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)


class InPlace:
    """A log in a file laid out beforehand: length, checksum, a msgpack array of records; flushed each time."""

    def __init__(self, path: Path, size: int = PREALLOCATED_BYTES) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT)
        self._size, self._at = size, 0
        for _ in range(size >> 20):
            os.write(self._file, bytes(1 << 20))
        os.fsync(self._file)
        os.lseek(self._file, 0, os.SEEK_SET)

    def append(self, records: Sequence[Any]) -> None:
        """Encodes, writes and flushes."""
        body = encode(records)
        if self._at + len(body) + 8 > self._size:
            self._at = os.lseek(self._file, 0, os.SEEK_SET)
        self._at += os.writev(self._file, (struct.pack("<II", len(body), zlib.crc32(body)), body))
        flush(self._file)

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._file)


# ---- eventsourcing


class Recorder:
    """The SQLite recorder of the eventsourcing library."""

    def __init__(self, path: Path) -> None:
        persistence = library("eventsourcing.persistence")
        sqlite = library("eventsourcing.sqlite")
        self._event = persistence.StoredEvent
        self._recorder = sqlite.SQLiteApplicationRecorder(sqlite.SQLiteDatastore(str(path)))
        self._recorder.create_table()

    def append(self, kind: str, states: Iterable[bytes]) -> None:
        """Stores encoded records as events of aggregates of their own."""
        self._recorder.insert_events([self._event(uuid.uuid4(), 1, kind, state) for state in states])


def library(module: str, package: str = "eventsourcing") -> Any:
    """A peer's module."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingError(f"{package} is not installed ({error}); run: pip install {package}") from error


def page_aggregate() -> Any:
    """A page as a user of the eventsourcing library would write it: one aggregate, one event a change."""
    domain = library("eventsourcing.domain")

    class PageAggregate(domain.Aggregate):  # type: ignore[misc]
        """A page's row."""

        @domain.event("Made")  # type: ignore[misc]
        def __init__(self, page: str, role: str, tokens: int, at: int) -> None:
            self.page, self.role, self.tokens, self.content = page, role, tokens, at
            self.version_, self.level, self.tier = 1, 0, 2

        @domain.event("Changed")  # type: ignore[misc]
        def change(self, version: int, tokens: int) -> None:
            """A new version."""
            self.version_, self.tokens = version, tokens

        @domain.event("Moved")  # type: ignore[misc]
        def move(self, tier: int, level: int, content: int) -> None:
            """In or out of the context."""
            self.tier, self.level, self.content = tier, level, content

    return PageAggregate


def relive(aggregate: Any, pages: dict[str, Any], row: Record) -> int:
    """Lets a record happen to the aggregates it is about; how many events that made."""
    if row.op == "create":
        pages[row.page] = aggregate(row.page, row.actor, row.tokens, row.seq)
    elif row.op == "update":
        pages[row.page].change(row.version, row.tokens)
    elif row.op == "pack":
        for name, content, level, _ in row.entered:
            pages[name].move(0, level, content)
        for name in row.left:
            pages[name].move(2, 0, 0)
        return len(row.entered) + len(row.left)
    else:
        return 0
    return 1


# ---- chuk

CHUK = "chuk-ai-session-manager"
CHUK_PIP = f"pip install --no-deps {CHUK} && pip install pydantic"


def chuk_log() -> Callable[[Sequence[Any]], None]:
    """Takes records into the mutation log that chuk keeps in memory; it holds no content."""
    try:
        _hollow("chuk_ai_session_manager")
        _hollow("chuk_ai_session_manager.memory")
        logs = importlib.import_module("chuk_ai_session_manager.memory.mutation_log")
        models = importlib.import_module("chuk_ai_session_manager.memory.models")
    except (ImportError, AttributeError) as error:
        raise MissingError(f"{CHUK} is not installed ({error}); run: {CHUK_PIP}") from error
    log = logs.MutationLogLite(session_id=SESSION)
    kinds = {"create": models.MutationType.CREATE, "compress": models.MutationType.COMPRESS}
    other, tier = models.MutationType.UPDATE, models.StorageTier.L0

    def append(records: Sequence[Any]) -> None:
        for r in records:
            log.record_mutation(r.page, kinds.get(r.op, other), tier, None, cause=r.cause, turn=r.turn)

    return append


def _hollow(package: str) -> types.ModuleType:
    """A package without what its own beginning would import, which is heavy and not needed here."""
    if package in sys.modules:
        return sys.modules[package]
    parent, _, leaf = package.rpartition(".")
    if parent:
        paths = [f"{path}/{leaf}" for path in sys.modules[parent].__path__]
    else:
        find_spec = importlib.util.find_spec(package)
        if find_spec is None:
            raise ImportError(f"no package {package}")
        paths = list(find_spec.submodule_search_locations or [])
    module = types.ModuleType(package)
    module.__path__ = paths
    module.__spec__ = importlib.machinery.ModuleSpec(package, None, is_package=True)
    sys.modules[package] = module
    return module
