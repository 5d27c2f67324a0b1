"""Power is cut, or the disk fails in the middle of a commit.

After a cut only what was flushed is there. `synchronous=NORMAL` in WAL mode flushes at checkpoints
only and so loses acknowledged commits; the last test shows that the first would see it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.disasters.disk import Disk, disk
from vmstore.errors import StoreError
from vmstore.log import sqlite
from vmstore.log.commit import genesis, relink
from vmstore.log.file import counted
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, chain

TOLD = [CommitSpec(contents=(b"x" * 3_000, b"y" * 3_000)), CommitSpec(contents=(b"z",))]


def append(log: SqliteLog) -> int:
    """Appends two commits to session 1; the last ordinal."""
    head = log.head(1)
    previous, position = (head.hash, head.position) if head else (genesis(b"one"), 0)
    return log.append(chain(TOLD, previous, position), 1 if head else 0, position)[-1].ordinal


def survivors(path: Path) -> int:
    """How many commits a log holds, whole, linked and with their cells."""
    log = SqliteLog(path)
    previous = genesis(b"one")
    commits = log.tail(0, 999)
    for commit in commits:
        assert relink(previous, commit) == commit.hash
        cells = log.cells(range(commit.cell, commit.cell + commit.cell_count))
        assert [cell.commitment for cell in cells.values()] == [commit.commitment(i) for i in range(len(cells))]
        assert len(cells) == commit.cell_count
        previous = commit.hash
    log.close()
    return len(commits)


def acknowledged_and_left(made: Disk, folder: Path, synchronous: str | None = None) -> list[tuple[int, int]]:
    """For some appends: the last ordinal acknowledged, and how many commits a power cut then leaves."""
    SqliteLog.create(folder / "log.sqlite")
    log = SqliteLog(folder / "log.sqlite")
    if synchronous:
        with log.file as db:
            db.execute(f"PRAGMA synchronous = {synchronous}")
    rows = []
    for number in range(8):
        last = append(log)
        left = folder / f"left-{number}"
        left.mkdir()
        made.after_power_cut(folder, left)
        rows.append((last, survivors(left / "log.sqlite")))
    log.close()
    return rows


def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path) -> None:
    """After every append the flushed bytes alone hold every commit acknowledged so far."""
    with disk() as made:
        rows = acknowledged_and_left(made, tmp_path)
    assert rows == [(2 * n, 2 * n) for n in range(1, 9)]


def test_less_than_full_would_lose_commits(tmp_path: Path) -> None:
    """The test above can fail: with synchronous at NORMAL a power cut loses what was acknowledged."""
    with disk() as made:
        rows = acknowledged_and_left(made, tmp_path, "NORMAL")
    assert any(left < last for last, left in rows)


@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError])
def test_a_failing_disk_leaves_whole_appends(tmp_path: Path, error: type[apsw.Error]) -> None:
    """Whichever write or flush of an append fails, the error is ours, both commits are there or none, and the
    same handle goes on once the disk is well."""
    with disk() as made:
        made.error = error
        steps = 0
        for step in range(200):
            folder = tmp_path / str(step)
            folder.mkdir()
            SqliteLog.create(folder / "log.sqlite")
            log = SqliteLog(folder / "log.sqlite")
            append(log)
            made.left = step
            try:
                append(log)
                failed = False
            except StoreError as raised:
                failed = True
                assert "log.sqlite" in str(raised)
            made.left = None
            assert log.ordinal == len(log.tail(0, 99)) in ((2, 4) if failed else (4,))
            assert append(log) in (4, 6)
            log.close()
            assert survivors(folder / "log.sqlite") in (4, 6)
            if not failed:
                break
            steps += 1
    assert 2 <= steps < 199


def left_after(made: Disk, folder: Path) -> tuple[int, int]:
    """How many commits there would be after a power cut, and after a kill."""
    counts = []
    for name in ("cut", "killed"):
        left = folder / name
        shutil.rmtree(left, ignore_errors=True)
        left.mkdir()
        if name == "cut":
            made.after_power_cut(folder, left)
        else:
            for file in folder.glob("log.sqlite*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, left)
        counts.append(survivors(left / "log.sqlite"))
    return counts[0], counts[1]


def each_failure(
    made: Disk, folder: Path, before: int, failures: int | None
) -> Iterator[tuple[SqliteLog, Path, str, int]]:
    """Fails some writes or flushes in a row, from each of an append on: the log, what the append said, the commits."""
    for step in range(50):
        place = folder / str(step)
        place.mkdir()
        SqliteLog.create(place / "log.sqlite")
        log = SqliteLog(place / "log.sqlite")
        there = 0
        for _ in range(before):
            there = append(log)
        made.left, made.failures = step, failures
        try:
            there = append(log)
            text = "there" if made.left is None else "no failure"
        except StoreError as raised:
            text = str(raised)
        made.left = None
        yield log, place, text, there
        log.close()
        if text == "no failure":
            return


@pytest.mark.parametrize("before", [1, 4])
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_failed_append_is_resolved(tmp_path: Path, before: int, failures: int) -> None:
    """Whichever writes and flushes of an append fail, it is there and durable, or it says that nothing of it is
    there, or that nobody knows; after a power cut or a kill that is so, and after the next append."""
    texts = set()
    with disk() as made:
        for log, folder, text, there in each_failure(made, tmp_path, before, failures):
            if "is not known" in text:
                there = log.ordinal
                texts.add("unknown")
            else:
                assert text in ("there", "no failure") or "nothing of the commit is there" in text
                texts.add(text.partition("; ")[2].partition(":")[0] or text)
                assert left_after(made, folder) == (there, there), text
            assert append(log) == there + 2
            assert left_after(made, folder) == (there + 2, there + 2), text
    assert "no failure" in texts and len(texts) > 1


def test_a_failed_append_may_be_there(tmp_path: Path) -> None:
    """An append whose flush failed is found in the log where its WAL could be kept, and counts as done."""
    with disk() as made:
        value = {path for *_, path, _ in each_failure(made, tmp_path, 4, 2)}
    assert "there" in value


def test_a_failed_flush_left_alone_would_lose_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail: without writing the WAL again a power cut takes what was acknowledged."""
    monkeypatch.setattr(sqlite, "write_again", lambda path, start: None)
    with disk() as made:
        cases = each_failure(made, tmp_path, 4, 2)
        lost = [expected for _, folder, expected, there in cases if left_after(made, folder)[0] < there]
    assert lost == ["there"]


