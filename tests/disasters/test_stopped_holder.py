"""A process that stands still while it holds a lock keeps others waiting for as long as they allow, and is named."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError, LockedError
from vmstore.log.sqlite import SqliteLog
from vmstore.shell.main import main

WAIT_S = 1.0
MARGIN = 3  # of the limit; a call that waits for a stopped process has ended by then
LATER = answer("yes")


@contextmanager
def stopped(path: Path, hold: Callable[[vmstore.Store], AbstractContextManager[object]]) -> Iterator[int]:
    """Another process, which was stopped while it held something of a store; killed at the end if it still is there."""

    def work() -> None:
        with vmstore.open(path) as store, hold(store):
            os.kill(os.getpid(), signal.SIGSTOP)

    pid = start(work)
    os.waitpid(pid, os.WUNTRACED)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError, ChildProcessError):  # it went on, and ended
            kill(pid)


def alone(store: vmstore.Store) -> AbstractContextManager[object]:
    """Holds the writers' lock."""
    return store.admin.log.alone()


def folding(store: vmstore.Store) -> AbstractContextManager[object]:
    """Holds the lock of who folds the views."""
    return store._ns.projection.alone()


def moving(store: vmstore.Store) -> AbstractContextManager[object]:
    """Holds the lock of who moves cells to archives and back."""
    assert isinstance(store.admin.log, SqliteLog)
    return store.admin.log.archives.alone()


def in_limits(call: Callable[[], object]) -> object:
    """What a call answers or raises, once it is seen that it ended in time."""
    began = time.monotonic()
    try:
        actual_error = call()
    except LockedError as error:
        actual_error = error
    assert time.monotonic() - began < MARGIN * WAIT_S
    return actual_error


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two sessions of one call."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat("Where is Kyoto?"), LATER)
        store.record("t", chat("Where is Nara?"), LATER)
    return path


def test_a_record_ends_and_names_the_holder(path: Path) -> None:
    """A record behind a stopped writer ends with its pid, that it is stopped and what to do, and leaves nothing."""
    with vmstore.open(path, wait_s=WAIT_S) as store, stopped(path, alone) as pid:
        end = store.admin.log.ordinal
        text = in_limits(lambda: store.record("s", chat("and then?"), LATER))
        assert isinstance(text, LockedError)
        for word in (f"process {pid} (", "which is stopped", "since 2", f"kill -CONT {pid}", "nothing was written"):
            assert word in str(text)
        assert store.admin.log.ordinal == end
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
        assert store.record("s", chat("and then?"), LATER).call == 2
        assert store.verify().ok


def test_questions_go_on_while_a_record_waits(path: Path) -> None:
    """Questions of all kinds in other threads of the handle are answered while one of its records waits."""
    with vmstore.open(path, wait_s=60 * WAIT_S) as store, stopped(path, alone) as pid:
        waits = threading.Thread(target=store.record, args=("s", chat("and then?"), LATER))
        waits.start()
        time.sleep(WAIT_S / 5)
        assert [info.session for info in store.sessions()] == ["s", "t"]
        assert store.session("s").context().messages()[-1]["content"] == "Where is Kyoto?"
        assert list(store.query("CALLS count(*) ACROSS SESSIONS")) == [(2,)]
        assert [hit.session for hit in store.search("kyoto")] == ["s"]
        assert list(store.tail()) and store.admin.usage().sessions
        assert waits.is_alive()
        os.kill(pid, signal.SIGCONT)
        waits.join()
        assert store.session("s").info().calls == 2


