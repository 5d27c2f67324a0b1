"""Packing changes how cells lie and nothing else, while others read and write, whatever is killed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disasters.child import kill, start
from tests.disasters.disk import disk
from tests.refusals import refused
from vmstore.errors import CorruptError, ReadOnlyError, StoreError
from vmstore.log import compaction, sqlite
from vmstore.log.commit import genesis
from vmstore.log.compaction import DUE_FRAMES, due, pack
from vmstore.log.frame import FILE_BYTES_MIN, FRAME_BYTES_MAX, RAW, ZSTD
from vmstore.log.port import CompactionResult
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, chain

TEXTS = [b"all work and no play %d makes frames %d " % (n, n * n) * (n % 7 * 10 + 1) for n in range(300)]


def fill(log: SqliteLog, count: int) -> None:
    """Appends commits of a cell each to a session of their own."""
    commits = [CommitSpec(contents=(TEXTS[n % 300],)) for n in range(count)]
    previous, position, key, after = genesis(b"fill %d" % log.ordinal), 0, 0, 0
    for commit in chain(commits, previous):
        stored = log.append([commit], key, position, after=after)[0]
        key, position, after = stored.session, stored.last, stored.ordinal


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty log whose handles pack nothing by themselves."""
    monkeypatch.setattr(SqliteLog, "_tidy", lambda log: None)
    SqliteLog.create(tmp_path / "log.sqlite")
    return tmp_path / "log.sqlite"


@pytest.fixture
def log(path: Path) -> Iterator[SqliteLog]:
    """A log of 300 commits, each with a raw frame."""
    log = SqliteLog(path)
    fill(log, 300)
    yield log
    log.close()


def forms(log: SqliteLog) -> list[int]:
    """The form of every frame."""
    with log.file as db:
        return [row[0] for row in db.execute("SELECT form FROM frames ORDER BY first")]


def test_cells_are_what_they_were(log: SqliteLog) -> None:
    """Packed, every commit and cell reads the same, in far fewer rows of about 64 KiB and less room."""
    commits, cells = log.tail(0, 999), log.cells(range(999))
    report = log.compact()
    assert (log.tail(0, 999), log.cells(range(999))) == (commits, cells)
    assert (report.frames_before, report.frames_after) == (300, len(forms(log))) and set(forms(log)) == {ZSTD}
    assert report.frames_after <= sum(map(len, TEXTS)) / FRAME_BYTES_MAX * 2
    assert report.bytes_after * 3 < report.bytes_before
    fill(log, 1)
    assert (log.last_cell, forms(log)[-1]) == (301, RAW)


def test_packing_again_changes_nothing(log: SqliteLog) -> None:
    """What is packed is left alone, and small packed frames are joined by what comes after them."""
    log.compact()
    packed = forms(log)
    assert log.compact().frames_after == len(packed)
    for _ in range(40):
        fill(log, 1)
        log.compact()
    assert log.last_cell == 340 and len(forms(log)) <= len(packed) + 2


def test_the_file_shrinks(log: SqliteLog, path: Path) -> None:
    """Room that packing frees is given back to the disk."""
    with log.file as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        before = path.stat().st_size
    log.compact()
    with log.file as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert db.execute("PRAGMA freelist_count").get == 0
        assert path.stat().st_size * 2 < before


def test_long_cells_and_damage_stay(log: SqliteLog) -> None:
    """Frames of files and damaged ones are passed over, and what lies between them is packed."""
    log.append(chain([CommitSpec(contents=(b"x" * FILE_BYTES_MIN, b"y" * 99))], genesis(b"long")), 0, 0)
    with log.file as db:
        db.execute("UPDATE frames SET salts = x'00' WHERE first = 50")
    cells = log.cells(range(999))
    log.compact()
    assert log.cells(range(999)) == cells
    with log.file as db:
        rows = db.execute("SELECT first, form, salts FROM frames").fetchall()
    assert (50, RAW, b"\0") in rows
    assert [(first, form) for first, form, _ in rows][-2:] == [(301, 2), (302, ZSTD)]


