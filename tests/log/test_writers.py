"""Writers of one log: threads share a flush, processes queue, and a killed one lets go."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests import refusals
from tests.disasters.child import joined, kill, start
from vmstore.errors import ConflictError, ReadOnlyError, StoreError
from vmstore.log.commit import genesis
from vmstore.log.lock import WriteLock
from vmstore.log.port import Append
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, TornAppend, chain

TURNS = 120


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a log that holds one commit."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)
    log = SqliteLog(path)
    log.append(chain([CommitSpec()]), 0, 0)
    log.close()
    return path


def taken(log: SqliteLog) -> bool:
    """Whether another thread has the turn."""
    free = log.lock._turn.acquire(blocking=False)
    if free:
        log.lock._turn.release()
    return not free


def until(condition: object) -> None:
    """Waits for something to come true."""
    for _ in range(5_000):
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.002)
    raise AssertionError("it never came true")


def test_appends_that_are_handed_over_together_share_one_transaction(path: Path) -> None:
    """What is handed over at once is stored in one transaction, and one that fails fails alone."""
    log = SqliteLog(path)
    first = log.tail(0, 1)[0]
    rows = [
        ("one", chain([CommitSpec(contents=(b"a",)), CommitSpec()], genesis(b"one")), 0, 0),
        ("moved", chain([CommitSpec()], first.hash, 1), 1, 1),
        ("late", chain([CommitSpec()], first.hash, 1), 1, 1),
        ("wrong", chain([CommitSpec()], first.hash, 7), 1, 7),
        ("two", chain([CommitSpec(contents=(b"b",))], genesis(b"two")), 0, 0),
    ]
    transactions = log._writes
    outcomes = log.together([Append(commits, session, expected, 1) for _, commits, session, expected in rows])
    assert log._writes - transactions == 1
    fields: dict[str, object] = {
        name: outcome if isinstance(outcome, Exception) else outcome[-1].ordinal
        for (name, *_), outcome in zip(rows, outcomes, strict=True)
    }
    assert [fields["one"], fields["moved"], fields["two"]] == [3, 4, 5]
    assert "position 2, not 1" in str(fields["late"]) and isinstance(fields["late"], ConflictError)
    assert "position 2, not 7" in str(fields["wrong"])
    assert [c.ordinal for c in log.tail(0, 9)] == [1, 2, 3, 4, 5]
    assert {n: c.content for n, c in log.cells(range(9)).items()} == {1: b"a", 2: b"b"}
    log.close()


def test_commits_are_read_before_anybody_waits(path: Path) -> None:
    """Commits that cannot be made fail where they are handed in, and disturb no other writer."""
    log = SqliteLog(path)
    with pytest.raises(InterruptedError):
        log.append(TornAppend(chain([CommitSpec(), CommitSpec()], genesis(b"two"))), 0, 0)
    assert log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)[0].ordinal == 2
    log.close()


def test_a_killed_holder_lets_go(path: Path) -> None:
    """A process that is killed while it holds the writers' lock keeps nobody out."""
    value, tell = os.pipe()

    def hold() -> None:
        with WriteLock(path.with_suffix(".lock")):
            os.write(tell, b"x")
            time.sleep(600)

    child = start(hold)
    os.read(value, 1)
    log = SqliteLog(path)
    threading.Timer(0.05, kill, (child,)).start()
    assert log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)[0].ordinal == 2
    log.close()


def test_no_writer_is_starved(path: Path) -> None:
    """When the first of four processes that write as fast as they can is through, each has had a fifth of its turns."""
    (waiting, gate), (arrivals, arrival) = os.pipe(), os.pipe()

    def write(number: int) -> None:
        log = SqliteLog(path)
        os.write(arrival, b".")
        os.read(waiting, 1)  # begins when all are there: processes of a busy machine start far apart
        key, previous, position, after = 0, genesis(bytes([number])), 0, 0
        for _ in range(TURNS):
            commit = log.append(chain([CommitSpec()], previous, position), key, position, after=after)[0]
            key, previous, position, after = commit.session, commit.hash, commit.last, commit.ordinal

    children = [start(lambda n=number: write(n)) for number in range(4)]  # type: ignore[misc]
    for _ in children:
        os.read(arrivals, 1)
    os.write(gate, b"four")
    assert [joined(child) for child in children] == [0] * 4
    turns, log = Counter[int](), SqliteLog(path)
    for commit in log.tail(1, 4 * TURNS):  # the first is of none of them
        turns[commit.session] += 1
        if turns[commit.session] == TURNS:
            break
    log.close()
    assert len(turns) == 4 and min(turns.values()) * 5 >= TURNS, turns


