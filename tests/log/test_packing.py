"""What packing makes of frames, without a log: the same cells, in frames as full as they may be, and no others."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.cells.cell import ERASED, Cell
from vmstore.log import compaction
from vmstore.log.compaction import FULL_BYTES, due, packed_again, plus
from vmstore.log.file import LogFile, create
from vmstore.log.frame import (
    CELLS_MAX,
    FILES,
    FRAME_BYTES_MAX,
    RAW,
    ZSTD,
    Frame,
    in_file_of_its_own,
    opened,
    packed,
    raw,
)
from vmstore.log.port import CompactionResult
from vmstore.log.rows import frame_of

WORDS = b"all work and no play makes dull frames "
KINDS = st.lists(
    st.tuples(
        st.sampled_from(["raw", "zstd", "file", "damaged", "gap"]), st.lists(st.integers(-1, 40_000), max_size=6)
    ),
    max_size=12,
)


def cell(number: int, size: int) -> Cell:
    """A cell of so many bytes, other ones for each number; a destroyed one where that is less than none."""
    if size < 0:
        return ERASED
    text = b"%d " % number + WORDS * (size // len(WORDS) + 1)
    return Cell(hashlib.sha256(b"%d" % number).digest()[:16], text[:size])


def frames_of(kinds: list[tuple[str, list[int]]]) -> list[Frame]:
    """Frames of some kinds, one after the other; after a gap some numbers are nobody's."""
    made, first = [], 1
    for kind, sizes in kinds:
        if kind == "gap":
            first += 5
            continue
        cells = [cell(first + at, size) for at, size in enumerate(sizes or [7])]
        if kind == "file":
            cells = [cell(first, 70_000)]
        frame = in_file_of_its_own(first, cells[0]) if kind == "file" else raw(first, cells)
        if kind in ("zstd", "damaged"):
            frame = packed(frame)
        if kind == "damaged":
            frame = frame._replace(salts=frame.salts[1:])
        made.append(frame)
        first += len(cells)
    return made


def cells_of(frames: list[Frame]) -> list[tuple[int, Cell | None]]:
    """Every cell of frames, in order."""
    return [item for f in frames for item in opened(f, range(f.first, f.after), {}.get)]


def bytes_of(frame: Frame) -> int:
    """How much content a frame holds, packed or not."""
    return sum(length for length in frame.lengths or () if length != 0xFFFF_FFFF)


@given(kinds=KINDS)
def test_packed_frames_hold_the_same_cells(kinds: list[tuple[str, list[int]]]) -> None:
    """Whatever frames stand one after the other, each cell reads as before; files and damage are not touched."""
    old = frames_of(kinds)
    new = list(packed_again(old))
    assert cells_of(new) == cells_of(old)
    untouched = [f for f in old if f.form == FILES or f.lengths is None]
    assert [f for f in new if f.form == FILES or f.lengths is None] == untouched
    assert all(f.after <= after.first for f, after in pairwise(new))
    assert list(packed_again(new)) == new


@given(kinds=KINDS)
def test_packed_frames_are_as_full_as_they_may_be(kinds: list[tuple[str, list[int]]]) -> None:
    """No frame that was packed has too much, and none has so little that the next cell had room in it."""
    old = [f for f in frames_of(kinds) if f.form == RAW and f.lengths is not None]
    for frame, after in pairwise(list(packed_again(old))):
        assert bytes_of(frame) <= FRAME_BYTES_MAX or frame.cells == 1
        if frame.after == after.first:
            assert after.lengths is not None
            first = 0 if after.lengths[0] == 0xFFFF_FFFF else after.lengths[0]
            assert bytes_of(frame) + first > FRAME_BYTES_MAX


def test_a_frame_takes_what_fits_to_the_byte() -> None:
    """Cells that fill a frame exactly stay together, one byte more begins another, and so does one cell too many."""
    half = FRAME_BYTES_MAX // 2
    for last, cells in ((half, [2]), (half + 1, [1, 1])):
        old = [raw(1, [cell(1, half)]), raw(2, [cell(2, last)])]
        assert [f.cells for f in packed_again(old)] == cells
    run = [raw(number, [cell(number, half)]) for number in range(1, 7)]
    assert [(f.first, f.cells) for f in packed_again(run)] == [(1, 2), (3, 2), (5, 2)]
    assert cells_of(list(packed_again(run))) == cells_of(run)
    many = [raw(number, [cell(number, 3)]) for number in range(1, 2 * CELLS_MAX + 2)]
    counts = [(1, CELLS_MAX), (CELLS_MAX + 1, CELLS_MAX), (2 * CELLS_MAX + 1, 1)]
    assert [(f.first, f.cells) for f in packed_again(many)] == counts
    long = [raw(1, [cell(1, FRAME_BYTES_MAX + 9)]), raw(2, [cell(2, FRAME_BYTES_MAX + 9)]), raw(3, [cell(3, 3)])]
    assert [(f.first, f.cells) for f in packed_again(long)] == [(1, 1), (2, 1), (3, 1)]


