"""Frames give back the cells they were made of, whatever their form, and damage is never taken for content."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.cells.cell import DAMAGED, ERASED, Cell
from vmstore.log.frame import (
    CELLS_MAX,
    FILE_BYTES_MIN,
    FILES,
    FRAME_BYTES_MAX,
    LEVEL,
    RAW,
    ZSTD,
    Frame,
    cut,
    in_file,
    opened,
    packed,
    raw,
)

CONTENTS = st.lists(
    st.one_of(st.binary(max_size=40), st.sampled_from([b"word " * 300, b"x" * FILE_BYTES_MIN])), max_size=40
)


def cells(contents: list[bytes]) -> list[Cell]:
    """Cells of contents, each with a salt of its own."""
    return [Cell(hashlib.sha256(b"%d" % n).digest()[:16], content) for n, content in enumerate(contents)]


def cells_of(frames: list[Frame], files: dict[bytes, bytes]) -> dict[int, Cell | None]:
    """Every cell of frames."""
    return {n: cell for f in frames for n, cell in opened(f, range(f.first, f.after), files.get)}


@given(contents=CONTENTS, dense=st.booleans(), first=st.integers(1, 10**9))
def test_cells_come_back(contents: list[bytes], dense: bool, first: int) -> None:
    """A run of cells cut into frames is numbered without a gap and gives back each cell."""
    made = cells(contents)
    files = {cell.commitment: cell.content for cell in made if len(cell.content) >= FILE_BYTES_MIN}
    frames = list(cut(first, made, dense=dense))
    assert [f.first for f in frames] + [first + len(made)] == [first, *(f.after for f in frames)]
    assert cells_of(frames, files) == dict(enumerate(made, first))
    assert sum(f.cells for f in frames if f.form == FILES) == len([c for c in contents if len(c) >= FILE_BYTES_MIN])


@pytest.mark.parametrize("dense", [False, True])
def test_frames_have_a_sensible_length(dense: bool) -> None:
    """A frame holds up to 64 KiB of content, packed or not, and no more cells than a read should touch."""
    frames = list(cut(1, cells([b"word " * 200] * 500), dense=dense))
    sizes = [sum(f.lengths or ()) for f in frames]
    assert max(sizes) <= FRAME_BYTES_MAX and min(sizes[:-1]) > FRAME_BYTES_MAX - 1_000
    assert {f.form for f in frames} == {ZSTD if dense else RAW}
    assert max(f.cells for f in cut(1, cells([b"x"] * 1_000), dense=dense)) == CELLS_MAX


def test_what_does_not_shrink_stays_raw() -> None:
    """A frame that compression would not make shorter is written as it is."""
    noise = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(40))
    assert packed(raw(1, cells([noise]))).form == RAW
    assert packed(raw(1, cells([b""]))).form == RAW
    assert packed(raw(1, cells([b"a" * 99]))).form == ZSTD


def test_an_erased_cell_says_so() -> None:
    """A cell that was destroyed comes back as ERASED in every form, and its neighbours as they were."""
    made = [*cells([b"before " * 20]), ERASED, *cells([b"after " * 20])]
    for frame in (raw(1, made), packed(raw(1, made))):
        actual_cells = cells_of([frame], {})
        assert actual_cells == {1: made[0], 2: ERASED, 3: made[2]}
        assert [cell.erased for cell in actual_cells.values() if cell is not None] == [False, True, False]
    files = {cell.commitment: cell.content for cell in (made[0], made[2])}
    in_files = raw(1, made)._replace(form=FILES, content=made[0].commitment + bytes(32) + made[2].commitment)
    assert made[0].content != made[2].content
    assert cells_of([in_files], files) == {1: made[0], 2: ERASED, 3: made[2]}
    cut_short = in_files._replace(content=in_files.content[:-1])
    assert cells_of([cut_short], files) == {1: DAMAGED, 2: ERASED, 3: DAMAGED}


def test_only_a_cell_in_a_file_has_a_place() -> None:
    """Of a frame of files each cell has its own commitment and salt; an erased one and one in a row have none."""
    made = [*cells([b"one", b"two"]), ERASED, *cells([b"three"])]
    frame = raw(5, made)._replace(form=FILES, content=b"".join(cell.commitment for cell in made))
    for number, cell in enumerate(made, 5):
        place = in_file(frame, number)
        assert place == (None if cell is ERASED else (cell.commitment, cell.salt))
        for other in (
            frame._replace(form=RAW, content=b"x" * len(frame.content)),
            frame._replace(content=frame.content + b"x"),
            frame._replace(content=frame.content[32:]),
            frame._replace(salts=frame.salts[16:]),
            frame._replace(sizes=frame.sizes + b"x"),
        ):
            assert in_file(other, number) is None


def test_a_frame_is_filled_to_the_byte() -> None:
    """Contents that fill a frame exactly stay together, in each frame of a run; a byte more begins another."""
    half = FRAME_BYTES_MAX // 2
    for sizes, counts in (
        ([half] * 6, [2, 2, 2]),
        ([half, half, 1], [2, 1]),
        ([half, half + 1, half - 1], [1, 2]),
        ([half, FILE_BYTES_MIN, half, half, half], [1, 1, 2, 1]),
        ([FRAME_BYTES_MAX, FRAME_BYTES_MAX], [1, 1]),
    ):
        frames = list(cut(3, cells([b"x" * size for size in sizes]), dense=False))
        assert [f.cells for f in frames] == counts
    many = list(cut(1, cells([b"x"] * (2 * CELLS_MAX)), dense=False))
    assert [f.cells for f in many] == [CELLS_MAX, CELLS_MAX]


def test_as_long_is_no_shorter() -> None:
    """A frame whose compressed content is as long as it was stays raw."""
    import zstandard

    alike = [n for n in range(1, 99) if len(zstandard.ZstdCompressor(level=LEVEL).compress(b"a" * n)) == n]
    assert alike
    for length in alike:
        frame = raw(1, cells([b"a" * length]))
        assert packed(frame) == frame and packed(raw(1, cells([b"a" * (length + 1)]))).form == ZSTD


def test_a_file_that_is_gone_is_no_cell() -> None:
    """A cell whose file is not there is left out, rather than answered empty."""
    made = cells([b"x" * FILE_BYTES_MIN])
    frame = next(cut(1, made, dense=False))
    assert cells_of([frame], {}) == {1: None}


@pytest.mark.parametrize("dense", [False, True])
def test_a_damaged_frame_gives_no_content(dense: bool) -> None:
    """Whatever column of a frame is changed, each cell is what it was, or no commitment agrees with it."""
    made = cells([b"one " * 40, b"two " * 40, b"three " * 40])
    frame = next(cut(1, made, dense=dense))
    changes: list[Frame] = [frame._replace(form=form) for form in (-1, 2, 3, RAW, ZSTD) if form != frame.form]
    changes += [frame._replace(cells=count) for count in (0, 2, 4, 2**40)]
    for column in ("sizes", "salts", "content"):
        value = getattr(frame, column)
        changes += [frame._replace(**{column: other}) for other in (b"", value[:-1], value + b"\0", value[::-1])]
        for at in range(len(value)):
            changed = bytearray(value)
            changed[at] ^= 1 << at % 8
            changes.append(frame._replace(**{column: bytes(changed)}))
    noticed = 0
    for change in changes:
        for number, cell in opened(change, [1, 2, 3][: change.cells], {}.get):
            right = made[number - 1]
            assert cell == right or cell is None or cell is DAMAGED or not cell.keeps(right.commitment)
            noticed += cell != right
    assert noticed > len(changes)


def test_a_huge_length_is_not_reserved() -> None:
    """A zstd frame that claims to hold more than its cells is damaged, before any room is made for it."""
    frame = packed(raw(1, cells([b"word " * 999])))
    import zstandard

    lying = zstandard.ZstdCompressor().compress(bytes(1 << 22))
    assert dict(opened(frame._replace(content=lying), [1], {}.get)) == {1: DAMAGED}
