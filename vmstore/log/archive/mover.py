"""Moves cells of a log into an archive and back, some frames at a time.

A step reads frames, reads their cells back from where they went, and puts the new rows in the
place of the old ones in one transaction, if those are still what was read. A crash leaves every
cell in one of the two places, and moving again resumes there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.cells.cell import DAMAGED, Cell
from vmstore.errors import CorruptError, OvertakenError, StoreError
from vmstore.log.archive.folder import Archives
from vmstore.log.archive_frame import FORMS, PLACE_BYTES, ArchivedRun, archived, kept, opened_there, place_of
from vmstore.log.blobs import CellFiles
from vmstore.log.cell_reader import frames_of
from vmstore.log.compaction import Hold, changed, replace, shrink
from vmstore.log.file import LogFile
from vmstore.log.frame import (
    ARCHIVED,
    DENSE_CELLS_MAX,
    ENCRYPTED,
    FILES,
    FRAME_BYTES_MAX,
    Frame,
    cut,
    named,
    opened,
)
from vmstore.log.frame_encryption import NoEncryption
from vmstore.log.port import Progress

STEP_BYTES = 4 << 20
assert STEP_BYTES >= FRAME_BYTES_MAX, "a step takes at least one frame of the log"
_PLACES = f"SELECT first, count, substr(content, 1, {PLACE_BYTES}) FROM frames WHERE form IN {FORMS} ORDER BY first"


class CellRun(NamedTuple):
    """Cells that lie in a row: the first one's number in the log, how many, the first one's in the archive."""

    first: int
    cells: int
    there: int


def runs_of(spans: Iterable[tuple[int, int]], there: int) -> list[CellRun]:
    """The cells of commits (first cell, how many), in the order an archive holds them from a number on, as few runs."""
    found: list[CellRun] = []
    for first, cells in spans:
        last = found[-1] if found else None
        if last is not None and last.first + last.cells == first:
            found[-1] = last._replace(cells=last.cells + cells)
        elif cells:
            found.append(CellRun(first, cells, there))
        there += cells
    assert not found or found[-1].there + found[-1].cells == there, "an archive holds the cells without a gap"
    return found


class Mover:
    """Moves the cells of one log."""

    def __init__(self, file: LogFile, files: CellFiles, archives: Archives, vault: NoEncryption, hold: Hold) -> None:
        self._vault = vault
        self._file = file
        self._files = files
        self._archives = archives
        self._hold = hold

    def away(self, uid: bytes, runs: Sequence[CellRun], keep: Collection[int], progress: Progress | None = None) -> int:
        """Moves runs of cells to the archive of a session, but those to `keep`; how many bytes of them moved.

        The archive holds all of them already. Files that nothing names any more are deleted.
        """
        moved, refused = 0, list[Frame]()
        for done, run in enumerate(runs):
            at, end = run.first, run.first + run.cells
            while at < end:
                old = self._step(at, end)
                new, size = self._turned(old, uid, run, keep)
                if not self._put(old, new):
                    refused = changed(self._file, refused, old)
                    continue
                self._drop_files(old, new)
                at, moved = max(old[-1].after, at + 1), moved + size
            if progress is not None:
                progress(done + 1, len(runs))
        self._give_back()
        return moved

    def _give_back(self) -> None:
        """Gives free pages back to the disk; the WAL is emptied too, unless somebody is reading it."""
        shrink(self._file, self._hold)
        with contextlib.suppress(StoreError), self._hold(), self._file as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def back(self, uid: bytes) -> int:
        """Moves all cells in the archive of a session back; how many. The archive is deleted then."""
        moved, refused = 0, list[Frame]()
        for first, cells in [(first, cells) for first, cells, place in self.places() if place.uid == uid]:
            at = first
            while at < first + cells:
                old = self._step(at, first + cells)
                new, size = self._returned(old, uid)
                if self._put(old, new):
                    at, moved = max(old[-1].after, at + 1), moved + size
                else:
                    refused = changed(self._file, refused, old)
        self._archives.drop(uid)
        self._give_back()
        return moved

    def places(self) -> Iterator[tuple[int, int, ArchivedRun]]:
        """The frames in archives: first cell, how many, and where they lie."""
        with self._file as db:
            rows: list[Any] = db.execute(_PLACES).fetchall()
        for first, cells, content in rows:
            place = place_of(Frame(first, cells, ARCHIVED, b"", b"", content))
            if place is not None:
                yield first, cells, place

    # ---- one step

    def _step(self, at: int, end: int) -> list[Frame]:
        """The frames from a cell on, about as much as a step takes."""
        found: list[Frame] = []
        size = 0
        while at < end and size < STEP_BYTES:
            frame = next((frame for frame, _ in frames_of(self._file, [at])), None)
            if frame is None:
                raise CorruptError(f"{self._file.path} holds no cell {at}; run `vmstore verify`")
            found.append(frame)
            size += len(frame.content)
            at = max(frame.after, at + 1)
        return found

    def _turned(self, old: Sequence[Frame], uid: bytes, run: CellRun, keep: Collection[int]) -> tuple[list[Frame], int]:
        """Frames with the cells of a run in the archive, and how many bytes that moves."""
        moved = 0

        def turned(frames: Iterable[Frame], name: bytes) -> Iterator[Frame]:
            """Gives the frames with the cells of the run laid in the archive."""
            nonlocal moved
            for frame in frames:
                if frame.form == ARCHIVED:  # moved before
                    yield frame
                    continue
                cells = self._read(frame, range(frame.first, frame.after))
                start, end = max(frame.first, run.first), min(frame.after, run.first + run.cells)
                assert start < end, "a step reads frames that hold cells of the run"
                inside = cells[start - frame.first : end - frame.first]
                place = ArchivedRun(uid, run.there + start - run.first)
                self._compare(place, inside)
                left = [cell if cell.erased or start + at in keep else None for at, cell in enumerate(inside)]
                yield from self._laid(frame.first, cells[: start - frame.first], name)
                yield archived(start, place, left)
                yield from self._laid(end, cells[end - frame.first :], name)
                moved += sum(len(cell.content) for cell, here in zip(inside, left, strict=True) if here is None)

        return list(self._vault.framed_again(old, lambda frames, name: joined(turned(frames, name)))), moved

    def _returned(self, old: Sequence[Frame], uid: bytes) -> tuple[list[Frame], int]:
        """Frames with the cells in the archive of a session in the log again, and how many cells that moves."""
        moved = 0

        def returned(frames: Iterable[Frame], name: bytes) -> Iterator[Frame]:
            nonlocal moved
            for frame in frames:
                place = place_of(frame)
                if place is None or place.uid != uid:
                    yield frame
                    continue
                moved += sum(cell is None for cell in kept(frame) or ())
                yield from self._laid(frame.first, self._read(frame, range(frame.first, frame.after)), name)

        return list(self._vault.framed_again(old, returned)), moved

    def _read(self, frame: Frame, numbers: Sequence[int]) -> list[Cell]:
        """All cells of a frame; CorruptError where one is not as it should be."""
        there = (
            opened_there(frame, numbers, self._archives)
            if frame.form == ARCHIVED
            else opened(frame, numbers, self._files.read)
        )
        found = dict(there)
        place = place_of(frame)
        for number in numbers:
            cell = found.get(number)
            if cell is None and place is not None:
                raise self._archives.missing(place.uid)
            if cell is None or cell == DAMAGED:
                raise CorruptError(f"{self._file.path} is damaged at cell {number}; run `vmstore verify`")
        return [cell for number in numbers if (cell := found[number]) is not None]

    def _compare(self, place: ArchivedRun, cells: Sequence[Cell]) -> None:
        """Raises where the archive does not hold what is about to leave the log."""
        numbers = range(place.number, place.number + len(cells))
        there = self._archives.cells(place.uid, numbers)
        if there is None:
            raise self._archives.missing(place.uid)
        if [there[number] for number in numbers] != list(cells):
            raise OvertakenError(
                f"{self._archives.path(place.uid)} does not hold what the log does, which changed meanwhile; "
                "archive the session again",
                code="archive-overtaken",
            )

    def _laid(self, first: int, cells: Sequence[Cell], name: bytes) -> Iterator[Frame]:
        """Cells in packed frames, long ones in their files again, under the key of an id."""
        for frame in cut(first, cells, dense=True):
            if frame.form == FILES and not self._files.holds(named(frame, 0)):
                self._files.keep(named(frame, 0), cells[frame.first - first].content, name)
            yield frame

    def _put(self, old: Sequence[Frame], new: Sequence[Frame]) -> bool:
        """Puts frames in the place of others; False where those were packed meanwhile, and are to be read again."""
        return list(old) == list(new) or replace(self._file, self._hold, old, new, secure=True)

    def _drop_files(self, old: Sequence[Frame], new: Sequence[Frame]) -> None:
        """Deletes the files of long cells that moved."""
        for commitment in set(_files_of(old)) - set(_files_of(new)):
            self._files.path(commitment).unlink(missing_ok=True)


def _files_of(frames: Iterable[Frame]) -> Iterator[bytes]:
    """The commitments that name the files of frames."""
    for frame in frames:
        if frame.form in (FILES, FILES + ENCRYPTED):
            yield from (named(frame, at) for at in range(frame.cells))


def joined(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Frames with neighbours that lie in a row in one archive made one, as far as is sensible."""
    pending: list[Cell | None] = []
    first, size = 0, 0
    place: ArchivedRun | None = None
    for frame in frames:
        there, cells = place_of(frame), kept(frame) if frame.form == ARCHIVED else None
        fits = (
            place is not None
            and cells is not None
            and there == ArchivedRun(place.uid, place.number + len(pending))
            and frame.first == first + len(pending)
            and len(pending) + len(cells) <= DENSE_CELLS_MAX
            and size < FRAME_BYTES_MAX
        )
        if not fits and place is not None and pending:
            yield archived(first, place, pending)
            place, pending, size = None, [], 0
        if there is None or cells is None:
            yield frame
            continue
        if not pending:
            place, first = there, frame.first
        pending += cells
        size += sum(len(cell.content) for cell in cells if cell is not None)
    if pending and place is not None:
        yield archived(first, place, pending)