def written_over(made: Disk, folder: Path) -> list[bool]:
    """For each append that counts although its flush failed: whether it wrote over frames flushed before it."""
    items = []
    for step in range(50):
        place = folder / str(step)
        place.mkdir()
        SqliteLog.create(place / "log.sqlite")
        log = SqliteLog(place / "log.sqlite")
        for _ in range(4):
            append(log)
        with log.file as db:
            end = counted(db)
        made.writes.clear()
        made.left, made.failures = step, 2
        try:
            append(log)
            failed = made.left is None
        except StoreError:
            continue
        finally:
            made.left = None
            log.close()
        if not failed:
            return items
        items.append(any(at < end for name, at in made.writes if name.endswith("-wal")))
    return items


def test_what_was_flushed_is_not_written_over(tmp_path: Path) -> None:
    """After a failed flush nothing is written where an acknowledged commit lies: a cut there may leave noise."""
    with disk() as made:
        actual_written_over = written_over(made, tmp_path)
    assert actual_written_over and not any(actual_written_over)


def test_a_whole_wal_written_again_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: where all of the WAL is in doubt, flushed frames are written over."""
    monkeypatch.setattr(sqlite, "counted", lambda db: 0)
    with disk() as made:
        assert any(written_over(made, tmp_path))


@pytest.mark.parametrize("failures", [2, 3, 4, 5, 6])
def test_what_stayed_in_doubt_is_mended_first(tmp_path: Path, failures: int) -> None:
    """Where nobody knows what became of an append, the next one on the same handle makes it last before itself."""
    with disk() as made:
        for log, folder, text, _ in each_failure(made, tmp_path, 4, failures):
            there = append(log)
            assert left_after(made, folder) == (there, there), text


def test_a_failed_commit_is_unknown_not_absent(tmp_path: Path) -> None:
    """While the disk goes on failing a commit is said to be absent only where its end never came to the disk."""
    texts = set()
    with disk() as made:
        for log, folder, text, there in each_failure(made, tmp_path, 2, None):
            texts.add("unknown" if "whether the commit is there is not known" in text else "known")
            if "nothing of the commit is there" in text:
                assert log.ordinal == there
                assert left_after(made, folder) == (there, there), text
    assert texts == {"unknown", "known"}
