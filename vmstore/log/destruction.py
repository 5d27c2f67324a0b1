"""Destruction: cells lose their bytes and their salts for good; hashes go on covering their commitments.

The frames that hold them are rewritten without them in one transaction, then files of their own
are overwritten and removed, then the whole database is rewritten, because SQLite leaves old bytes
in free pages and in the gaps of pages in use, and last the WAL is emptied. Each step can be done
again: what was destroyed before stays so.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import apsw

from vmstore.cells.cell import COMMITMENT_BYTES, ERASED, SALT_BYTES
from vmstore.core.system.safe_files import overwrite, remove
from vmstore.errors import CorruptError, StoreError
from vmstore.log.archive.folder import Archives
from vmstore.log.archive_frame import without
from vmstore.log.blobs import CellFiles
from vmstore.log.compaction import Hold
from vmstore.log.file import LogFile
from vmstore.log.frame import ARCHIVED, ENCRYPTED, ERASED_SIZE, FILES, RAW, Frame, named, packed, unpacked
from vmstore.log.frame_encryption import NoEncryption, key_of
from vmstore.log.port import DestroyResult
from vmstore.log.rows import READ_FRAMES, frame_of

WAITS = 3  # for those who read, each as long as a connection waits
_FRAME = f"SELECT {READ_FRAMES} FROM frames WHERE first <= ? ORDER BY first DESC LIMIT 1"
_SEALED = "SELECT cell, CAST(commitments AS BLOB) FROM commits WHERE cell IS NOT NULL ORDER BY ordinal"
_PUT = "UPDATE frames SET form = ?, sizes = ?, salts = ?, content = ? WHERE first = ?"


def destroy(
    file: LogFile, files: CellFiles, archives: Archives, vault: NoEncryption, hold: Hold, erased: Mapping[int, int]
) -> DestroyResult:
    """Destroys cells; see `Log.destroy`. Archives come first: the log forgets where their cells lie."""
    wanted = sorted(erased)
    with archives.alone(), hold():
        if archives.files():
            archives.destroy(dict(zip(_commitments(file, wanted), map(erased.__getitem__, wanted), strict=True)))
        done, gone = _rewritten(file, vault, wanted)
        for commitment in gone:
            _remove(files, commitment)
        _scrub(file)
    return done._replace(files=len(gone))


def _rewritten(file: LogFile, vault: NoEncryption, wanted: Collection[int]) -> tuple[DestroyResult, list[bytes]]:
    """Rewrites the frames of cells without them; what was done, and the commitments that name their files."""
    gone: list[bytes] = []
    cells = size = frames = 0
    with file as db:
        db.execute("PRAGMA secure_delete = ON").fetchall()
        db.execute("BEGIN IMMEDIATE")
        try:
            for old, places in _frames(db, wanted):
                frame = vault.opened(old)
                assert (frame.first, frame.cells) == (old.first, old.cells), "a key changes what cells hold, not which"
                if frame.form == ARCHIVED:
                    blank = without(frame, [old.first + at for at in places])
                    if blank != frame:
                        cells, frames = cells + len(places), frames + 1
                        blank = vault.closed(blank, key_of(old))
                        assert blank.cells == old.cells, "the row keeps its count, which is not written again"
                        db.execute(_PUT, (blank.form, blank.sizes, blank.salts, blank.content, blank.first))
                    continue
                lengths = frame.lengths
                if lengths is None:
                    raise CorruptError(f"the frame of cell {old.first} is damaged; run `vmstore verify`")
                fresh = [at for at in places if lengths[at] != ERASED_SIZE]
                if old.form in (FILES, FILES + ENCRYPTED):
                    gone += [named(old, at) for at in places]  # a kill may have left one of those of before
                if fresh:
                    cells, frames = cells + len(fresh), frames + 1
                    size += sum(lengths[at] for at in fresh)
                    blank = vault.closed(blanked(frame, fresh), key_of(old))
                    assert blank.cells == old.cells, "the row keeps its count, which is not written again"
                    db.execute(_PUT, (blank.form, blank.sizes, blank.salts, blank.content, blank.first))
            db.execute("COMMIT")
            vault.drop_emptied(db)
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            file.poison()
            raise
    return DestroyResult(cells, size, frames), gone


def _commitments(file: LogFile, numbers: Sequence[int]) -> Iterator[bytes]:
    """The commitments of cells, by ascending numbers; cells are numbered as commits are."""
    at = 0
    with file as db:
        rows = db.execute(_SEALED) if numbers else ()
        for first, commitments in rows:
            while at < len(numbers) and numbers[at] < first + len(commitments) // COMMITMENT_BYTES:
                place = (numbers[at] - first) * COMMITMENT_BYTES
                yield commitments[place : place + COMMITMENT_BYTES]
                at += 1


def _frames(db: apsw.Connection, wanted: Collection[int]) -> list[tuple[Frame, list[int]]]:
    """The frames of cells, each with the places of those it holds; a damaged one cannot be parted from its bytes."""
    found: dict[int, Frame] = {}
    places: defaultdict[int, list[int]] = defaultdict(list)
    frame: Frame | None = None
    for number in wanted:
        if frame is None or not frame.first <= number < frame.after:
            row = db.execute(_FRAME, (number,)).fetchone()
            frame = None if row is None else frame_of(row)
            if frame is None or not frame.first <= number < frame.after:
                raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`")
            found[frame.first] = frame
        places[frame.first].append(number - frame.first)
    return [(found[first], places[first]) for first in found]


def blanked(frame: Frame, places: Collection[int]) -> Frame:
    """A frame without the bytes and the salts of the cells at some places."""
    assert frame.lengths is not None, "a frame that can be read"
    lengths, salts = list(frame.lengths), bytearray(frame.salts)
    assert all(0 <= at < len(lengths) for at in places), "what is to be destroyed lies in this frame"
    kept = b""
    if frame.form != FILES:
        whole = unpacked(frame, sum(length for length in lengths if length != ERASED_SIZE))
        if whole is None:
            raise CorruptError(
                f"the frame of cells {frame.first} to {frame.after - 1} is damaged and cannot be rewritten; "
                "run `vmstore verify`"
            )
        kept = _without(whole, lengths, set(places))
    for at in places:
        lengths[at] = ERASED_SIZE
        salts[at * SALT_BYTES : (at + 1) * SALT_BYTES] = ERASED.salt
    assert len(salts) == SALT_BYTES * len(lengths), "the zeros of a destroyed salt move no other salt"
    assert frame.form == FILES or len(kept) == sum(length for length in lengths if length != ERASED_SIZE), (
        "what is left is as long as the sizes say, or no cell of the frame could be read again"
    )
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
    assert start == len(content), "the lengths account for every byte"
    return b"".join(kept)


def _remove(files: CellFiles, commitment: bytes) -> None:
    """Overwrites a file and removes it, where it is there."""
    path = files.path(commitment)
    try:
        overwrite(files.folder.parent, path)
        remove(files.folder.parent, path)
    except OSError as error:
        raise StoreError(
            f"{path} could not be destroyed ({error.strerror}); mend the disk, then run `vmstore erase --finish`"
        ) from error


def _scrub(file: LogFile) -> None:
    """Rewrites the database and empties its WAL, so that no old byte stays in either."""
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
