"""The rows of an append: its commits with their ordinals, its cells with their numbers, in frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmstore.cells.cell import COMMITMENT_BYTES, Cell
from vmstore.errors import StoreError
from vmstore.log.commit import Commit
from vmstore.log.frame import FILE_BYTES_MIN, Frame, cut, in_file_of_its_own, raw
from vmstore.log.port import Append

CELL_BYTES_MAX = 256 << 20  # of one value in a message to the server


def numbered(append: Append, ordinal: int, cell: int, object_min: int) -> tuple[list[Commit], list[Frame]]:
    """An append's commits as they will stand after an ordinal and a cell, and its cells in frames.

    Cells of `object_min` bytes or more lie in an object store.
    """
    session = append.session or ordinal + 1
    stored: list[Commit] = []
    cells: list[Cell] = []
    for at, c in enumerate(append.commits, ordinal + 1):
        assert len(c.commitments) == COMMITMENT_BYTES * len(c.cells), "a commit brings every cell that its hash covers"
        first = cell + len(cells) + 1 if c.cells else 0
        cells += c.cells
        stored.append(
            Commit(c.first, c.count, c.at, c.lag, c.body, c.commitments, c.hash, c.request, session, at, first)
        )
    for long in cells:
        if CELL_BYTES_MAX < len(long.content) < object_min:
            raise StoreError(
                f"a content of {len(long.content):,} bytes is longer than PostgreSQL takes in one value "
                f"({CELL_BYTES_MAX:,}); cut it, or name an object store by blobs= in the address",
                code="content-too-long",
            )
    return stored, list(_framed(cell + 1, cells, object_min, dense=append.dense))


def _framed(first: int, cells: Sequence[Cell], object_min: int, *, dense: bool) -> Iterator[Frame]:
    """Cells in frames, a long one in a frame of its own, which holds it or names its object."""
    start = 0
    for at, cell in enumerate(cells):
        if len(cell.content) >= FILE_BYTES_MIN:
            yield from cut(first + start, cells[start:at], dense=dense)
            own = len(cell.content) >= object_min
            yield in_file_of_its_own(first + at, cell) if own else raw(first + at, [cell])
            start = at + 1
    yield from cut(first + start, cells[start:], dense=dense)
