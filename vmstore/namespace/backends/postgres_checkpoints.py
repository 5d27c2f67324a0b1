"""Folded views in the database: a new host begins with them, and folds what came since.

    vmstore_checkpoint       namespace format | ordinal hash size digest
    vmstore_checkpoint_part  namespace format ordinal number | content, a piece of the packed file

A checkpoint is the views file of one namespace as one format of views folded it. It is believed as far as the log
is: its ordinal and hash have to be the log's, and nothing may have been erased since. An erasure removes it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import zstandard

from vmstore.core.system.atomic_file import scratch
from vmstore.errors import StoreError, VmstoreError
from vmstore.log.port import Log
from vmstore.log.postgres.connection import Connection
from vmstore.namespace.folder import views_file
from vmstore.namespace.reports import PublishedViews
from vmstore.views.erased_cells import erasures_after
from vmstore.views.projection import fingerprint

PART_BYTES = 1 << 20
LEVEL = 3
TABLES = ("vmstore_checkpoint", "vmstore_checkpoint_part")


class _Kept(NamedTuple):
    """The row of a checkpoint; size in bytes and digest are of the file unpacked."""

    ordinal: int
    hash: bytes
    size: int
    digest: bytes


class ViewCheckpoints:
    """The checkpoint of a namespace's views; `at` stands before the names of tables."""

    def __init__(self, connection: Connection, namespace: str, at: str) -> None:
        self._connection = connection
        self._head, self._part = (f"{at}{table}" for table in TABLES)
        self._row = "namespace = %(namespace)s AND format = %(format)s"
        self._key = {"namespace": namespace, "format": fingerprint()}

    # ---- publishing

    def publish(self, views: apsw.Connection, folder: Path) -> PublishedViews:
        """Keeps a copy of some views, packed, in the place of the one before; nothing where that is as new.

        For a caller that keeps erasures waiting, so that no erased content is written down after it was removed.
        """
        self._make()
        with scratch(folder) as beside:
            file = beside / "views"
            views.execute("VACUUM INTO ?", (str(file),))
            ordinal, digest = _stands(file)
            before = self._kept()
            size = file.stat().st_size
            if before is None or (before.ordinal, before.hash) != (ordinal, digest):
                self._put(_Kept(ordinal, digest, size, _digest(file)), file)
            return PublishedViews(self._key["namespace"], self._key["format"], ordinal, size)

    def _make(self) -> None:
        with self._connection.used() as db:
            db.execute(
                f"""CREATE TABLE IF NOT EXISTS {self._head}(
                    namespace text NOT NULL, format text NOT NULL, ordinal bigint NOT NULL, hash bytea NOT NULL,
                    size bigint NOT NULL, digest bytea NOT NULL, PRIMARY KEY (namespace, format))"""
            )
            db.execute(
                f"""CREATE TABLE IF NOT EXISTS {self._part}(
                    namespace text NOT NULL, format text NOT NULL, ordinal bigint NOT NULL, number bigint NOT NULL,
                    content bytea NOT NULL, PRIMARY KEY (namespace, format, ordinal, number))"""
            )

    def _put(self, kept: _Kept, file: Path) -> None:
        """Writes the parts, then what says that they are there, then takes away those of before."""
        params: dict[str, Any] = {**self._key, **kept._asdict()}
        with self._connection.used() as db:
            db.execute(f"DELETE FROM {self._part} WHERE {self._row} AND ordinal = %(ordinal)s", params)
            for number, content in enumerate(_packed(file)):
                db.execute(
                    f"""INSERT INTO {self._part}
                        VALUES (%(namespace)s, %(format)s, %(ordinal)s, %(number)s, %(content)b)""",
                    {**params, "number": number, "content": content},
                )
            db.execute(
                f"""INSERT INTO {self._head} VALUES
                    (%(namespace)s, %(format)s, %(ordinal)s, %(hash)b, %(size)s, %(digest)b)
                    ON CONFLICT (namespace, format) DO UPDATE SET ordinal = excluded.ordinal, hash = excluded.hash,
                    size = excluded.size, digest = excluded.digest""",
                params,
            )
            db.execute(f"DELETE FROM {self._part} WHERE {self._row} AND ordinal <> %(ordinal)s", params)

    # ---- beginning with one

    def _kept(self) -> _Kept | None:
        """The checkpoint of this format; None where there is none, or this role may not read it."""
        sql = f"SELECT ordinal, hash, size, digest FROM {self._head} WHERE {self._row}"
        try:
            rows = self._connection.rows(sql, self._key)
        except VmstoreError as error:
            if error.code not in ("no-store", "no-right"):
                raise
            return None
        return _Kept(*rows[0]) if rows else None

    def begin(self, folder: Path, log: Log) -> bool:
        """Puts the views of the checkpoint where there are none yet; False where it is damaged, or not of this log."""
        path = views_file(folder)
        if path.exists() or (kept := self._kept()) is None or not _of(log, kept):
            return False
        with scratch(folder) as beside:
            file = beside / "views"
            try:
                self._unpack(kept, file)
            except (VmstoreError, zstandard.ZstdError):  # replaced or removed meanwhile, or damaged: it is only a help
                return False
            if file.stat().st_size != kept.size or _digest(file) != kept.digest or _stands(file) != kept[:2]:
                return False
            try:
                os.link(file, path)
            except FileExistsError:  # somebody else was first
                return False
        return True

    def _unpack(self, kept: _Kept, file: Path) -> None:
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        with file.open("xb") as writing:
            for content in self._parts(kept.ordinal):
                writing.write(unpacker.decompress(content))
                if writing.tell() > kept.size:
                    raise StoreError(f"the checkpoint of {self._connection.address} is longer than it says")

    def _parts(self, ordinal: int) -> Iterator[bytes]:
        sql = f"SELECT content FROM {self._part} WHERE {self._row} AND ordinal = %(ordinal)s AND number = %(number)s"
        number = 0
        while rows := self._connection.rows(sql, {**self._key, "ordinal": ordinal, "number": number}):
            yield rows[0][0]
            number += 1

    # ---- erasing

    def drop(self) -> None:
        """Removes every checkpoint of the namespace, of all formats, and rewrites the table that held the contents."""
        sql = f"SELECT EXISTS(SELECT 1 FROM {self._part} WHERE namespace = %(namespace)s)"
        try:
            there = self._connection.rows(sql, self._key)[0][0]
        except StoreError as error:
            if error.code != "no-store":
                raise
            return  # nobody ever published
        if there:
            with self._connection.used() as db:
                for table in (self._head, self._part):
                    db.execute(f"DELETE FROM {table} WHERE namespace = %(namespace)s", self._key)
            self._connection.rewrite(f"VACUUM (FULL) {self._part}")


def _of(log: Log, kept: _Kept) -> bool:
    """Whether a log has been where a checkpoint was folded, and nothing was erased from it since."""
    commits = log.tail(kept.ordinal - 1, 1) if kept.ordinal else []
    return bool(commits) and commits[0].hash == kept.hash and not any(True for _ in erasures_after(log, kept.ordinal))


def _stands(file: Path) -> tuple[int, bytes]:
    """The ordinal that views in a file stand on, and the hash of its commit."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows: list[Any] = db.execute("SELECT DISTINCT ordinal, hash FROM positions").fetchall()
    finally:
        db.close()
    if len(rows) != 1:
        raise StoreError(f"the views in {file.parent.parent} stand at {len(rows)} places; run `vmstore rebuild`")
    ordinal, digest = rows[0]
    return int(ordinal), bytes(digest or b"")


def _digest(file: Path) -> bytes:
    with file.open("rb") as reading:
        return hashlib.file_digest(reading, "sha256").digest()


def _packed(file: Path) -> Iterator[bytes]:
    """A file packed, in pieces."""
    with file.open("rb") as reading:
        yield from zstandard.ZstdCompressor(level=LEVEL).read_to_iter(reading, write_size=PART_BYTES)
