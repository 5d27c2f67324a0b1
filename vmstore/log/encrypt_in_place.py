"""A plain log put under keys, in place: frames and files in steps, each whole, with everybody else kept out.

While it lasts the file has a format that nobody opens, so a killed one is taken up where it stopped
and never read half done. At the end the file is rewritten, so that no free page keeps a content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import apsw
import msgspec

from vmstore.cells import schema
from vmstore.cells.cell import DAMAGED, Cell
from vmstore.cells.subject_keys import ID_BYTES
from vmstore.errors import CorruptError, StoreError
from vmstore.log.blobs import CellFiles
from vmstore.log.file import ENCRYPTED_FORMAT, HALF_ENCRYPTED_FORMAT, MADE, format_of
from vmstore.log.frame import ENCRYPTED, FILES, RAW, ZSTD, Frame, cut, named, opened
from vmstore.log.frame_encryption import PLAIN, SUFFIX, FrameEncryption
from vmstore.log.port import Progress
from vmstore.log.rows import READ_COMMITS, READ_FRAMES, commit_of, frame_of

STEP_FRAMES = 64
_FRAMES = f"SELECT {READ_FRAMES} FROM frames WHERE first >= ? ORDER BY first LIMIT ?"
_FRAME = f"SELECT {READ_FRAMES} FROM frames WHERE first <= ? ORDER BY first DESC LIMIT 1"
_COMMIT = f"SELECT {READ_COMMITS} FROM commits WHERE ordinal = ?"
_OTHER = f"SELECT form FROM frames WHERE form NOT IN ({RAW}, {ZSTD}, {FILES}) AND form < {ENCRYPTED} LIMIT 1"
_OWNERS = "SELECT session, length(commitments) / 32 FROM commits WHERE cell IS NOT NULL ORDER BY ordinal"


def encrypt(path: Path, vault: FrameEncryption, tidied: Callable[[], None], progress: Progress | None = None) -> int:
    """Encrypts a sound log, or resumes where that was stopped; how many cells it holds.

    `tidied` is called before the log counts as encrypted, to remove what else holds contents.
    """
    db = _alone(path)
    try:
        if (form := db.execute(_OTHER).get) is not None:
            raise StoreError(
                f"{path} holds frames of form {form}, which cannot be encrypted; bring archives back first",
                code="not-encryptable",
            )
        db.execute("PRAGMA secure_delete = ON").fetchall()
        _mark(db, HALF_ENCRYPTED_FORMAT)
        cells = _Rewriting(path, db, vault).run(progress)
        db.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for file in path.with_name("blobs").glob("*/*"):
            if file.suffix != SUFFIX:
                file.unlink()
        tidied()
        _mark(db, ENCRYPTED_FORMAT)
        return cells
    except (apsw.FullError, apsw.IOError) as error:
        raise StoreError(f"{path} could not be written ({error}); make room, then run it again") from error
    finally:
        db.close()


def _alone(path: Path) -> apsw.Connection:
    """The log, with everybody else kept out; what is flushed stays."""
    db = apsw.Connection(str(path))
    try:
        schema.guard(db)
        schema.check(db, path, MADE)
        db.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON").fetchall()
        db.execute("BEGIN IMMEDIATE; COMMIT").fetchall()
        return db
    except CorruptError:
        db.close()
        raise
    except apsw.BusyError as error:
        db.close()
        raise StoreError(f"{path} is open elsewhere; close it there, then encrypt it", code="open-elsewhere") from error


def format_now(path: Path) -> int:
    """The format of a log as SQLite knows it, also where a killed process left the mark in the WAL."""
    format_of(path)  # says what is no log of ours
    db = apsw.Connection(str(path))
    try:
        return int(db.execute("PRAGMA user_version").get)
    finally:
        db.close()


def _mark(db: apsw.Connection, format: int) -> None:
    """Sets the format, in the file itself, where opening it looks first."""
    db.execute(f"PRAGMA user_version = {format}; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class _Rewriting:
    """Goes through the frames of a log in order, each cell with the session that brought it."""

    def __init__(self, path: Path, db: apsw.Connection, vault: FrameEncryption) -> None:
        self._path = path
        self._db = db
        self._vault = vault
        self._plain, self._closed = (CellFiles(path.with_name("blobs"), scheme) for scheme in (PLAIN, vault))
        self._names: dict[int, bytes] = {}

    def run(self, progress: Progress | None) -> int:
        """Encrypts what is plain; the number of the last cell."""
        last: Any = self._db.execute("SELECT coalesce(max(first + count), 1) - 1 FROM frames").get
        brought: list[Any] = self._db.execute(_OWNERS).fetchall()
        owners = (session for session, cells in brought for _ in range(cells))
        start = 1
        while frames := self._some(start):
            new = list(self._encrypted(frames, owners))
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM frames WHERE first >= ? AND first < ?", (start, frames[-1].after))
            self._db.executemany("INSERT INTO frames VALUES(?,?,?,?,?,?)", new)
            self._db.execute("COMMIT")
            if frames[-1].after <= start:
                raise CorruptError(f"{self._path} is damaged (its rows are out of order); put back a backup")
            start = frames[-1].after
            if progress is not None:
                progress(start - 1, last)
        return int(last)

    def _some(self, start: int) -> list[Frame]:
        """The next frames, as many as a step takes."""
        return [frame_of(row) for row in self._db.execute(_FRAMES, (start, STEP_FRAMES)).fetchall()]

    def _encrypted(self, frames: list[Frame], owners: Iterator[int]) -> Iterator[Frame]:
        """The cells of frames under the keys of their subjects; what is encrypted already stays."""
        for done, run in groupby(frames, key=lambda frame: frame.form >= ENCRYPTED):
            same_kind = list(run)
            names = [self._name(next(owners)) for frame in same_kind for _ in range(frame.cells)]
            if done:
                yield from same_kind
                continue
            cells = [cell for frame in same_kind for cell in self._cells(frame)]
            at = 0
            for name, same in groupby(names):
                count = len(list(same))
                yield from self._laid(same_kind[0].first + at, cells[at : at + count], name)
                at += count
            assert at == len(cells), "every cell lies under the key of one session"

    def _laid(self, first: int, cells: list[Cell], name: bytes) -> Iterator[Frame]:
        for frame in cut(first, cells, dense=True):
            if frame.form == FILES:
                assert frame.cells == 1, "a file holds one cell"
                self._closed.keep(named(frame, 0), cells[frame.first - first].content, name)
            yield self._vault.closed(frame, name)

    def _cells(self, frame: Frame) -> Iterator[Cell]:
        for number, cell in opened(frame, range(frame.first, frame.after), self._plain.read):
            yield self._sound(number, cell)

    def _sound(self, number: int, cell: Cell | None) -> Cell:
        if cell is None or cell == DAMAGED:
            raise CorruptError(f"cell {number} of {self._path} is damaged; put back a backup, then encrypt that")
        return cell

    def _name(self, session: int) -> bytes:
        """The id of the key of a session: that of its first cell, where that is encrypted already."""
        if session not in self._names:
            first = commit_of(self._db.execute(_COMMIT, (session,)).fetchone())
            numbers = range(first.cell, first.cell + first.cell_count)
            if not numbers:
                name = self._vault.keyring.name(b"")
            elif (frame := self._holding(first.cell)).form >= ENCRYPTED:
                name = frame.salts[:ID_BYTES]
            else:
                name = self._vault.first_key(msgspec.structs.replace(first, cells=tuple(map(self._cell, numbers))))
            self._names[session] = self._vault.keyring.in_use(name)
        return self._names[session]

    def _holding(self, number: int) -> Frame:
        row = self._db.execute(_FRAME, (number,)).fetchone()
        if row is None or not (frame := frame_of(row)).first <= number < frame.after:
            raise CorruptError(f"cell {number} of {self._path} is missing; put back a backup, then encrypt that")
        return frame

    def _cell(self, number: int) -> Cell:
        return self._sound(number, dict(opened(self._holding(number), [number], self._plain.read))[number])
