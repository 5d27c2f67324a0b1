"""One handle on a log: what it does by itself it does as often as it should, and no more."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from vmstore.log import sqlite
from vmstore.log.blobs import CellFiles
from vmstore.log.commit import genesis
from vmstore.log.frame import FILE_BYTES_MIN
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, chain


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of an empty log."""
    SqliteLog.create(tmp_path / "log.sqlite")
    return tmp_path / "log.sqlite"


def test_packing_begins_every_so_many_writes_and_once_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every so many writes a thread packs that nobody waits for, and while it does none is started beside it."""
    begun, here, go = list[tuple[str, bool]](), threading.Event(), threading.Event()

    def tidy(log: SqliteLog) -> None:
        begun.append((threading.current_thread().name, threading.current_thread().daemon))
        here.set()
        go.wait(30)

    def write(count: int) -> None:
        for _ in range(count):
            log.append(chain([CommitSpec()], genesis(b"%d" % log.ordinal)), 0, 0)

    monkeypatch.setattr(sqlite, "TIDY_WRITES", 3)
    monkeypatch.setattr(SqliteLog, "_tidy", tidy)
    log = SqliteLog(path)
    write(2)
    assert not log._tidying.is_alive() and begun == []
    write(5)
    assert here.wait(30) and log._tidying.is_alive()
    assert begun == [("vmstore-tidy", True)]
    go.set()
    log._tidying.join()
    write(1)
    assert not log._tidying.is_alive() and len(begun) == 1
    write(1)
    log._tidying.join()
    assert begun == [("vmstore-tidy", True)] * 2
    log.close()
    assert begun[2:] == [("MainThread", False)], "a handle that closes packs what is left"


def test_a_long_cell_is_written_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a cell is written before its commit, and again only where somebody swept it away meanwhile."""
    kept, keep, log = list[bytes](), CellFiles.keep, SqliteLog(path)
    (commit,) = chain([CommitSpec(contents=(b"x" * FILE_BYTES_MIN,))], genesis(b"long"))
    monkeypatch.setattr(
        CellFiles, "keep", lambda files, name, content, *key: (kept.append(name), keep(files, name, content, *key))
    )
    log.append([commit], 0, 0)
    assert kept == [commit.commitment(0)]
    monkeypatch.setattr(CellFiles, "holds", lambda files, name: False)
    (again,) = chain([CommitSpec(contents=(b"y", b"y" * FILE_BYTES_MIN))], genesis(b"again"))
    log.append([again], 0, 0)
    assert kept[1:] == [again.commitment(1)] * 2
    assert log.cells([3])[3].content == b"y" * FILE_BYTES_MIN
    log.close()


def test_what_was_written_alone_is_not_written_again(path: Path) -> None:
    """An append made while everybody else waits is stored once, no matter who writes next."""
    log = SqliteLog(path)
    with log.alone():
        log.append(chain([CommitSpec()], genesis(b"alone")), 0, 0)
        log.append(chain([CommitSpec()], genesis(b"alone too")), 0, 0)
    log.append(chain([CommitSpec()], genesis(b"next")), 0, 0)
    assert (log.ordinal, [commit.session for commit in log.tail(0, 9)]) == (3, [1, 2, 3])
    log.close()
