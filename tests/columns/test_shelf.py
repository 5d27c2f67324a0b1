"""The shelf: segments without gap, small ones merged, what breaks while it is read looked into again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.columns.shelves import log_of, rows_by_session, shelf_over, table_at
from tests.refusals import refused
from tests.views.test_alphabet import STORY
from vmstore.columns import check
from vmstore.columns import segments as rooms
from vmstore.columns.check import problems
from vmstore.columns.segment import SegmentFolder, found_in
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.columns.segments import ColumnRows, Segments
from vmstore.errors import CorruptError, StoreError
from vmstore.log.memory import MemoryLog


@pytest.fixture
def log() -> MemoryLog:
    """A log with several sessions and forks."""
    return log_of(STORY)


@pytest.fixture
def shelf(log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Segments]:
    """A shelf of small segments, empty."""
    monkeypatch.setattr(rooms, "MUTATIONS_MAX", 12)
    monkeypatch.setattr(rooms, "MUTATIONS_MIN", 6)
    segments = shelf_over(log, tmp_path / "columns")
    yield segments
    segments.close()


def bounds(folders: list[SegmentFolder]) -> list[int]:
    """Where segments begin and end, asserted to follow each other."""
    assert all(first.upto == other.after for first, other in pairwise(folders))
    return [folders[0].after, *(folder.upto for folder in folders)]


def ends(shelf: Segments) -> dict[int, int]:
    """Every session with its last position."""
    return dict(shelf.projection.db.execute("SELECT session, position FROM sessions"))


def test_segments_follow_each_other(shelf: Segments, log: MemoryLog) -> None:
    """Cut at once or commit by commit, segments go from the log's start to its end, and the small last one grows."""
    seen: list[int] = []
    whole = bounds(shelf.fill(log.ordinal, lambda done, total: seen.append(done)))
    assert whole[0] == 0 and whole[-1] == log.ordinal and len(whole) > 4
    assert seen == whole[:-1]
    table = rows_by_session(table_at(shelf, ends(shelf)))
    for item in found_in(shelf.folder or Path()):
        shutil.rmtree(item.path)
    counts = {commit.ordinal: commit.count for commit in log.tail(0, 1_000)}
    for ordinal in range(1, log.ordinal + 1):
        steps = bounds(shelf.fill(ordinal))
        assert steps[-1] == ordinal
        for after, upto in pairwise(steps):
            assert sum(counts[n] for n in range(after + 1, upto + 1)) <= 12 or upto == after + 1
    assert len(steps) <= 2 * len(whole)
    assert rows_by_session(table_at(shelf, ends(shelf))) == table


def test_a_gap_is_filled(shelf: Segments, log: MemoryLog) -> None:
    """Where a segment in the middle is gone those after it wait, and only it is cut again."""
    row = shelf.fill(log.ordinal)
    shutil.rmtree(row[1].path)
    kept = {item.path: (item.path / "seal.json").stat().st_ino for item in row if item != row[1]}
    assert shelf.segments() == row[:1]
    assert shelf.fill(log.ordinal) == row
    assert {path: (path / "seal.json").stat().st_ino for path in kept} == kept