def test_a_full_frame_is_left_as_it_is() -> None:
    """A packed frame with enough in it, by bytes or by cells, is passed over; one with less is joined by the next."""
    after = raw(CELLS_MAX + 1, [cell(9, 20)])
    full = packed(raw(CELLS_MAX, [cell(1, FULL_BYTES)]))
    assert full.form == ZSTD and next(packed_again([full, after])) is full
    less = packed(raw(CELLS_MAX, [cell(1, FULL_BYTES - 1)]))
    assert [f.cells for f in packed_again([less, after])] == [2]
    many = packed(raw(1, [cell(n, 3) for n in range(CELLS_MAX)]))
    assert many.form == ZSTD and next(packed_again([many, after])) is many
    fewer = packed(raw(2, [cell(n, 3) for n in range(CELLS_MAX - 1)]))
    assert [f.cells for f in packed_again([fewer, after])] == [CELLS_MAX]
    big = raw(CELLS_MAX, [cell(1, FULL_BYTES)])
    assert [f.cells for f in packed_again([big, after])] == [2], "a raw frame is never full"
    assert FULL_BYTES < FRAME_BYTES_MAX


def test_frames_that_do_not_meet_are_not_joined() -> None:
    """Where numbers are missing between two frames each is packed by itself, in order with what is passed over."""
    apart = [raw(1, [cell(1, 500)]), raw(3, [cell(3, 500)]), raw(4, [cell(4, 500)])]
    assert [(f.first, f.cells) for f in packed_again(apart)] == [(1, 1), (3, 2)]
    between = [apart[0], in_file_of_its_own(2, cell(2, 70_000)), apart[1]]
    assert [(f.first, f.form) for f in packed_again(between)] == [(1, ZSTD), (2, FILES), (3, ZSTD)]
    empty = Frame(2, 0, RAW, b"", b"", b"")
    assert list(packed_again([empty])) == [empty] and list(packed_again([])) == []


def test_what_packing_did_adds_up() -> None:
    """Frames and bytes before and after are counted apart, on top of what was counted already."""
    old, new = [raw(1, [cell(1, 50)]), raw(2, [cell(2, 30)])], [raw(1, [cell(1, 7)])]
    assert plus(CompactionResult(1, 2, 3, 4), old, new) == CompactionResult(3, 3, 83, 11)


@pytest.mark.parametrize(
    ("forms", "first"),
    [
        ([RAW] * 3, None),
        ([RAW] * 4, 1),
        ([ZSTD, RAW, RAW, RAW], None),
        ([ZSTD, *[RAW] * 4], 2),
        ([ZSTD, FILES, *[RAW] * 4], 2),
        ([RAW, ZSTD, *[RAW] * 5], 3),
        ([RAW, ZSTD, *[RAW] * 4], 3),
        ([RAW, RAW, RAW, FILES], None),
        ([RAW] * 9, 4),
    ],
)
def test_packing_is_due_where_enough_lies_raw(
    forms: list[int], first: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With enough raw frames at its end a log is packed, from where the packed ones end or as far as one looks back."""
    monkeypatch.setattr(compaction, "DUE_FRAMES", 4)
    monkeypatch.setattr(compaction, "LOOK_BACK_FRAMES", 6)
    create(tmp_path / "log.sqlite")
    file = LogFile(tmp_path / "log.sqlite", readonly=False)
    with file as db:
        for number, form in enumerate(forms, 1):
            frame = raw(number, [cell(number, 9)])._replace(form=form)
            db.execute("INSERT INTO frames VALUES(?,?,?,?,?,?)", frame)
        assert [frame_of(row).first for row in db.execute("SELECT * FROM frames")] == [*range(1, len(forms) + 1)]
    assert due(file) == first
    file.close()
