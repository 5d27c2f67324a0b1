"""Logs of format 0, rewritten as format 1.

Format 0 kept a row a cell: `cells  number | salt content form`, the form null for bytes as they are
and 1 for a zlib stream. Its commits were those of format 1, so hashes and numbers stay.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from vmstore.cells import schema
from vmstore.cells.cell import SALT_BYTES, Cell
from vmstore.errors import CorruptError, StoreError
from vmstore.log.blobs import CellFiles, flush
from vmstore.log.commit import Commit
from vmstore.log.file import FORMAT, FORMATS, MADE, create, format_of
from vmstore.log.frame import BOMB_BYTES, BOMB_RATIO, FILES, Frame, cut, named
from vmstore.log.port import Progress
from vmstore.log.readonly import ReadLog
from vmstore.log.rows import COMMITS, READ_COMMITS, blob, commit_of
from vmstore.log.sqlite import SqliteLog

BATCH = 256
KEPT = ".format-0"
_OLD = schema.made_by("CREATE TABLE cells(number INTEGER PRIMARY KEY, salt BLOB, content BLOB, form INTEGER)")
_CELLS = "SELECT * FROM cells WHERE number >= ? ORDER BY number LIMIT ?"


class UpgradeResult(NamedTuple):
    """Result of an upgrade: formats before and now, commits rewritten, the path of the old log."""

    before: int
    now: int
    commits: int
    kept: str | None


Prove = Callable[["OldLog", SqliteLog], None]
"""Raises CorruptError where what the new log gives is not what the old one gave."""


def upgrade(path: Path, progress: Progress | None = None, prove: Prove | None = None) -> UpgradeResult:
    """Puts a log of format 1 in the place of one of format 0, once it is known to hold the same.

    The old log keeps its name until then, and lies beside the new one afterwards. `prove` is asked
    last, with both.
    """
    before = format_of(path)
    if before in FORMATS:
        return UpgradeResult(before, before, 0, None)
    if before != 0:
        raise StoreError(
            f"{path} has format {before}, and only format 0 is upgraded: install the version that wrote it",
            code="not-upgradable",
        )
    new = path.with_name(path.name + ".new")
    for left in path.parent.glob(new.name + "*"):
        left.unlink()
    old = _held(path)
    try:
        create(new)
        commits = _copy(old, new, CellFiles(path.with_name("blobs")), progress)
        _compare(old, new, prove)
    except BaseException:
        for left in path.parent.glob(new.name + "*"):
            left.unlink()
        raise
    finally:
        old.close()
    kept = path.with_name(path.name + KEPT)
    if not (kept.exists() and kept.samefile(path)):  # else a try was killed between the two
        if kept.exists():
            raise StoreError(
                f"{kept} is there already, and {path} is another log; move one of them away, then upgrade",
                code="path-taken",
            )
        os.link(path, kept)
    os.replace(new, path)
    flush(path.parent)
    return UpgradeResult(before, FORMAT, commits, str(kept))


def _held(path: Path) -> apsw.Connection:
    """The old log, with everybody else kept out."""
    db = apsw.Connection(str(path))
    try:
        schema.guard(db)
        schema.check(db, path, MADE | _OLD)
        db.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").fetchall()
        return db
    except CorruptError:
        db.close()
        raise
    except apsw.BusyError as error:
        db.close()
        raise StoreError(
            f"{path} is open in another process; close it there, then upgrade", code="open-elsewhere"
        ) from error


def _copy(old: apsw.Connection, new: Path, files: CellFiles, progress: Progress | None) -> int:
    total = _count(old, "commits") + _count(old, "cells")
    db = apsw.Connection(str(new))
    try:
        db.execute("BEGIN")
        rows = old.execute(f"SELECT {COMMITS} FROM commits ORDER BY ordinal")
        db.executemany(f"INSERT INTO commits({COMMITS}) VALUES(?,?,?,?,?,?,?,?,?,?,?)", rows)
        for frame in _frames(old, files):
            db.execute("INSERT INTO frames VALUES(?,?,?,?,?,?)", frame)
            if progress is not None:
                progress(total - _count(old, "cells") + frame.after - 1, total)
        db.execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.close()
    return _count(old, "commits")


class OldLog(ReadLog):
    """A log of format 0, for comparing."""

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        super().__init__(path)
        self._db = db

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""
        sql = f"SELECT {READ_COMMITS} FROM commits WHERE ordinal > ? ORDER BY ordinal LIMIT ?"
        return [commit_of(row) for row in self._db.execute(sql, (after, limit))]

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers."""
        found = {}
        for number in set(numbers):
            row = self._db.execute("SELECT * FROM cells WHERE number = ?", (number,)).fetchone()
            if row is not None:
                found[number] = _cell(number, row)
        return found

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit."""
        return _count(self._db, "commits")

    @property
    def last_cell(self) -> int:
        """The number of the last cell."""
        return _count(self._db, "cells")

    def close(self) -> None:
        """Does nothing: the upgrade that opened it closes it."""


def _count(db: apsw.Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").get)


def _frames(old: apsw.Connection, files: CellFiles) -> Iterator[Frame]:
    """The old cells in frames; long ones go to their files."""
    start = 1
    while rows := old.execute(
        "SELECT * FROM cells WHERE number >= ? ORDER BY number LIMIT ?", (start, BATCH)
    ).fetchall():
        cells = [_cell(number, row) for number, row in enumerate(rows, start)]
        for frame in cut(start, cells, dense=True):
            if frame.form == FILES:
                files.keep(named(frame, 0), cells[frame.first - start].content)
            yield frame
        start += len(rows)


def _cell(expected: int, row: Any) -> Cell:
    number, salt, content, form = row
    if number != expected:
        raise CorruptError(f"cell {expected} is missing; put back a backup, then upgrade", code="cell-missing")
    try:
        cell = Cell(blob(salt), _inflated(blob(content)) if form is not None else blob(content))
    except zlib.error as error:
        raise CorruptError(
            f"cell {number} cannot be read ({error}); put back a backup, then upgrade", code="cell-damaged"
        ) from error
    if len(cell.salt) != SALT_BYTES:
        raise CorruptError(f"cell {number} is damaged; put back a backup, then upgrade", code="cell-damaged")
    return cell


def _inflated(content: bytes) -> bytes:
    """Inflates a cell of format 0, refusing one that claims to inflate to far more than cells do."""
    stream = zlib.decompressobj()
    found = stream.decompress(content, max(BOMB_BYTES, BOMB_RATIO * len(content)))
    if not stream.eof:
        raise zlib.error("it is cut short, or holds much more than it is likely to")
    return found


def _compare(old: apsw.Connection, new: Path, prove: Prove | None) -> None:
    """Raises CorruptError where the new log does not hold every commit of the old one and the cells they seal."""
    log = SqliteLog(new)
    try:
        log.files = CellFiles(new.with_name("blobs"))
        after = 0
        while rows := old.execute(
            f"SELECT {READ_COMMITS} FROM commits WHERE ordinal > ? ORDER BY ordinal LIMIT ?", (after, BATCH)
        ).fetchall():
            commits = [commit_of(row) for row in rows]
            cells = log.cells(n for c in commits for n in range(c.cell, c.cell + c.cell_count))
            for commit, copied in zip(commits, log.tail(after, BATCH), strict=True):
                sealed = all(cells[commit.cell + i].keeps(commit.commitment(i)) for i in range(commit.cell_count))
                if copied != commit or not sealed:
                    raise CorruptError(
                        f"commit {commit.ordinal} is damaged; put back a backup, then upgrade", code="commit-damaged"
                    )
            after = commits[-1].ordinal
        if prove is not None:
            prove(OldLog(new, old), log)
    except KeyError as error:
        raise CorruptError(f"cell {error} is missing; put back a backup, then upgrade", code="cell-missing") from error
    finally:
        log.close()
        new.with_suffix(".lock").unlink(missing_ok=True)
