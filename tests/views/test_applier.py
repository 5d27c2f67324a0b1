"""Of several who follow one log into one file one folds, the others wait for its rows, and nobody for ever."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.engine.author import Author, engine_over
from tests.engine.stories import chat
from tests.refusals import refused
from tests.views.test_alphabet import STORY
from vmstore.errors import LockedError, StoreError
from vmstore.log.memory import MemoryLog
from vmstore.views import applier as applier_module
from vmstore.views.applier import Applier
from vmstore.views.projection import Projection


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    """A log with something for every view."""
    log = MemoryLog()
    Author(engine_over(log)).write(STORY)
    return log


def handle(log: MemoryLog, folder: Path) -> Projection:
    """A handle on the views file of a folder."""
    db = apsw.Connection(str(folder / "views.sqlite"))
    db.setbusytimeout(10_000)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    return Projection(log, db, applier=Applier(folder / "views.lock"))


@contextmanager
def elsewhere(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """Work done by another thread meanwhile."""
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join()


def test_who_is_not_elected_waits_for_the_rows(log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one handle folds, another that needs the rows takes no step of its own, and then has them."""
    first, two = handle(log, tmp_path), handle(log, tmp_path)
    steps: list[str] = []
    event, right = threading.Event(), Projection._step

    def step(self: Projection, target: int) -> int:
        steps.append("one" if self is first else "two")
        event.set()
        time.sleep(0.05)
        return right(self, target)

    monkeypatch.setattr(Projection, "_step", step)
    with elsewhere(first.catch_up):
        event.wait()
        assert two.catch_up() == log.ordinal
    assert set(steps) == {"one"}
    assert [two.digest(p.name) for p in two.projectors] == [first.digest(p.name) for p in first.projectors]


def test_handles_in_turn_leave_one_fold(log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two handles that fold a commit each in turn, both from what is at hand, leave what one fold gives."""
    whole = Projection(log, apsw.Connection(":memory:"))
    whole.catch_up()
    first, two = handle(log, tmp_path), handle(log, tmp_path)
    for ordinal in range(1, log.ordinal + 1):
        (first, two)[ordinal % 2].catch_up(upto=ordinal)
    assert [first.digest(p.name) for p in first.projectors] == [whole.digest(p.name) for p in whole.projectors]


def test_a_killed_holder_lets_go(log: MemoryLog, tmp_path: Path) -> None:
    """Where the one who folds is killed, the next one to ask folds."""

    def hold() -> None:
        Applier(tmp_path / "views.lock").take()
        (tmp_path / "held").touch()
        time.sleep(60)

    pid = start(hold)
    while not (tmp_path / "held").exists():
        time.sleep(0.001)
    views = handle(log, tmp_path)
    other = Applier(tmp_path / "views.lock")
    assert not other.take()
    kill(pid)
    assert views.catch_up() == log.ordinal


def test_a_holder_that_stands_still_is_left_alone(
    log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind one that folds nothing a handle goes on in memory, and what must write into the file names it."""
    monkeypatch.setattr(applier_module, "STUCK_S", 0.05)
    whole = Projection(log, apsw.Connection(":memory:"))
    whole.catch_up()
    holder, views, other = Applier(tmp_path / "views.lock"), handle(log, tmp_path), handle(log, tmp_path)
    views.catch_up(upto=log.ordinal // 2)
    assert holder.take()
    with pytest.raises(LockedError, match=rf"views is being written by process {os.getpid()} .* mode 'r'"):
        other.rebuild()
    assert views.catch_up() == log.ordinal
    assert "followed in memory" in caplog.text
    assert [views.digest(p.name) for p in views.projectors] == [whole.digest(p.name) for p in whole.projectors]
    holder.release()
    assert other.ordinal == log.ordinal // 2
    assert other.catch_up() == log.ordinal


def test_a_holder_that_moves_is_waited_for(log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One who waits goes on waiting as long as the other says that it moves, however long that takes."""
    monkeypatch.setattr(applier_module, "STUCK_S", 0.1)
    holder, views = Applier(tmp_path / "views.lock"), handle(log, tmp_path)
    assert holder.take()

    def move() -> None:
        for ordinal in range(1, 20):
            holder.moved(ordinal)
            time.sleep(0.02)
        holder.release()

    with elsewhere(move):
        assert views.catch_up() == log.ordinal


def test_a_reader_does_not_wait_for_a_holder(store_path: Path) -> None:
    """A handle for reading folds for itself, no matter who holds the lock."""
    with vmstore.open(store_path) as store:
        store.record("s", chat("hello"))
        (views,) = (store_path / "default").glob("views-*.sqlite")
        holder = Applier(views.with_suffix(".lock"))
        assert holder.take()
        with vmstore.open(store_path, "r") as reader:
            assert [call.call for call in reader.session("s").calls()] == [1]
        holder.close()


def test_a_second_process_reads_what_was_written(store_path: Path) -> None:
    """What one process has recorded another is told at its next question, which of them folds or not."""
    with vmstore.open(store_path) as store, vmstore.open(store_path) as other:
        for call in range(1, 6):
            store.record("s", chat(f"{call}"))
            assert [call.call for call in other.session("s").calls()] == list(range(1, call + 1))
            if call % 2:
                assert len(store.session("s").calls()) == call


def test_a_lock_that_fails_is_named(log: MemoryLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk refuses the lock's file the error names it and the remedy, and no row is written."""
    views = handle(log, tmp_path)
    (tmp_path / "views.lock").mkdir()
    with refused("not-lockable", StoreError, "'r'"):
        views.catch_up()
    assert views.ordinal == 0
