"""Trouble with the store reaches no call: calls wait for a store that fails, gaps tell of those it never takes."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.capture.fake_client import Store, client
from vmstore.capture.client import recorder as recorder_module
from vmstore.capture.client.recorder import CALL_BYTES, DELETED
from vmstore.errors import InputError, StoreError
from vmstore.store.recorder import record_together


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "RETRY_S", 0.01)


@pytest.mark.parametrize("error", [OSError(28, "no space left on device"), StoreError("a.vms is locked")])
def test_a_store_that_fails_for_a_while_loses_no_call(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Calls wait until the store takes them again, in their order; meanwhile a flush says no, and why."""
    store = Store()
    store.fails = error
    with client(store) as ask, caplog.at_level(logging.WARNING, "vmstore"):
        assert [ask(text) for text in "abc"] == ["In Japan."] * 3
        assert not ask.recorder.flush(0.1)
        assert str(error) in ask.recorder.problems[-1]
        assert str(error) in caplog.text
        store.fails = None
        assert ask.recorder.flush(5)
    assert store.asked() == ["a", "b", "c"]


def test_a_call_that_can_never_be_recorded_is_a_gap_in_its_place() -> None:
    """What the store refuses for good is a gap at once, with the reason, between the calls around it."""
    store = Store()

    def refuse(session: str, request: Any, response: Any, **fields: Any) -> None:
        if request["messages"][0]["content"] == "b":
            raise InputError("holds a secret")
        Store.record(store, session, request, response, **fields)

    store.record = refuse  # type: ignore[method-assign]
    with client(store) as ask:
        for text in "abc":
            ask(text)
        assert ask.recorder.flush(5)
    assert store.asked() == ["a", "gap", "c"]
    assert "holds a secret" in store.log[1][1]


def test_a_call_in_a_form_that_cannot_be_recorded_is_a_gap() -> None:
    """A legacy completion goes through, and stands as a gap that says why."""
    store = Store()
    with client(store) as ask:
        assert ask.sdk.completions.create(model="m", prompt="Where?").choices[0].text == "Japan"
        assert ask.recorder.flush(5)
    assert store.log == [("gap", "calls to /v1/completions cannot be recorded; chat completions, responses and "
                                 "messages can")]  # fmt: skip


def test_no_call_waits_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue takes so many bytes; what comes after becomes gaps in its place, and no call is held up."""
    store = Store()
    store.goes.clear()
    monkeypatch.setattr(recorder_module, "WAITING_BYTES_MAX", 5 * (CALL_BYTES + 1_000))
    with client(store) as ask:
        for n in range(9):
            ask(str(n))
        assert store.log == []
        assert list(ask.recorder.problems) == [recorder_module.QUEUE_FULL]
        store.goes.set()
        assert ask.recorder.flush(5)
        ask("later")
        assert ask.recorder.flush(5)
    kept = store.asked().index("gap")
    assert 3 <= kept <= 6
    assert store.asked() == [*(str(n) for n in range(kept)), *["gap"] * (9 - kept), "later"]


def test_large_calls_fill_the_queue_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue counts bytes: one call beyond its bound is a gap where many small ones fit."""
    store = Store()
    store.goes.clear()
    monkeypatch.setattr(recorder_module, "WAITING_BYTES_MAX", 100_000)
    with client(store) as ask:
        ask("x" * 200_000)
        ask("small")
        store.goes.set()
        assert ask.recorder.flush(5)
    assert store.asked() == ["gap", "small"]


def test_a_write_that_came_through_though_it_failed_is_not_written_twice(tmp_path: Path) -> None:
    """Before it is tried again the store is asked whether the call is there."""
    with vmstore.open(tmp_path / "a.vms") as real:
        fails = [StoreError("whether the commit is there is not known")]

        class Doubtful:
            def record(self, *arguments: Any, **fields: Any) -> Any:
                written = real.record(*arguments, **fields)
                if fails:
                    raise fails.pop()
                return written

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        with client(Doubtful()) as ask:
            ask("a")
            ask("b")
            assert ask.recorder.flush(5)
        assert [call.status for call in real.session("s").calls()] == ["ok", "ok"]


def test_a_folder_deleted_beneath_is_told(tmp_path: Path) -> None:
    """A flush says no once what was recorded is gone, and calls from there on are in a new store."""
    path = tmp_path / "a.vms"
    with client(str(path), open_store=vmstore.open) as ask:
        ask("lost")
        assert ask.recorder.flush(5)
        shutil.rmtree(path)
        assert not ask.recorder.flush(5)
        assert DELETED in ask.recorder.problems
        ask("kept")
        assert ask.recorder.close(5)
    with vmstore.open(path) as store:
        assert [m["content"] for m in store.session("s").wire.request(call=1)["messages"]] == ["kept"]


def test_an_open_store_deleted_beneath_takes_no_calls(tmp_path: Path) -> None:
    """What is written to a file that is gone is not said to be recorded."""
    with vmstore.open(tmp_path / "a.vms") as store:
        with client(store) as ask:
            ask("here")
            assert ask.recorder.flush(5)
            shutil.rmtree(tmp_path / "a.vms")
            ask("lost")
            assert not ask.recorder.flush(5)
            assert DELETED in "".join(ask.recorder.problems)