def test_what_was_replaced_goes_at_the_next_cut(
    shelf: Segments, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small segment that a longer one replaced stays until the next cut, and so does nothing of other versions."""
    monkeypatch.setattr(rooms, "MUTATIONS_MAX", 1_000)
    monkeypatch.setattr(rooms, "MUTATIONS_MIN", 500)
    assert shelf.folder is not None
    (first,) = shelf.fill(3)
    (shelf.folder / ("0" * 8 + first.path.name[8:])).mkdir()
    (shelf.folder / "notes").mkdir()
    (second,) = shelf.fill(6)
    assert {entry.name for entry in shelf.folder.iterdir()} == {"lock", "notes", first.path.name, second.path.name}
    (third,) = shelf.fill(log.ordinal)
    assert {entry.name for entry in shelf.folder.iterdir()} == {"lock", "notes", second.path.name, third.path.name}


def test_what_breaks_between_look_and_read_is_looked_into_again(shelf: Segments, log: MemoryLog) -> None:
    """A segment that is replaced after it was found is found again; one that stays broken is a clear error."""
    asked = ends(shelf)
    right = rows_by_session(table_at(shelf, asked))
    shelf.fill(log.ordinal)

    def broken_once(rows: ColumnRows) -> Any:
        if rows.segments and not broken:
            broken.append(rows.segments[0])
            (rows.segments[0].path / "contents.parquet").write_bytes(b"PAR1")
        return [
            shelf.db.execute(f"SELECT count(*) FROM '{segment.path}/contents.parquet'").fetchone()
            for segment in rows.segments
        ]

    broken: list[SegmentFolder] = []
    assert shelf.reading(log.ordinal, broken_once) == [] and len(broken) == 1
    assert rows_by_session(table_at(shelf, asked)) == right
    with refused("segments-unreadable", StoreError):
        shelf.reading(log.ordinal, lambda value: shelf.db.execute("SELECT * FROM 'nowhere.parquet'"))


def test_a_cut_that_fails_is_begun_anew(shelf: Segments, log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error in the middle of a cut the next question begins it again, and its answer is right."""
    asked = ends(shelf)
    right = rows_by_session(table_at(shelf_over(log), asked))
    taken, left = SegmentWriter._commit, [4]

    def failing(cut: SegmentWriter, *arguments: Any) -> None:
        left[0] -= 1
        if not left[0]:
            raise CorruptError("not now")
        taken(cut, *arguments)

    monkeypatch.setattr(SegmentWriter, "_commit", failing)
    with pytest.raises(CorruptError, match="not now"):
        table_at(shelf, asked)
    assert rows_by_session(table_at(shelf, asked)) == right


def test_a_log_that_ends_too_early_is_named(log: MemoryLog) -> None:
    """A log that has fewer commits than the views followed is an error, not an endless cut."""
    segments = shelf_over(log)
    with pytest.raises(CorruptError, match=f"the log ends at ordinal {log.ordinal}"):
        segments.held(log.ordinal + 1)


def test_verify_names_rows_that_are_missing(shelf: Segments, log: MemoryLog) -> None:
    """A segment whose seal is right and that lacks rows is named with how many there should be."""
    (first, *_) = shelf.fill(log.ordinal)
    file = first.path / "residencies.parquet"
    shelf.db.execute(f"COPY (SELECT * FROM '{file}' LIMIT 0) TO '{file}.less' (FORMAT parquet)")
    Path(f"{file}.less").rename(file)
    seal = msgspec.json.decode((first.path / "seal.json").read_bytes())
    seal["files"]["residencies"] = rooms.seal_of.__globals__["_digest"](file)
    (first.path / "seal.json").write_bytes(msgspec.json.encode(seal))
    names = {key: (str(key), end) for key, end in ends(shelf).items()}
    actual_problems = list(problems(Segments(shelf.folder, log, shelf.projection, readonly=True), log.ordinal, names))
    assert (
        actual_problems[0][0] == first.path.name
        and "it holds 0 rows of residencies where the log gives" in actual_problems[0][1]
    )


def test_verify_names_a_page_table_that_cannot_be_made(
    shelf: Segments, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where what lies behind the page table is damaged that is a finding, and no error that ends the check."""
    shelf.fill(log.ordinal)

    def damaged(*arguments: object) -> None:
        raise CorruptError("the views are damaged")

    monkeypatch.setattr(check, "_disagreements", damaged)
    assert list(check.problems(shelf, log.ordinal, {})) == [("page table", "the views are damaged")]


def test_a_seal_under_another_name_is_left_out(
    shelf: Segments, log: MemoryLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A seal that says other tables, ordinals or hash than its folder's name makes the segment none."""
    (first, *_) = shelf.fill(log.ordinal)
    right = msgspec.json.decode((first.path / "seal.json").read_bytes())
    for wrong in ({"tables": "0" * 8}, {"upto": 99}, {"last": "f" * 64}, {"files": {}}):
        caplog.clear()
        (first.path / "seal.json").write_bytes(msgspec.json.encode(right | wrong))
        assert Segments(shelf.folder, log, shelf.projection, readonly=True).segments() == []
        assert "its seal" in caplog.text
