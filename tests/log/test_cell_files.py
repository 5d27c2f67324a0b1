"""Long cells lie in files of their own, there before the commit that names them; what nobody names is swept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.refusals import refused
from vmstore.errors import StoreError
from vmstore.log.blobs import CellFiles
from vmstore.log.commit import Commit
from vmstore.log.frame import FILE_BYTES_MIN
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, chain

LATER = 1 << 60
LONG = b"a long story, " * 9_000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    """An empty log."""
    SqliteLog.create(tmp_path / "log.sqlite")
    log = SqliteLog(tmp_path / "log.sqlite")
    yield log
    log.close()


def commits(*contents: bytes) -> list[Commit]:
    """One commit with these cells."""
    return chain([CommitSpec(contents=contents)])


def cell_files(log: SqliteLog) -> list[Path]:
    """Every file of a long cell."""
    return sorted(path for path in log.files.folder.glob("*/*"))


def test_a_long_cell_has_a_file(log: SqliteLog) -> None:
    """A cell over 64 KiB lies as it is in a file named by its commitment, and one of 64 KiB does not."""
    made = commits(b"x" * (FILE_BYTES_MIN - 1), LONG, b"short")
    log.append(made, 0, 0)
    name = made[0].commitment(1).hex()
    assert cell_files(log) == [log.files.folder / name[:2] / name]
    assert cell_files(log)[0].read_bytes() == LONG
    assert log.cells([1, 2, 3]) == dict(enumerate(made[0].cells, 1))


def test_the_file_is_there_before_the_commit(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the transaction begins, file, folder and parent are written and flushed."""
    flushed: list[str] = []
    fsync = os.fsync

    def watch(handle: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{handle}").rpartition("/")[2])
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watch)
    begun: list[list[str]] = []
    transact = log._transact
    monkeypatch.setattr(log, "_transact", lambda together: (begun.append(flushed.copy()), transact(together)))
    made = commits(LONG)
    log.append(made, 0, 0)
    name = made[0].commitment(0).hex()
    before = [entry.partition(".")[0] for entry in begun[0]]
    assert before.index(name) < before.index(name[:2]) and "blobs" in before


def test_a_file_that_cannot_be_written_stops_the_commit(log: SqliteLog) -> None:
    """Where a long cell finds no room nothing is logged, and the error names the file."""
    log.files.folder.write_bytes(b"in the way")
    with refused("not-written", StoreError):
        log.append(commits(LONG), 0, 0)
    assert log.ordinal == 0
    log.files.folder.unlink()
    assert log.append(commits(LONG), 0, 0)[0].ordinal == 1


def test_a_missing_or_changed_file_is_noticed(log: SqliteLog) -> None:
    """A long cell whose file is gone is missing, and one whose file was changed matches no commitment."""
    made = commits(LONG)
    log.append(made, 0, 0)
    path = cell_files(log)[0]
    path.write_bytes(LONG[:-1] + b"!")
    assert not log.cells([1])[1].keeps(made[0].commitment(0))
    path.unlink()
    assert log.cells([1]) == {}
    assert log.open_cell(1) is None


def test_a_cell_is_read_in_pieces(log: SqliteLog) -> None:
    """A cell is opened as a file, short or long, and read from any place."""
    log.append(commits(LONG, b"a short one"), 0, 0)
    for number, content in ((1, LONG), (2, b"a short one")):
        opened = log.open_cell(number)
        assert opened is not None and opened.salt == log.cells([number])[number].salt
        with opened.file as file:
            file.seek(len(content) - 5)
            assert file.read() == content[-5:]
            file.seek(2)
            assert file.read(3) == content[2:5]
    assert log.open_cell(3) is None


def test_a_file_that_cannot_be_read_is_named(log: SqliteLog) -> None:
    """Where a file is there and the disk does not give it, the error names it."""
    log.append(commits(LONG), 0, 0)
    path = cell_files(log)[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match=rf"{path.name} cannot be read"):
        log.cells([1])


# ---- what nobody names


def test_what_a_crash_left_is_swept(log: SqliteLog) -> None:
    """Files that no commit names, whole or half written, are found, spared while young, and deleted; others stay."""
    made = commits(LONG)
    log.append(made, 0, 0)
    log.files.keep(b"\xab" * 32, b"never named")
    half = log.files.path(made[0].commitment(0)).with_suffix(".7.9.new")
    half.write_bytes(b"half")
    strays = {log.files.path(b"\xab" * 32), half}
    assert {stray.path for stray in log.sweep(LATER, dry=True)} == strays
    assert log.sweep(0) == [] and all(path.exists() for path in strays)
    swept = log.sweep(LATER)
    assert {(stray.path, stray.size) for stray in swept} == {(log.files.path(b"\xab" * 32), 11), (half, 4)}
    assert cell_files(log) == [log.files.path(made[0].commitment(0))]
    assert log.sweep(LATER) == []


def test_a_conflict_leaves_a_stray(log: SqliteLog) -> None:
    """The file of a commit that was refused is a stray, and named again when the commit is made right."""
    first = log.append(chain([CommitSpec()]), 0, 0)[0]
    late = chain([CommitSpec(contents=(LONG,))], first.hash, 1)
    with pytest.raises(Exception, match="position 1"):
        log.append(late, 1, 9)
    assert len(log.sweep(LATER, dry=True)) == 1
    log.append(late, 1, 1)
    assert log.sweep(LATER) == [] and log.cells([1])[1].content == LONG


def test_a_sweep_takes_what_is_older_than_a_moment(log: SqliteLog) -> None:
    """A file that was written at the moment told is kept, to the microsecond, and one written before it goes."""
    names = [bytes([number]) * 32 for number in range(3)]
    for number, name in enumerate(names):
        log.files.keep(name, LONG)
        os.utime(log.files.path(name), ns=(0, (10**6 + number) * 1_000))
    assert [stray.at for stray in log.sweep(10**6 + 1, dry=True)] == [10**6]
    assert [stray.at for stray in log.sweep(10**6 + 1)] == [10**6]
    assert [log.files.holds(name) for name in names] == [False, True, True]


def test_a_sweep_in_between_takes_nothing_that_is_needed(log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file swept between its writing and its commit is written again before the commit names it."""
    other = SqliteLog(log.file.path)
    keep_files = log._keep_files
    monkeypatch.setattr(log, "_keep_files", lambda c: (keep_files(c), other.sweep(LATER)))
    log.append(commits(LONG, b"x"), 0, 0)
    assert log.cells([1])[1].content == LONG
    other.close()


def test_a_file_of_that_name_that_fits_nothing_is_left(tmp_path: Path) -> None:
    """Folders among the files are no strays, and a folder that was never made holds none."""
    files = CellFiles(tmp_path / "blobs")
    assert list(files.strays(lambda name: False)) == []
    (tmp_path / "blobs" / "ab" / "folder").mkdir(parents=True)
    assert list(files.strays(lambda name: False)) == []