def test_threads_that_queue_end_together(path: Path) -> None:
    """Of many threads that record to one session behind a stopped writer none waits for longer than the first."""
    with vmstore.open(path, wait_s=WAIT_S) as store, stopped(path, alone) as pid:
        text = list[object]()

        def work(number: int) -> None:
            text.append(in_limits(lambda: store.record("st"[number % 2], chat(f"{number}"), LATER)))

        def annotate() -> None:
            text.append(in_limits(lambda: store.session("s").annotate("p4", importance=0.5)))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        threads += [threading.Thread(target=annotate) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(text) == len(threads) and all(f"process {pid}" in str(error) for error in text)


def test_close_ends(path: Path) -> None:
    """A handle that wrote is closed behind a stopped writer, and what it wrote is there."""
    store = vmstore.open(path, wait_s=WAIT_S)
    for call in range(300):
        store.record("s", chat(f"{call}"), LATER)
    with stopped(path, alone):
        in_limits(store.close)
        with vmstore.open(path, "r") as reader:
            assert reader.session("s").info().calls == 301


def test_a_wait_that_was_given_up_takes_nothing_later(path: Path) -> None:
    """Once a stopped writer has gone, the lock is free, though somebody who gave up had stood in the queue for it."""
    with vmstore.open(path, wait_s=WAIT_S / 5) as store, vmstore.open(path, wait_s=WAIT_S) as other:
        with stopped(path, alone):
            for _ in range(3):
                assert isinstance(in_limits(lambda: store.record("s", chat("x"), LATER)), LockedError)
        for call in range(2, 5):
            assert other.record("s", chat(f"{call}"), LATER).call == call
        assert store.record("s", chat("last"), LATER).call == 5


def test_who_closes_after_giving_up_holds_nothing(path: Path) -> None:
    """A handle that was closed while its wait still stood in the queue leaves the lock to others."""
    store = vmstore.open(path, wait_s=WAIT_S / 5)
    with stopped(path, alone):
        assert isinstance(in_limits(lambda: store.record("s", chat("x"), LATER)), LockedError)
        in_limits(store.close)
    with vmstore.open(path, wait_s=WAIT_S) as other:
        assert other.record("s", chat("y"), LATER).call == 2


def test_the_lock_of_archives_ends_too(path: Path) -> None:
    """Archiving and erasing behind a process that was stopped in its archives end with its pid."""
    with vmstore.open(path, wait_s=WAIT_S) as store, stopped(path, moving) as pid:
        for call in (lambda: vmstore.archive(store, ["s"], grace_s=0), lambda: vmstore.erase(store, session="s")):
            text = in_limits(call)
            assert isinstance(text, LockedError) and f"archive.lock is held by process {pid}" in str(text)
        assert store.record("s", chat("and then?"), LATER).call == 2


def test_a_stopped_fold_keeps_no_question_waiting(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Behind a process that was stopped as it folded, a handle answers with all that the log holds, and says so."""
    with vmstore.open(path, wait_s=WAIT_S) as store, stopped(path, folding) as pid:
        store.record("s", chat("and then?"), LATER)
        assert in_limits(lambda: store.session("s").info().calls) == 2
        assert f"process {pid}" in caplog.text and "followed in memory" in caplog.text
        store.record("s", chat("again?"), LATER)
        assert list(store.query("CALLS count(*) IN SESSION s")) == [(3,)]
        assert in_limits(lambda: vmstore.open(path, wait_s=WAIT_S).close()) is None
        text = in_limits(lambda: vmstore.erase(store, session="t"))
        assert isinstance(text, LockedError) and "erase --finish" in str(text)
    with vmstore.open(path) as store:
        assert store.verify().ok and store.session("s").info().calls == 3


def test_a_limit_is_a_number_of_seconds(path: Path) -> None:
    """What is no number of seconds is refused as a limit, and None waits for as long as it takes."""
    for wrong in ("1", -1, float("nan"), float("inf"), 10**9):
        with refused("not-a-limit", InputError):
            vmstore.open(path, wait_s=wrong)  # type: ignore[arg-type]
    with vmstore.open(path, wait_s=None) as store, stopped(path, alone) as pid:
        waits = threading.Thread(target=store.record, args=("s", chat("and then?"), LATER))
        waits.start()
        waits.join(WAIT_S / 2)
        assert waits.is_alive()
        os.kill(pid, signal.SIGCONT)
        waits.join()
        assert store.session("s").info().calls == 2
        os.waitpid(pid, 0)


def test_the_doctor_names_who_holds_a_lock(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The doctor tells of a lock whose holder is stopped or has had it for longer than a call waits."""
    with stopped(path, alone) as pid:
        (symptom,) = [each_symptom for each_symptom in vmstore.doctor(path).symptoms if each_symptom.kind == "locked"]
        assert (
            symptom.where.endswith("log.lock")
            and f"process {pid} (" in symptom.what
            and "which is stopped" in symptom.what
        )
        assert f"kill -CONT {pid}" in symptom.remedy
        assert main(["annotate", str(path), "s", "p4", "--importance", "0.5", "--wait", str(WAIT_S / 5)]) == 1
        assert f"process {pid}" in capsys.readouterr().err
    with vmstore.open(path) as store, store.admin.log.alone():
        assert not [each_symptom for each_symptom in vmstore.doctor(path).symptoms if each_symptom.kind == "locked"]
        later = ManualClock(time.time_ns() // 1_000 + 31_000_000)
        (symptom,) = [
            each_symptom for each_symptom in vmstore.doctor(path, clock=later).symptoms if each_symptom.kind == "locked"
        ]
        assert f"process {os.getpid()} (" in symptom.what and "is stopped" not in symptom.what
    assert vmstore.doctor(path).ok
