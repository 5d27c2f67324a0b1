"""Frames of archived cells: what the log keeps of them, what it asks the archive for, and what damage gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.cells.cell import DAMAGED, ERASED, Cell
from vmstore.log.archive.mover import CellRun, joined, runs_of
from vmstore.log.archive_frame import ArchivedRun, archived, kept, opened_there, place_of, without
from vmstore.log.frame import ARCHIVED, FRAME_BYTES_MAX, Frame, densely, opened, raw

UID = bytes(range(16))
CELLS = [Cell(bytes([n + 1]) * 16, b"text %d " % n * n) for n in range(20)]
SEALED = st.builds(Cell, st.binary(min_size=16, max_size=16).filter(any), st.binary(max_size=99))


class There:
    """An archive in memory; its cells are numbered from 1."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.held = dict(enumerate(cells, 1))
        self.asked: list[int] = []

    def cells(self, uid: bytes, numbers: Sequence[int]) -> Mapping[int, Cell] | None:
        """The cells of some numbers."""
        assert uid == UID
        self.asked += numbers
        return {number: self.held[number] for number in numbers}

    def missing(self, uid: bytes) -> Exception:
        """Never asked."""
        raise AssertionError(uid)


@given(st.lists(st.tuples(SEALED | st.just(ERASED), st.booleans()), min_size=1, max_size=40))
def test_every_cell_is_what_it_was(sealed: list[tuple[Cell, bool]]) -> None:
    """Whichever cells are kept, each reads as it was, and the archive is asked for the others alone."""
    cells = [cell for cell, _ in sealed]
    there = There(cells)
    frame = archived(100, ArchivedRun(UID, 1), [cell if here or cell.erased else None for cell, here in sealed])
    assert (frame.form, place_of(frame)) == (ARCHIVED, ArchivedRun(UID, 1))
    assert dict(opened_there(frame, range(100, 100 + len(cells)), there)) == dict(enumerate(cells, 100))
    assert there.asked == [at for at, (cell, here) in enumerate(sealed, 1) if not here and not cell.erased]
    near = dict(opened_there(frame, range(100, 100 + len(cells)), None))
    assert set(near) == {at for at, (cell, here) in enumerate(sealed, 100) if here or cell.erased}


def test_destroyed_cells_are_not_asked_for() -> None:
    """Cells destroyed in a frame, kept or away, read as destroyed without their archive; no byte of them is left."""
    frame = archived(1, ArchivedRun(UID, 1), [cell if n % 2 else None for n, cell in enumerate(CELLS)])
    less, there = without(frame, [4, 5]), There(CELLS)
    fields = dict(opened_there(less, range(1, 21), there))
    assert fields == {n: ERASED if n in (4, 5) else cell for n, cell in enumerate(CELLS, 1)}
    assert 5 not in there.asked and CELLS[3].salt not in less.salts and CELLS[3].salt in frame.salts
    assert without(less, [4]) == less


@pytest.mark.parametrize("field", ["sizes", "salts", "content"])
def test_a_damaged_row_gives_damaged_cells(field: str) -> None:
    """A row cut short, or with a flipped byte in what it keeps, gives cells that no commitment agrees with."""
    frame = archived(1, ArchivedRun(UID, 1), list(CELLS))
    cut = frame._replace(**{field: getattr(frame, field)[:-1]})
    assert set(dict(opened_there(cut, range(1, 21), There(CELLS))).values()) == {DAMAGED}
    assert kept(cut) is None and without(cut, [1]) == cut


def test_neighbours_become_one() -> None:
    """Frames in a row in one archive become one; those of another, out of row, or between which others lie, do not."""
    first, two = archived(1, ArchivedRun(UID, 7), [None, CELLS[1]]), archived(3, ArchivedRun(UID, 9), [None])
    assert list(joined([first, two])) == [archived(1, ArchivedRun(UID, 7), [None, CELLS[1], None])]
    gap, other = archived(4, ArchivedRun(UID, 99), [None]), archived(3, ArchivedRun(bytes(16), 9), [None])
    between = raw(3, CELLS[:1])
    for frames in ([first, gap], [first, other], [first, between, archived(4, ArchivedRun(UID, 9), [None])]):
        assert list(joined(frames)) == frames
    long = [archived(n, ArchivedRun(UID, n), [Cell(b"s" * 16, b"x" * FRAME_BYTES_MAX)]) for n in (1, 2)]
    assert list(joined(long)) == long


def test_runs_are_as_few_as_can_be() -> None:
    """Commits whose cells lie in a row in the log are one run, and their numbers there go on."""
    assert runs_of([(1, 2), (3, 1), (9, 4), (13, 0), (13, 1)], 5) == [CellRun(1, 3, 5), CellRun(9, 5, 8)]


def test_dense_frames_hold_everything() -> None:
    """Dense frames give back every cell, long, empty and destroyed ones too, and a flipped byte is damage."""
    cells = [*CELLS, Cell(b"l" * 16, b"long" * 500_000), ERASED, Cell(b"e" * 16, b"")]
    frames = list(densely(1, cells))
    assert len(frames) == 3 and sum(frame.cells for frame in frames) == len(cells)
    actual_cells = [
        cell
        for frame in frames
        for _, cell in opened(frame, range(frame.first, frame.after), lambda _: None, dense=True)
    ]
    assert actual_cells == cells
    frame: Frame = frames[1]
    content = bytearray(frame.content)
    content[len(content) // 2] ^= 1
    (damaged,) = dict(opened(frame._replace(content=bytes(content)), [frame.first], lambda _: None)).values()
    assert damaged == DAMAGED
