"""Power is cut, or the disk fails in the middle of a commit.

After a cut only what was flushed is there. `synchronous=NORMAL` in WAL mode flushes at checkpoints
only and so loses acknowledged commits; the last test shows that the first would see it.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.disasters.disk import Disk, disk
from vmstore.errors import StoreError
from vmstore.log.commit import genesis, relink
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import Told, chain

TOLD = [Told(contents=(b"x" * 3_000, b"y" * 3_000)), Told(contents=(b"z",))]


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
    found = []
    for number in range(8):
        last = append(log)
        left = folder / f"left-{number}"
        left.mkdir()
        made.after_power_cut(folder, left)
        found.append((last, survivors(left / "log.sqlite")))
    log.close()
    return found


def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path) -> None:
    """After every append the flushed bytes alone hold every commit acknowledged so far."""
    with disk() as made:
        found = acknowledged_and_left(made, tmp_path)
    assert found == [(2 * n, 2 * n) for n in range(1, 9)]


def test_less_than_full_would_lose_commits(tmp_path: Path) -> None:
    """The test above can fail: with synchronous at NORMAL a power cut loses what was acknowledged."""
    with disk() as made:
        found = acknowledged_and_left(made, tmp_path, "NORMAL")
    assert any(left < last for last, left in found)


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


def test_a_failed_commit_is_unknown_not_absent(tmp_path: Path) -> None:
    """The error of a failed commit does not say that nothing was written, for nobody can know."""
    with disk() as made:
        SqliteLog.create(tmp_path / "log.sqlite")
        log = SqliteLog(tmp_path / "log.sqlite")
        append(log)
        before = made.done
        append(log)
        made.left = made.done - before - 1  # the flush that makes the commit durable
        with pytest.raises(StoreError) as raised:
            append(log)
        made.left = None
        log.close()
    assert "nothing of the commit is there" not in str(raised.value)