@pytest.mark.parametrize("suffix", [".lock", ".queue"])
def test_a_folder_that_cannot_be_locked_is_named(path: Path, suffix: str) -> None:
    """Where a lock file cannot be made the error names it and says how to open the log, and no other stays open."""
    path.with_suffix(suffix).unlink()
    path.with_suffix(suffix).mkdir()
    log, before = SqliteLog(path), len(os.listdir("/dev/fd"))
    with pytest.raises(StoreError, match=rf"log\{suffix} cannot be locked .*open the store with mode 'r'"):
        log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)
    assert len(os.listdir("/dev/fd")) == before
    log.close()


def test_opening_reads_no_past(path: Path) -> None:
    """A handle takes in nothing at open, older heads only where somebody asks for them, and then once."""
    log = SqliteLog(path)
    last = log.append(chain([CommitSpec() for _ in range(50)], genesis(b"two")), 0, 0)[-1]
    log.close()
    log = SqliteLog(path)
    assert (log._heads.start, log._heads.end, log._heads._seen) == (51, 51, {})
    commits = chain([CommitSpec()], last.hash, last.last)
    assert log.append(commits, last.session, last.last, after=51)[0].ordinal == 52
    assert set(log._heads._seen) == {last.session}
    head = log.head(1)
    assert head is not None and head.position == 1
    assert log._heads.start == 0
    log.close()


def test_heads_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle that sees more sessions than it keeps forgets them, and finds them again when asked."""
    monkeypatch.setattr("vmstore.log.heads.SESSIONS_MAX", 5)
    log = SqliteLog(path)
    keys = [log.append(chain([CommitSpec(2)], genesis(bytes([n]))), 0, 0)[0] for n in range(20)]
    assert len(log._heads._seen) <= 5
    heads = [log.head(commit.session) for commit in keys]
    assert heads == [(2, commit.hash) for commit in keys]
    with pytest.raises(ConflictError):
        log.append(chain([CommitSpec()], keys[0].hash, 9), keys[0].session, 9, after=0)
    log.close()


def test_an_interrupted_writer_holds_up_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in a thread that writes reaches that thread and leaves nothing; those that wait for it write next."""
    log, other = SqliteLog(path), WriteLock(path.with_suffix(".lock"))
    lay, errors = log._lay, list[BaseException]()

    def interrupted(*arguments: object) -> bool:
        monkeypatch.undo()
        lay(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    def write(name: bytes) -> None:
        try:
            log.append(chain([CommitSpec(contents=(name,))], genesis(name)), 0, 0)
        except BaseException as error:
            errors.append(error)

    log.append(chain([CommitSpec()], genesis(b"first")), 0, 0)
    with other:
        threads = [threading.Thread(target=write, args=(name,)) for name in (b"one", b"two", b"three")]
        for thread in threads:
            thread.start()
        until(lambda: taken(log))
        monkeypatch.setattr(log, "_lay", interrupted)
    for thread in threads:
        thread.join()
    assert [type(error).__name__ for error in errors] == ["KeyboardInterrupt"]
    assert (log.ordinal, log.last_cell) == (4, 2)
    assert log.append(chain([CommitSpec(contents=(b"x",))], genesis(b"more")), 0, 0)[0].ordinal == 5
    log.close()
    other.close()


def test_a_file_that_refuses_writes_is_named(path: Path) -> None:
    """An append to a file that turned out to be unwritable is a ReadOnlyError that names it, and leaves nothing."""
    log = SqliteLog(path)
    with log.file as db:
        db.execute("PRAGMA query_only = ON")
    with refusals.refused("not-writable", ReadOnlyError, "'r'"):
        log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)
    with log.file as db:
        db.execute("PRAGMA query_only = OFF")
    assert log.ordinal == 1
    log.close()


def test_windows_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows a log is neither made nor opened, and the reason and the remedy are said."""
    monkeypatch.setattr("sys.platform", "win32")
    for refused in (lambda: SqliteLog(path), lambda: SqliteLog.create(path.with_name("new.sqlite"))):
        with refusals.refused("no-windows", StoreError):
            refused()
    assert not path.with_name("new.sqlite").exists()
