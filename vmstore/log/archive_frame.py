"""A frame of cells that lie in an archive: what the log keeps of them.

    content  uid of the archive's session, 16 bytes; the number there of the run's first cell, 8 bytes,
             big-endian; then, as one zstd frame, the bytes of those cells that are kept here too
    sizes    AWAY_SIZE of a cell that lies in the archive alone
    salts    of the cells kept here

Names and labels are kept here, so that views can be folded while an archive is not at hand. Under a
key the place stays as it is, as the form and the sizes do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from vmstore.cells.cell import DAMAGED, ERASED, SALT_BYTES, Cell
from vmstore.log.frame import ARCHIVED, ENCRYPTED, ERASED_SIZE, Frame, squeezed, stretched

AWAY_SIZE = 0xFFFF_FFFE
_PLACE = struct.Struct(">16sQ")
PLACE_BYTES = _PLACE.size
FORMS = (ARCHIVED, ARCHIVED + ENCRYPTED)

assert AWAY_SIZE != ERASED_SIZE, "a cell that lies elsewhere is not one that was destroyed"
assert PLACE_BYTES == 24, "the bytes after the place are compressed: another width would read none of them"


class Archive(Protocol):
    """The reader of archived cells, as a log sees it."""

    def cells(self, uid: bytes, numbers: Sequence[int]) -> Mapping[int, Cell] | None:
        """The cells of some numbers in the archive of a session's uid; None where there is no such file."""
        ...

    def missing(self, uid: bytes) -> Exception:
        """The error to raise where a session's archive is missing."""
        ...


class ArchivedRun(NamedTuple):
    """The place of a run of cells: the archive of a session's uid, and the number of its first cell."""

    uid: bytes
    number: int


def archived(first: int, place: ArchivedRun, cells: Sequence[Cell | None]) -> Frame:
    """A run of cells in an archive; None is one that lies there alone."""
    kept = [cell for cell in cells if cell is not None]
    sizes = [AWAY_SIZE if c is None else ERASED_SIZE if c.erased else len(c.content) for c in cells]
    content = _PLACE.pack(*place) + squeezed(b"".join(cell.content for cell in kept))
    salts = b"".join(cell.salt for cell in kept)
    assert len(salts) == SALT_BYTES * len(kept), "`kept` takes a frame with fewer salts for a damaged one"
    return Frame(first, len(cells), ARCHIVED, struct.pack(f">{len(cells)}I", *sizes), salts, content)


def place_of(frame: Frame) -> ArchivedRun | None:
    """The archive place that a frame states; None for another form or a damaged row."""
    if frame.form not in FORMS or len(frame.content) < PLACE_BYTES:
        return None
    return ArchivedRun(*_PLACE.unpack_from(frame.content))


def salts_of(frame: Frame) -> int:
    """How many salts a frame holds: of cells that lie here."""
    away = struct.pack(">I", AWAY_SIZE)
    return frame.cells - sum(frame.sizes[at : at + 4] == away for at in range(0, len(frame.sizes), 4))


def kept(frame: Frame) -> list[Cell | None] | None:
    """Each cell of a frame, None where it lies in the archive alone; None for all where the row is damaged."""
    if len(frame.sizes) != 4 * frame.cells or place_of(frame) is None:
        return None
    sizes = struct.unpack(f">{frame.cells}I", frame.sizes)
    lengths = [0 if size == ERASED_SIZE else size for size in sizes if size != AWAY_SIZE]
    content = stretched(frame.content[_PLACE.size :], sum(lengths))
    if content is None or len(frame.salts) != SALT_BYTES * len(lengths):
        return None
    found: list[Cell | None] = []
    start = nth = 0
    for size in sizes:
        if size == AWAY_SIZE:
            found.append(None)
            continue
        end = start + lengths[nth]
        salt = frame.salts[nth * SALT_BYTES : (nth + 1) * SALT_BYTES]
        found.append(ERASED if size == ERASED_SIZE else Cell(salt, content[start:end]))
        start, nth = end, nth + 1
    assert start == len(content) and nth == len(lengths), "every byte and every salt is of one cell"
    return found


def opened_there(frame: Frame, wanted: Iterable[int], archive: Archive | None) -> Iterator[tuple[int, Cell | None]]:
    """The cells of a frame by number, those away only where an `archive` is given; None where its file is gone."""
    cells, place = kept(frame), place_of(frame)
    away = []
    for number in wanted:
        assert frame.first <= number < frame.after, "the caller has found the frame by the number"
        cell = DAMAGED if cells is None else cells[number - frame.first]
        if cell is not None:
            yield number, cell
        else:
            away.append(number)
    if archive is None or not away or place is None:
        return
    shift = place.number - frame.first
    there = archive.cells(place.uid, [number + shift for number in away])
    for number in away:
        yield number, None if there is None else there[number + shift]


def without(frame: Frame, numbers: Iterable[int]) -> Frame:
    """The frame with the cells of these numbers destroyed: the log then no longer asks its archive for them.

    In the archive they are destroyed by `Archives.destroy`. A damaged row stays as it is.
    """
    cells, place = kept(frame), place_of(frame)
    if cells is None or place is None:
        return frame
    gone = {number - frame.first for number in numbers}
    assert gone <= set(range(len(cells))), "what is to be destroyed lies in this frame, or it would stay unnoticed"
    return archived(frame.first, place, [ERASED if at in gone else cell for at, cell in enumerate(cells)])