def test_packing_goes_as_many_steps_as_it_is_told(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step takes the next frames and packs them; what no step came to is as it was, and none does nothing."""
    monkeypatch.setattr(compaction, "STEP_BYTES", 1)  # a step then is one reading of 64 frames
    assert pack(log.file, log._hold, steps=0) == CompactionResult() and set(forms(log)) == {RAW}
    cells, items = log.cells(range(999)), list[tuple[int, int]]()
    done = pack(log.file, log._hold, 100, steps=2, progress=lambda *way: items.append(way))
    assert (done.frames_before, items) == (128, [(164, 300), (228, 300)])
    actual_forms = forms(log)
    assert actual_forms[:99] == [RAW] * 99 and actual_forms[-73:] == [RAW] * 73
    assert set(actual_forms[99:-73]) == {ZSTD} and len(actual_forms[99:-73]) == done.frames_after
    assert log.cells(range(999)) == cells
    rest = log.compact()
    assert rest.frames_before == 99 + 73 + done.frames_after and set(forms(log)) == {ZSTD}
    assert log.cells(range(999)) == cells


@pytest.mark.parametrize("count", [0, -3])
def test_a_frame_that_counts_nothing_stops_nobody(log: SqliteLog, count: int) -> None:
    """A damaged row that says it holds no cell is passed over once, and what stands before and after it is packed."""
    with log.file as db:
        db.execute("UPDATE frames SET count = ? WHERE first = 50", (count,))
    log.compact()
    with log.file as db:
        rows = db.execute("SELECT first, form FROM frames WHERE first <= 51 ORDER BY first").fetchall()
    assert rows[-2:] == [(50, RAW), (51, ZSTD)] and set(forms(log)) == {RAW, ZSTD}


def test_a_reader_keeps_what_it_began_with(log: SqliteLog, path: Path) -> None:
    """Another handle reads the same cells before, while and after they are packed."""
    reader, expected = SqliteLog(path, readonly=True), log.cells(range(999))
    stop, wrong = threading.Event(), list[int]()

    def read() -> None:
        while not stop.is_set():
            if reader.cells(range(999)) != expected:
                wrong.append(1)

    thread = threading.Thread(target=read)
    thread.start()
    for first in range(1, 300, 20):
        pack(log.file, log._hold, first, steps=1)
    log.compact()
    stop.set()
    thread.join()
    assert wrong == []
    reader.close()


def test_frames_that_change_meanwhile_are_read_again(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that another handle changes between reading and writing keeps that change."""
    expected = log.cells(range(999))
    packed_again, times = compaction.packed_again, []

    def meddle(frames: object) -> object:
        if not times:
            with log.file as db:
                db.execute(
                    "UPDATE frames SET salts = CAST(x'00112233445566778899aabbccddeeff' AS BLOB) WHERE first = 9"
                )
        times.append(1)
        return packed_again(frames)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "packed_again", meddle)
    log.compact()
    cells = log.cells(range(999))
    assert cells[9].salt == bytes.fromhex("00112233445566778899aabbccddeeff") and len(times) > 1
    assert {n: c for n, c in cells.items() if n != 9} == {n: c for n, c in expected.items() if n != 9}


def test_a_failing_disk_leaves_old_frames_or_new(path: Path) -> None:
    """Whichever write or flush of a packing fails, every cell is there, and it can be packed again."""
    with disk() as made:
        for step in range(99):
            log = SqliteLog(path)
            if log.last_cell == 0:
                fill(log, 40)
            expected = log.cells(range(99))
            made.left = step
            try:
                log.compact()
                failed = False
            except StoreError:
                failed = True
            made.left = None
            assert log.cells(range(99)) == expected
            log.close()
            if not failed and step > 3:
                break
            path.unlink()
            SqliteLog.create(path)
        else:
            raise AssertionError("it never succeeded")


