"""Destruction: cells lose their bytes and their salts for good; hashes go on covering their commitments.

The frames that hold them are written anew without them in one transaction, then files of their own
are overwritten and removed, then the whole database is written anew, because SQLite leaves old bytes
in free pages and in the gaps of pages in use, and last the WAL is emptied. Each step can be done
again: what was destroyed before stays so.
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Collection, Iterable

import apsw

from vmstore.cells.cell import ERASED, SALT_BYTES
from vmstore.cells.keyring import ID_BYTES
from vmstore.errors import CorruptError, StoreError
from vmstore.log.compaction import Hold
from vmstore.log.file import LogFile
from vmstore.log.files import CellFiles, flush
from vmstore.log.frame import ERASED_SIZE, FILES, RAW, Frame, named, packed, unpacked
from vmstore.log.port import Destroyed
from vmstore.log.rows import READ_FRAMES, frame_of
from vmstore.log.vault import Clear

CHUNK_BYTES = 1 << 20
WAITS = 3  # for those who read, each as long as a connection waits
_FRAME = f"SELECT {READ_FRAMES} FROM frames WHERE first <= ? ORDER BY first DESC LIMIT 1"
_PUT = "UPDATE frames SET form = ?, sizes = ?, salts = ?, content = ? WHERE first = ?"


def destroy(file: LogFile, files: CellFiles, hold: Hold, numbers: Iterable[int], vault: Clear) -> Destroyed:
    """Destroys cells; see `Log.destroy`."""
    wanted = sorted(set(numbers))
    with hold():
        done, gone = _rewritten(file, wanted, vault)
        for commitment in gone:
            _remove(files, commitment)
        _scrub(file)
        with file as db:
            vault.drop_emptied(db)
    return done._replace(files=len(gone))


def _rewritten(file: LogFile, wanted: Collection[int], vault: Clear) -> tuple[Destroyed, list[bytes]]:
    """Writes the frames of cells anew without them; what was done, and the commitments that name their files."""
    gone: list[bytes] = []
    cells = size = frames = 0
    with file as db:
        db.execute("PRAGMA secure_delete = ON").fetchall()
        db.execute("BEGIN IMMEDIATE")
        try:
            for frame, name, places in _frames(db, wanted, vault):
                lengths = frame.lengths or ()
                fresh = [at for at in places if lengths[at] != ERASED_SIZE]
                if frame.form == FILES:
                    gone += [named(frame, at) for at in places]  # a kill may have left one of those of before
                if fresh:
                    cells, frames = cells + len(fresh), frames + 1
                    size += sum(lengths[at] for at in fresh)
                    blank = vault.closed(blanked(frame, fresh), name)
                    db.execute(_PUT, (blank.form, blank.sizes, blank.salts, blank.content, blank.first))
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            file.poison()
            raise
    return Destroyed(cells, size, frames), gone


def _frames(db: apsw.Connection, wanted: Collection[int], vault: Clear) -> list[tuple[Frame, bytes, list[int]]]:
    """The frames of cells, each with its key's id and the places of those it holds.

    A damaged one cannot be parted from its bytes.
    """
    found: dict[int, Frame] = {}
    names: dict[int, bytes] = {}
    places: defaultdict[int, list[int]] = defaultdict(list)
    frame: Frame | None = None
    for number in wanted:
        if frame is None or not frame.first <= number < frame.after:
            row = db.execute(_FRAME, (number,)).fetchone()
            held = None if row is None else frame_of(row)
            frame = None if held is None else vault.opened(held)
            if held is None or frame is None or not frame.first <= number < frame.after:
                raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`")
            if frame.lengths is None:
                raise CorruptError(f"the frame of cell {number} is damaged; run `vmstore verify`")
            found[frame.first], names[frame.first] = frame, held.salts[:ID_BYTES]
        places[frame.first].append(number - frame.first)
    return [(found[first], names[first], places[first]) for first in found]


def blanked(frame: Frame, places: Collection[int]) -> Frame:
    """A frame without the bytes and the salts of the cells at some places."""
    assert frame.lengths is not None, "a frame that can be read"
    lengths, salts = list(frame.lengths), bytearray(frame.salts)
    kept = b""
    if frame.form != FILES:
        whole = unpacked(frame, sum(length for length in lengths if length != ERASED_SIZE))
        if whole is None:
            raise CorruptError(
                f"the frame of cells {frame.first} to {frame.after - 1} is damaged and cannot be written anew; "
                "run `vmstore verify`"
            )
        kept = _without(whole, lengths, set(places))
    for at in places:
        lengths[at] = ERASED_SIZE
        salts[at * SALT_BYTES : (at + 1) * SALT_BYTES] = ERASED.salt
    left = frame._replace(sizes=struct.pack(f">{len(lengths)}I", *lengths), salts=bytes(salts))
    if frame.form == FILES:
        return left
    loose = left._replace(form=RAW, content=kept)
    return loose if frame.form == RAW else packed(loose)


def _without(content: bytes, lengths: Iterable[int], gone: Collection[int]) -> bytes:
    kept, start = [], 0
    for at, length in enumerate(lengths):
        end = start + (0 if length == ERASED_SIZE else length)
        if at not in gone:
            kept.append(content[start:end])
        start = end
    return b"".join(kept)


def _remove(files: CellFiles, commitment: bytes) -> None:
    """Overwrites a file and removes it, where it is there."""
    path = files.path(commitment)
    try:
        overwrite(path)
        path.unlink()
        flush(path.parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(
            f"{path} could not be destroyed ({error.strerror}); mend the disk, then run `vmstore erase --finish`"
        ) from error


def overwrite(path: str | os.PathLike[str]) -> None:
    """Writes zeros over a file, durable; what a disk keeps of earlier writes elsewhere is its own."""
    handle = os.open(path, os.O_WRONLY)
    try:
        size = os.fstat(handle).st_size
        for at in range(0, size, CHUNK_BYTES):
            os.pwrite(handle, bytes(min(CHUNK_BYTES, size - at)), at)
        os.fsync(handle)
    finally:
        os.close(handle)


def _scrub(file: LogFile) -> None:
    """Writes the database anew and empties its WAL, so that no old byte stays in either."""
    with file as db:
        db.execute("VACUUM").fetchall()
    for wait in range(1, WAITS + 1):
        with file as db:
            busy, left, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
        if not busy and left <= 0:
            return
        if wait == WAITS:
            raise StoreError(
                f"{file.path} is being read and its WAL cannot be emptied; what was erased may stay there "
                "until then: try `vmstore erase --finish` again"
            )
