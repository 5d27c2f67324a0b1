"""A frame: a run of cells in one row of the log.

    first  the number of its first cell           sizes    4 bytes a cell, big-endian
    count  how many cells it holds                salts    16 bytes a cell
    form   how their bytes lie                    content  the bytes, one cell after the other

RAW as they are; ZSTD as one zstd frame; FILES each in a file of its own, `content` then holds
their commitments, which name the files; ARCHIVED in an archive, see `archived`. A destroyed cell
has the size ERASED_SIZE, no bytes and a salt of zeros. Hashes cover cells, not frames, so cells can
be framed again at any time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from threading import local
from typing import TYPE_CHECKING, NamedTuple

from vmstore.cells.cell import COMMITMENT_BYTES, DAMAGED, ERASED, SALT_BYTES, Cell

if TYPE_CHECKING:
    from zstandard import ZstdDecompressor

RAW, ZSTD, FILES, ARCHIVED = 0, 1, 2, 3
ENCRYPTED = 16  # added to the form of a frame under a key, see `vault`
ERASED_SIZE = 0xFFFF_FFFF
FILE_BYTES_MIN = 65_537  # longer than 64 KiB: a file of its own
FRAME_BYTES_MAX = 65_536  # of content; larger ones pack better and cost more to read one cell of
CELLS_MAX = 256
LEVEL = 3
DENSE_BYTES_MAX = 1 << 20  # of content in a frame of an archive, which is read seldom
DENSE_CELLS_MAX = 4096
DENSE_LEVEL = 19
BOMB_BYTES, BOMB_RATIO = 16 << 20, 128  # more than both of one zstd frame is not believed, nor written

assert max(RAW, ZSTD, FILES, ARCHIVED) < ENCRYPTED, "the form below the encryption follows from the sum"
assert FILE_BYTES_MIN > FRAME_BYTES_MAX, "a cell with a file of its own never fits into a frame, where `cut` looks"
assert CELLS_MAX <= DENSE_CELLS_MAX and FRAME_BYTES_MAX <= DENSE_BYTES_MAX, "an archive reads the frames of a log"
assert DENSE_BYTES_MAX <= BOMB_BYTES, "a full frame is believed, however well it packs"

Files = Callable[[bytes], bytes | None]
"""The bytes of the file of a commitment, or None where there is none."""


class Frame(NamedTuple):
    """One row of the table, as it lies there."""

    first: int
    cells: int
    form: int
    sizes: bytes
    salts: bytes
    content: bytes

    @property
    def after(self) -> int:
        """The number of the cell after its last."""
        return self.first + self.cells

    @property
    def lengths(self) -> tuple[int, ...] | None:
        """How long each cell is, ERASED_SIZE where it was destroyed; None where the row is damaged."""
        if len(self.sizes) != 4 * self.cells or len(self.salts) != SALT_BYTES * self.cells:
            return None
        return struct.unpack(f">{self.cells}I", self.sizes)


def raw(first: int, cells: Sequence[Cell]) -> Frame:
    """Cells as they are."""
    contents, salts = [cell.content for cell in cells], [cell.salt for cell in cells]
    sizes = list(map(len, contents))
    if ERASED.salt in salts:
        sizes = [ERASED_SIZE if salt == ERASED.salt else size for salt, size in zip(salts, sizes, strict=True)]
    frame = Frame(first, len(cells), RAW, struct.pack(f">{len(cells)}I", *sizes), b"".join(salts), b"".join(contents))
    assert len(frame.salts) == SALT_BYTES * frame.cells, "`lengths` takes a frame with fewer salts for a damaged one"
    return frame


def packed(frame: Frame) -> Frame:
    """A raw frame with its content compressed, or as it was where that is no shorter."""
    import zstandard

    assert frame.form == RAW, "content is compressed once"
    content = zstandard.ZstdCompressor(level=LEVEL).compress(frame.content) if frame.content else b""
    return frame._replace(form=ZSTD, content=content) if 0 < len(content) < len(frame.content) else frame


def densely(first: int, cells: Iterable[Cell]) -> Iterator[Frame]:
    """A run of cells as frames for an archive: long, squeezed, with a checksum, none in a file of its own."""
    held_cells: list[Cell] = []
    size = 0
    for cell in cells:
        if held_cells and (size + len(cell.content) > DENSE_BYTES_MAX or len(held_cells) == DENSE_CELLS_MAX):
            yield _dense(first, held_cells)
            first, held_cells, size = first + len(held_cells), [], 0
        held_cells.append(cell)
        size += len(cell.content)
    if held_cells:
        yield _dense(first, held_cells)


def _dense(first: int, cells: Sequence[Cell]) -> Frame:
    frame = raw(first, cells)
    content = squeezed(frame.content)
    fits = frame.content and believable(len(frame.content), len(content))
    return frame._replace(form=ZSTD, content=content) if fits else frame


def in_file_of_its_own(first: int, cell: Cell) -> Frame:
    """A cell whose bytes lie in a file named by its commitment."""
    assert len(cell.content) >= FILE_BYTES_MIN, "a file is written and flushed for a long cell alone"
    return raw(first, [cell])._replace(form=FILES, content=cell.commitment)


def cut(first: int, cells: Sequence[Cell], *, dense: bool) -> Iterator[Frame]:
    """A run of cells as frames, each of a sensible length; `dense` ones are compressed at once."""
    start, bytes_held = 0, 0
    for index, cell in enumerate(cells):
        size = len(cell.content)
        if bytes_held + size > FRAME_BYTES_MAX or index - start == CELLS_MAX:
            if index > start:
                yield _framed(first + start, cells[start:index], dense)
            start, bytes_held = index, 0
            if size >= FILE_BYTES_MIN:
                yield in_file_of_its_own(first + index, cell)
                start = index + 1
                continue
        bytes_held += size
    if start < len(cells):
        yield _framed(first + start, cells[start:], dense)


def _framed(first: int, cells: Sequence[Cell], dense: bool) -> Frame:
    return packed(raw(first, cells)) if dense else raw(first, cells)


def opened(
    frame: Frame, wanted: Iterable[int], files: Files, *, dense: bool = False
) -> Iterator[tuple[int, Cell | None]]:
    """The cells of a frame by number; DAMAGED ones where the row is, None where a file is gone.

    `dense` frames, of an archive, may hold more than those of a log.
    """
    lengths = frame.lengths
    if frame.form == FILES:
        yield from _from_files(frame, wanted, files)
        return
    sizes: Sequence[int] = lengths or ()
    if ERASED_SIZE in sizes:
        sizes = [0 if length == ERASED_SIZE else length for length in sizes]
    ends = list(accumulate(sizes, initial=0))
    content = unpacked(frame, ends[-1], dense=dense) if lengths is not None else None
    for number in wanted:
        at = number - frame.first
        assert at >= 0, "a number before the frame would read a cell from its end"
        if content is None or lengths is None:
            yield number, DAMAGED
        elif lengths[at] == ERASED_SIZE:
            yield number, ERASED
        else:
            yield number, Cell(_salt(frame, at), content[ends[at] : ends[at + 1]])


class CellPlace(NamedTuple):
    """The place of a cell in a file of its own, with its commitment."""

    commitment: bytes
    salt: bytes


def in_file(frame: Frame, number: int) -> CellPlace | None:
    """The file of a cell, or None where it has none: it is not so long, or destroyed, or its row is damaged."""
    lengths, at = frame.lengths, number - frame.first
    assert 0 <= at < frame.cells, "the caller has found the frame by the number"
    if frame.form != FILES or lengths is None or len(frame.content) != COMMITMENT_BYTES * frame.cells:
        return None
    return None if lengths[at] == ERASED_SIZE else CellPlace(named(frame, at), _salt(frame, at))


def _from_files(frame: Frame, wanted: Iterable[int], files: Files) -> Iterator[tuple[int, Cell | None]]:
    for number in wanted:
        place, lengths = in_file(frame, number), frame.lengths
        if place is not None:
            content = files(place.commitment)
            yield number, None if content is None else Cell(place.salt, content)
        elif lengths is not None and lengths[number - frame.first] == ERASED_SIZE:
            yield number, ERASED
        else:
            yield number, DAMAGED


def named(frame: Frame, at: int) -> bytes:
    """The commitment that names the file of a cell of a FILES frame."""
    return frame.content[at * COMMITMENT_BYTES : (at + 1) * COMMITMENT_BYTES]


def unpacked(frame: Frame, size: int, *, dense: bool = False) -> bytes | None:
    """The bytes of a RAW or ZSTD frame's cells, or None where they are damaged, or more than a frame holds."""
    content: bytes | None = frame.content
    if frame.form == ZSTD:
        fits = size <= (DENSE_BYTES_MAX if dense else FRAME_BYTES_MAX) or (dense and frame.cells == 1)
        content = _inflated(frame.content, size) if fits else None
    elif frame.form != RAW:
        return None
    return content if content is not None and len(content) == size else None


