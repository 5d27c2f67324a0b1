"""Packing: neighbouring raw frames become compressed ones, and the file shrinks.

A step reads some frames, packs them while nobody waits, then takes the writers' lock and puts
them in the place of the old ones in one transaction, if those are still what was read. A crash
leaves the old frames or the new ones.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence

from vmstore.cells.cell import SALT_BYTES
from vmstore.errors import CorruptError, StoreError
from vmstore.log.file import LogFile
from vmstore.log.frame import CELLS_MAX, ENCRYPTED, ERASED_SIZE, FRAME_BYTES_MAX, RAW, ZSTD, Frame, packed, unpacked
from vmstore.log.frame_encryption import PLAIN, NoEncryption
from vmstore.log.port import CompactionResult, Progress
from vmstore.log.rows import READ_FRAMES, frame_of, number

STEP_BYTES = 4 << 20  # of content read at a time
DUE_FRAMES = 256  # raw frames at the end of a log that are worth packing
LOOK_BACK_FRAMES = 4096
SHRINK_PAGES = 1024  # moved at a time, while writers wait
FULL_BYTES = FRAME_BYTES_MAX // 2  # a packed frame with this much is left as it is

assert DUE_FRAMES <= LOOK_BACK_FRAMES, "the frames that are due lie within the look back for where they begin"

_READ = f"SELECT {READ_FRAMES} FROM frames WHERE first >= ? ORDER BY first LIMIT ?"
_BETWEEN = f"SELECT {READ_FRAMES} FROM frames WHERE first >= ? AND first <= ? ORDER BY first"
_FORMS = "SELECT first, form FROM frames ORDER BY first DESC LIMIT ?"

Hold = Callable[[], contextlib.AbstractContextManager[None]]
"""Keeps every other writer out."""


def plus(done: CompactionResult, old: Sequence[Frame], new: Sequence[Frame]) -> CompactionResult:
    """Adds one repacked batch of frames to the totals."""
    before, after = (sum(len(frame.content) for frame in frames) for frames in (old, new))
    return CompactionResult(
        done.frames_before + len(old),
        done.frames_after + len(new),
        done.bytes_before + before,
        done.bytes_after + after,
    )


def due(file: LogFile) -> int | None:
    """The first of the raw frames at the end of a log, or None where they are too few to be worth it."""
    with file as db:
        rows = db.execute(_FORMS, (DUE_FRAMES,)).fetchall()
        if len(rows) < DUE_FRAMES or any(form not in (RAW, RAW + ENCRYPTED) for _, form in rows):
            return None
        first = None
        for number, form in db.execute(_FORMS, (LOOK_BACK_FRAMES,)):
            if form in (ZSTD, ZSTD + ENCRYPTED):
                break
            first = number
        return first


def pack(
    file: LogFile,
    hold: Hold,
    start: int = 0,
    *,
    steps: int | None = None,
    progress: Progress | None = None,
    vault: NoEncryption = PLAIN,
) -> CompactionResult:
    """Packs the frames from a cell on, in steps; gives what they freed back to the disk."""
    done = CompactionResult()
    total = _last(file)
    refused: list[Frame] = []
    while steps is None or steps > 0:
        old = list(_stretch(file, start))
        if not old:
            break
        new = list(vault.framed_again(old, lambda frames, _: packed_again(frames)))
        if new != old and not replace(file, hold, old, new):
            refused = changed(file, refused, old)
            continue
        done = plus(done, old, new)
        start = old[-1].after
        steps = None if steps is None else steps - 1
        if progress is not None:
            progress(min(start, total), total)
    if done.bytes_after < done.bytes_before:
        shrink(file, hold)
    return done


def changed(file: LogFile, before: Sequence[Frame], now: Sequence[Frame]) -> list[Frame]:
    """Frames that changed before others could stand in their place, to be read again; CorruptError the second time."""
    if list(before) == list(now):  # nobody changed them: the table gives other rows to another question
        raise disorder(file, now[0].first)
    return list(now)


def disorder(file: LogFile, number: int) -> CorruptError:
    """The error for rows that are out of order."""
    return CorruptError(f"{file.path} is damaged (the rows at cell {number} are out of order); put back a backup")


def _last(file: LogFile) -> int:
    with file as db:
        return number(db.execute("SELECT max(first) FROM frames").get)


def _stretch(file: LogFile, start: int) -> Iterator[Frame]:
    """Frames from a cell on, about as much content as a step takes."""
    bytes_held = 0
    while bytes_held < STEP_BYTES:
        with file as db:
            frames = [frame_of(row) for row in db.execute(_READ, (start, 64))]
        for frame in frames:
            if frame.first < start:  # else pages that changed places are walked for ever
                raise disorder(file, frame.first)
            yield frame
            bytes_held += len(frame.content)
            start = max(frame.after, frame.first + 1)
        if not frames:
            return


def packed_again(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The same cells in well filled compressed frames; full, damaged and FILES frames stay as they are."""
    pending: list[Frame] = []
    for frame in frames:
        loose = _loosened(frame)
        if loose is None or (pending and pending[-1].after != frame.first):
            yield from _flushed(pending)
            pending = []
        if loose is None:
            yield frame
        else:
            pending.append(loose)
    yield from _flushed(pending)


