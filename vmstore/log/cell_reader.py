"""Reads cells by number out of the frames of a log, wherever their bytes lie."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from vmstore.cells.cell import Cell
from vmstore.log.archive_frame import Archive, opened_there, place_of
from vmstore.log.file import LogFile
from vmstore.log.frame import ARCHIVED, Files, Frame, opened
from vmstore.log.frame_encryption import PLAIN, NoEncryption, key_of
from vmstore.log.rows import READ_FRAMES, frame_of

NEVER = (1 << 63) - 1
_FRAME = f"SELECT {READ_FRAMES} FROM frames WHERE first <= ? ORDER BY first DESC LIMIT 1"


def frames_of(
    file: LogFile, numbers: Sequence[int], vault: NoEncryption = PLAIN
) -> Iterator[tuple[Frame, Sequence[int]]]:
    """The frames that hold cells of these numbers, which are in order, each with those it holds."""
    start = 0
    vault.refresh()
    while start < len(numbers):
        with file as db:
            row = db.execute(_FRAME, (numbers[start],)).fetchone()
        frame = None if row is None else vault.opened(frame_of(row))
        end = start + 1
        if frame is not None and frame.first <= numbers[start] < frame.after:  # else rows changed places
            end = bisect_left(numbers, frame.after, start)
            assert start < end, "each frame that is read brings the search on"
            assert numbers[start] <= numbers[end - 1] < frame.after, (
                "the numbers are in order, as the search needs them"
            )
            yield frame, numbers[start:end]
        start = end


def key_under(file: LogFile, number: int) -> bytes:
    """The id of the key that a cell lies under; none of a plain one."""
    return next((key_of(frame) for frame, _ in frames_of(file, [number])), b"")


def cells_of(
    file: LogFile,
    numbers: Iterable[int],
    files: Files,
    archive: Archive | None,
    vault: NoEncryption = PLAIN,
    *,
    dense: bool = False,
) -> Iterator[tuple[int, Cell]]:
    """The cells of these numbers, each frame read once and one at a time; one that is not there is left out.

    Bytes may move to a file or out of one between a look at the frame and one at the file, so what
    is not found is looked for once more. Without `archive` what lies in one is left out; with it
    CorruptError names one that is missing or damaged. `dense` is a file whose frames are those of an archive.
    """
    gone: Sequence[int] = sorted({at for at in numbers if 0 < at <= NEVER})
    for last in (False, True):
        later: list[int] = []
        for frame, wanted in frames_of(file, gone, vault):
            away = frame.form == ARCHIVED and not dense
            there = opened_there(frame, wanted, archive) if away else opened(frame, wanted, files, dense=dense)
            for at, cell in there:
                if cell is None:
                    if last and archive is not None and (place := place_of(frame)) is not None:
                        raise archive.missing(place.uid)
                    later.append(at)
                else:
                    yield at, cell
        gone = later