def squeezed(content: bytes) -> bytes:
    """Bytes as one dense zstd frame with a checksum; nothing for nothing."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=DENSE_LEVEL, write_checksum=True)
    return compressor.compress(content) if content else b""


def stretched(content: bytes, size: int) -> bytes | None:
    """The bytes that were squeezed, or None where they are damaged or not of that size."""
    if not size:
        return None if content else b""
    found = _inflated(content, size)
    return found if found is not None and len(found) == size else None


def believable(size: int, packed: int) -> bool:
    """Whether a zstd frame may hold what it states: more is a few bytes that ask for all the memory there is."""
    return size <= BOMB_BYTES or size <= BOMB_RATIO * packed


_OWN = local()


def _decompressor() -> ZstdDecompressor:
    """One for each thread, which it must not share; to make one takes longer than a frame."""
    import zstandard

    found: ZstdDecompressor | None = getattr(_OWN, "decompressor", None)
    if found is None:
        found = _OWN.decompressor = zstandard.ZstdDecompressor()
    return found


def _inflated(content: bytes, size: int) -> bytes | None:
    import zstandard

    if not believable(size, len(content)):
        return None
    try:
        if zstandard.frame_content_size(content) != size:  # asked first: a flipped length would be reserved
            return None
        return _decompressor().decompress(content, max_output_size=size)
    except zstandard.ZstdError:
        return None


def _salt(frame: Frame, at: int) -> bytes:
    return frame.salts[at * SALT_BYTES : (at + 1) * SALT_BYTES]