def _loosened(frame: Frame) -> Frame | None:
    """A frame with its content unpacked, or None where it is to stay as it is."""
    lengths = frame.lengths
    if not lengths:
        return None
    size = sum(length for length in lengths if length != ERASED_SIZE)
    if frame.form == ZSTD and (size >= FULL_BYTES or frame.cells == CELLS_MAX):
        return None
    content = unpacked(frame, size)
    return None if content is None else frame._replace(form=RAW, content=content)


def _flushed(pending: Sequence[Frame]) -> Iterator[Frame]:
    """The cells of neighbouring loose frames, cut again and packed."""
    if not pending:
        return
    sizes, salts, content = (b"".join(parts) for parts in zip(*[frame[3:] for frame in pending], strict=True))
    first, start, place, bytes_held = pending[0].first, 0, 0, 0
    lengths = struct.unpack(f">{len(sizes) // 4}I", sizes)
    assert len(salts) == SALT_BYTES * len(lengths), "sizes and salts are cut at the same cells"
    for at, entry in enumerate(lengths):
        length = 0 if entry == ERASED_SIZE else entry
        if at > start and (bytes_held + length > FRAME_BYTES_MAX or at - start == CELLS_MAX):
            yield _piece(first, start, at, sizes, salts, content[place : place + bytes_held])
            start, place, bytes_held = at, place + bytes_held, 0
        bytes_held += length
    assert place + bytes_held == len(content), "the sizes account for every byte, so none is left out"
    yield _piece(first, start, len(lengths), sizes, salts, content[place:])


def _piece(first: int, start: int, end: int, sizes: bytes, salts: bytes, content: bytes) -> Frame:
    part = slice(start * SALT_BYTES, end * SALT_BYTES)
    return packed(Frame(first + start, end - start, RAW, sizes[start * 4 : end * 4], salts[part], content))


def replace(file: LogFile, hold: Hold, old: Sequence[Frame], new: Sequence[Frame], *, secure: bool = False) -> bool:
    """Puts frames in the place of others, if those are still there; whether they were.

    `secure` has SQLite write zeros over what the old ones held.
    """
    span = (old[0].first, old[-1].first)
    assert new[0].first == old[0].first, "the new frames begin with the cell the old ones began with"
    assert new[-1].after == old[-1].after, "and end with the same one: no cell is lost between two rows"
    with hold(), file as db:
        before = db.execute("PRAGMA secure_delete").get
        db.execute(f"PRAGMA secure_delete = {int(secure or bool(before))}").fetchall()
        db.execute("BEGIN IMMEDIATE")
        try:
            same = [frame_of(row) for row in db.execute(_BETWEEN, span)] == list(old)
            if same:
                db.execute("DELETE FROM frames WHERE first >= ? AND first <= ?", span)
                db.executemany("INSERT INTO frames VALUES(?,?,?,?,?,?)", new)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            file.poison()
            raise
        db.execute(f"PRAGMA secure_delete = {int(before)}").fetchall()
    return same


def shrink(file: LogFile, hold: Hold) -> None:
    """Gives free pages back to the disk, some at a time; where somebody is in the way the next packing does it."""
    with contextlib.suppress(StoreError):
        while True:
            with hold(), file as db:
                if not db.execute("PRAGMA freelist_count").get:
                    return
                db.execute(f"PRAGMA incremental_vacuum({SHRINK_PAGES})").fetchall()
