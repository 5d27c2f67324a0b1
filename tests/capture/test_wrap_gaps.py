"""Trouble with the store reaches no call; what could not be recorded is a gap in its place."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from tests.capture.fake_client import (
    HELLO,
    Obj,
    Store,
    wrapped,
)
from vmstore.capture.client.recorder import WAITING_MAX


def test_a_store_that_raises_leaves_a_gap(caplog: pytest.LogCaptureFixture) -> None:
    """The calls go through; once the store answers, a gap stands for each of them before the next call."""
    store = Store()
    client = wrapped(store, *(Obj(n=n) for n in range(3)))
    store.fails = OSError("disk full")
    with caplog.at_level(logging.WARNING, "vmstore"):
        assert [client.messages.create(n=n).n for n in range(2)] == [0, 1]
        assert not client.vmstore.flush(5)
    assert list(client.vmstore.problems) == ["OSError: disk full"]
    assert "disk full" in caplog.text
    store.fails = None
    client.messages.create(n=2)
    assert client.vmstore.flush(5)
    assert store.log[:2] == [("gap", "OSError: disk full")] * 2
    assert store.asked() == ["gap", "gap", 2]


def test_a_gap_is_written_without_another_call() -> None:
    """The recorder looks after a store that failed until it answers."""
    store = Store()
    client = wrapped(store, Obj())
    store.fails = OSError("busy")
    client.messages.create(n=0)
    assert not client.vmstore.flush(5)
    store.fails = None
    ends = time.monotonic() + 10
    while not store.log and time.monotonic() < ends:
        time.sleep(0.02)
    assert store.asked() == ["gap"]


def test_a_call_that_cannot_be_recorded_is_a_gap_in_its_place() -> None:
    """A request that is no JSON goes to the model all the same, and the calls around it stay in order."""
    store = Store()
    client = wrapped(store, *(Obj(n=n) for n in range(3)))
    client.messages.create(n=0)
    assert client.messages.create(n={1, 2}).n == 1
    client.messages.create(n=2)
    assert client.vmstore.flush(5)
    assert store.asked() == [0, "gap", 2]
    assert "set" in client.vmstore.problems[0]


def test_a_request_that_contains_itself_goes_through() -> None:
    """Even a request that nobody could copy does not break its call."""
    store = Store()
    messages: list[Any] = []
    messages.append(messages)
    client = wrapped(store, Obj(n=7))
    assert client.messages.create(messages=messages).n == 7
    assert client.vmstore.flush(5)
    assert store.asked() == ["gap"]


def test_no_call_waits_for_a_store_that_hangs() -> None:
    """All calls end before the store answers one; the queue takes what it can, the rest becomes gaps in its place."""
    store = Store()
    store.goes.clear()
    calls = WAITING_MAX + 10
    client = wrapped(store, *(Obj() for _ in range(calls + 1)))
    began = time.monotonic()
    client.messages.create(n=0)
    while not client.vmstore._queue.empty() and time.monotonic() < began + 5:
        time.sleep(0.001)  # the first is with the store now, no longer in the queue
    for n in range(1, calls):
        client.messages.create(n=n)
    assert store.log == []
    store.goes.set()
    while not client.vmstore._queue.empty() and time.monotonic() < began + 10:
        time.sleep(0.001)
    client.messages.create(n="later")
    assert client.vmstore.flush(10)
    kept = list(range(WAITING_MAX + 1))
    assert store.asked() == [*kept, *["gap"] * (calls - len(kept)), "later"]
    assert len(client.vmstore.problems) == 1


def test_a_path_is_opened_on_the_worker_and_closed_with_it() -> None:
    """A store given as a path is opened once, at the first call, on another thread, and closed by close."""
    store = Store()
    opened: list[Any] = []

    def open_store(path: str) -> Store:
        opened.append((path, threading.current_thread() is threading.main_thread()))
        return store

    store.close = lambda: opened.append("closed")  # type: ignore[attr-defined]
    client = wrapped("agent.vms", Obj(), Obj(), Obj(n=3), open_store=open_store)
    assert opened == []
    client.messages.create(n=0)
    client.messages.create(n=1)
    assert client.vmstore.close(5)
    assert opened == [("agent.vms", False), "closed"]
    assert client.messages.create(n=2).n == 3
    assert store.asked() == [0, 1]
    assert "closed" in client.vmstore.problems[-1]


def test_a_store_that_cannot_be_opened_is_tried_again() -> None:
    """Each call tries again to open the store, and the first that can writes the gap."""
    store = Store()
    answers = iter([OSError("no such disk"), OSError("no such disk"), store])

    def open_store(path: str) -> Store:
        answer = next(answers)
        if isinstance(answer, Store):
            return answer
        raise answer

    client = wrapped("agent.vms", Obj(), Obj(), open_store=open_store)
    client.messages.create(n=0)
    client.messages.create(n=1)
    assert client.vmstore.flush(5)
    assert store.asked() == ["gap", 1]


def test_a_call_on_an_unseen_way_is_a_gap() -> None:
    """What is asked through raw responses goes through, and stands as a gap that says why."""
    store = Store()
    client = wrapped(store, "raw")
    assert client.chat.completions.with_raw_response.create(messages=[HELLO]) == "raw"
    assert client.vmstore.flush(5)
    reason = "calls through chat.completions.with_raw_response.create cannot be recorded"
    assert store.log == [("gap", reason)]


def test_a_forked_process_records_for_itself() -> None:
    """A child process opens the store anew and records its calls, none of its parent's."""
    opened: list[Store] = []

    def open_store(path: str) -> Store:
        opened.append(Store())
        return opened[-1]

    client = wrapped("agent.vms", Obj(), Obj(), open_store=open_store)
    client.messages.create(n=0)
    assert client.vmstore.flush(5)
    child = os.fork()
    if not child:
        client.messages.create(n=1)
        good = client.vmstore.flush(5) and [each.asked() for each in opened] == [[0], [1]]
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [each.asked() for each in opened] == [[0]]


def test_a_process_that_ends_writes_what_waits(tmp_path: Any) -> None:
    """Calls made just before the end of a process are in the store when it is gone."""
    script = f"""
        import time
        from types import SimpleNamespace as Space
        from vmstore.capture.client.wrap import wrap
        class Store:
            def record(self, session, request, response, *, at, latency):
                time.sleep(0.2)
                open({str(tmp_path / "log")!r}, "a").write(request["n"])
            def record_gap(self, session, reason):
                raise AssertionError(reason)
        client = wrap(Space(messages=Space(create=lambda **request: {{}})), Store())
        for n in "abc":
            client.messages.create(n=n)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)
    assert (tmp_path / "log").read_text() == "abc"