def test_a_path_is_opened_on_the_worker_and_closed_with_it() -> None:
    """A store given as a path is opened once, at the first call, on another thread, and closed by close."""
    store = Store()
    opened: list[Any] = []

    def open_store(path: str) -> Store:
        opened.append((path, threading.current_thread() is threading.main_thread()))
        return store

    store.close = lambda: opened.append("closed")  # type: ignore[attr-defined]
    with client("agent.vms", open_store=open_store) as ask:
        assert opened == []
        ask("a")
        ask("b")
        assert ask.recorder.close(5)
        assert opened == [("agent.vms", False), "closed"]
        assert ask("c") == "In Japan."
        assert store.asked() == ["a", "b"]
        assert "closed" in ask.recorder.problems[-1]


def test_a_store_that_cannot_be_opened_is_tried_again() -> None:
    """Calls wait for a store that cannot be opened yet."""
    store = Store()
    answers: list[Any] = [store, OSError("no such disk"), OSError("no such disk")]

    def open_store(path: str) -> Store:
        answer = answers.pop()
        if isinstance(answer, Store):
            return answer
        raise answer

    with client("agent.vms", open_store=open_store) as ask:
        ask("a")
        ask("b")
        assert ask.recorder.flush(5)
    assert store.asked() == ["a", "b"]


def test_a_forked_process_records_for_itself() -> None:
    """A child process opens the store again and records its calls, none of its parent's, under a name of its own."""
    opened: list[Store] = []

    def open_store(path: str) -> Store:
        opened.append(Store())
        return opened[-1]

    with client("agent.vms", None, open_store=open_store) as ask:
        ask("parent")
        assert ask.recorder.flush(5)
        name = opened[0].log[0][0]
        child = os.fork()
        if not child:
            ask("child")
            good = ask.recorder.flush(5) and [each.asked() for each in opened] == [["parent"], ["child"]]
            os._exit(0 if good and opened[1].log[0][0] == f"{name}-p{os.getpid()}-2" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [each.asked() for each in opened] == [["parent"]]


ENDING = """
    import os, signal, sys, time
    from pathlib import Path
    from tests.capture.fake_client import Client
    from tests.sdk.provider import serving
    class Slow:
        def record(self, session, request, response, *, at_us, latency_us):
            time.sleep(0.2)
            with open({log!r}, "a") as log:
                log.write(request["messages"][0]["content"])
        @property
        def admin(self):
            return self
        def record_gap(self, session, reason):
            raise AssertionError(reason)
    with serving() as provider:
        ask = Client(provider, Slow())
        for text in "abc":
            ask(text)
    {end}
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)", -signal.SIGTERM),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(4)); os.kill(os.getpid(), signal.SIGTERM)", 4),
    ],
)
def test_a_process_that_ends_writes_what_waits(end: str, code: int, tmp_path: Path) -> None:
    """Calls made just before a process ends, or is told to end, are in the store when it is gone."""
    script = textwrap.dedent(ENDING).format(log=str(tmp_path / "log"), end=end)
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=60, cwd=root)
    assert (tmp_path / "log").read_text() == "abc"
    assert ended.returncode == code


def test_a_store_that_hangs_holds_up_no_end(tmp_path: Path) -> None:
    """A process told to end is gone within its time, whatever its store does."""
    script = textwrap.dedent(ENDING).replace("time.sleep(0.2)", "time.sleep(600)").format(
        log=str(tmp_path / "log"), end="os.kill(os.getpid(), signal.SIGTERM); time.sleep(600)"
    )  # fmt: skip
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", script], check=False, timeout=60, cwd=root)
    assert ended.returncode == -signal.SIGTERM


def test_calls_of_different_conversations_that_wait_share_a_flush(tmp_path: Path) -> None:
    """What waited for the store is written together, one call of each session at a time, in order."""
    groups: list[list[str]] = []

    def together(store: Any, calls: Any, redaction: str | None) -> Any:
        groups.append([call.session for call in calls])
        return record_together(store, calls, redaction)

    with vmstore.open(tmp_path / "a.vms") as real:
        with client(real, None, record_together=together) as ask:
            with real._ns.lock:  # the first one waits for it, the others for the first
                for n in range(12):
                    with ask.recorder.conversation(f"s{n % 5}"):
                        ask(f"question {n}")
            assert ask.recorder.flush(10)
        asked = [[m["messages"][0]["content"] for m in requests(real, f"s{n}")] for n in range(5)]
    assert asked == [[f"question {k}" for k in range(n, 12, 5)] for n in range(5)]
    assert all(len(set(group)) == len(group) for group in groups)
    assert max(map(len, groups)) == 5


def test_one_call_that_is_refused_takes_no_other_of_its_group_with_it(tmp_path: Path) -> None:
    """Of calls that are written together each has its own outcome; the refused one is a gap."""
    with vmstore.open(tmp_path / "a.vms") as real:
        real.live_session("s3", l0_tokens_max=9_000)
        with client(real, None, record_together=record_together) as ask:
            with real._ns.lock:
                for n in range(6):
                    with ask.recorder.conversation(f"s{n}"):
                        ask(f"question {n}")
            assert not ask.recorder.flush(10) or ask.recorder.problems
        names = {info.session for info in real.sessions() if real.session(info.session).calls()}
    assert names >= {"s0", "s1", "s2", "s4", "s5"}


def requests(store: vmstore.Store, name: str) -> list[Any]:
    """The requests of a session's calls."""
    session = store.session(name)
    return [session.wire.request(call=call.call) for call in session.calls()]