def test_a_packing_that_breaks_off_leaves_the_old_frames(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while frames are replaced rolls back; how far packing came is told as it goes."""
    expected, rows = log.cells(range(999)), list[tuple[int, int]]()
    monkeypatch.setattr(compaction, "packed_again", lambda frames: [old[0], *old] if (old := [*frames]) else [])
    with pytest.raises(CorruptError):
        log.compact()
    assert log.cells(range(999)) == expected and set(forms(log)) == {RAW}
    monkeypatch.undo()
    log.compact(lambda done, total: rows.append((done, total)))
    assert rows[-1] == (300, 300) and rows == sorted(rows)


def test_a_killed_packing_loses_nothing(log: SqliteLog, path: Path) -> None:
    """Killed at any moment, a process that packs and writes leaves every cell readable."""
    expected = log.cells(range(301))
    for number in range(8):
        value, tell = os.pipe()

        def work(tell: int = tell) -> None:
            mine = SqliteLog(path)
            os.write(tell, b"x")
            while True:
                fill(mine, 3)
                mine.compact()

        child = start(work)
        os.read(value, 1)
        time.sleep(0.01 * number)
        kill(child)
        cells = log.cells(range(301))
        assert cells == expected
    commits = log.tail(0, 9_999)
    assert len(log.cells(range(1, 9_999))) == sum(c.cell_count for c in commits)


def test_a_reader_may_not_pack(log: SqliteLog, path: Path) -> None:
    """A handle for reading refuses to pack and to sweep, and may look for what would be swept."""
    reader = SqliteLog(path, readonly=True)
    for write in (reader.compact, lambda: reader.sweep(1 << 60)):
        with refused("read-only", ReadOnlyError):
            write()
    assert reader.sweep(1 << 60, dry=True) == []
    reader.close()


# ---- by itself


def test_a_log_packs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle that writes on packs what it wrote in the background, and one that closes packs what is left."""
    monkeypatch.setattr(sqlite, "TIDY_WRITES", 100)
    SqliteLog.create(tmp_path / "log.sqlite")
    log = SqliteLog(tmp_path / "log.sqlite")
    fill(log, DUE_FRAMES + 100)
    log._tidying.join()
    assert forms(log)[0] == ZSTD and log.last_cell == DUE_FRAMES + 100
    fill(log, 50)
    log.close()
    log = SqliteLog(tmp_path / "log.sqlite")
    kept = forms(log).count(RAW)
    assert kept < DUE_FRAMES
    fill(log, DUE_FRAMES - kept)
    log.close()
    log = SqliteLog(tmp_path / "log.sqlite")
    assert forms(log).count(RAW) == 0
    log.close()


def test_a_short_tail_is_not_packed(log: SqliteLog) -> None:
    """Fewer raw frames at the end than are worth it are left, and where they begin is known otherwise."""
    assert due(log.file) == 1
    log.compact()
    fill(log, DUE_FRAMES - 1)
    assert due(log.file) is None
    fill(log, 1)
    assert due(log.file) == 301


def test_a_failing_background_harms_nobody(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing that fails in the background is left for another time."""

    def failing(*arguments: object, **more: object) -> None:
        raise StoreError("no room")

    monkeypatch.undo()
    monkeypatch.setattr(sqlite, "pack", failing)
    log._tidy()
    assert set(forms(log)) == {RAW}
    fill(log, 1)


def test_closing_waits_for_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle that closes while it packs in the background ends when that is done, and nothing is lost."""
    monkeypatch.setattr(sqlite, "TIDY_WRITES", DUE_FRAMES)
    begun, right = threading.Event(), sqlite.pack

    def slow(*arguments: object, **more: object) -> object:
        begun.set()
        time.sleep(0.05)
        return right(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite, "pack", slow)
    SqliteLog.create(tmp_path / "log.sqlite")
    log = SqliteLog(tmp_path / "log.sqlite")
    fill(log, DUE_FRAMES)
    assert begun.wait(10)
    packing = log._tidying
    log.close()
    assert not packing.is_alive()
    with_another = SqliteLog(tmp_path / "log.sqlite")
    assert forms(with_another).count(RAW) == 0 and with_another.last_cell == DUE_FRAMES
    with_another.close()
