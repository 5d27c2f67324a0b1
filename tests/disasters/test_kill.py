"""A process is killed while it records: what it was told is durable is there, and nothing is there by half."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.engine.stories import answer, chat
from vmstore.errors import VmstoreError

KILLS = 20


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a first call loads is loaded before any process is forked: else each is killed while it loads that again."""
    with vmstore.open(tmp_path_factory.mktemp("loaded") / "a.vms") as store:
        store.record("s", request(1), answer("answer 1"), request_id="r-1")


def texts(calls: int) -> list[str]:
    """The messages of the request of a call: every question and answer so far."""
    other_texts = []
    for n in range(1, calls):
        other_texts += [f"question {n} " + "why? " * (n % 7 * 40), f"answer {n}"]
    return [*other_texts, f"question {calls} " + "why? " * (calls % 7 * 40)]


def request(calls: int) -> dict[str, Any]:
    """The request of a call; only the last eight messages are kept in context."""
    other_texts = texts(calls)
    return chat(*other_texts[-7:] if len(other_texts) > 7 else other_texts, seed=calls)


def recorder(path: Path, first: int, number: int) -> None:
    """Says that it begins, records calls for ever, and writes a byte to a pipe for each one acknowledged."""
    os.write(number, b"!")
    store = vmstore.open(path)
    call = first
    while True:
        store.record("s", request(call), answer(f"answer {call}"), request_id=f"r-{call}")
        os.write(number, b".")
        call += 1


def acknowledged(path: Path, first: int, seconds: float) -> int:
    """Runs a recorder for a while and kills it; how many calls it was told are durable."""
    reader, writer = os.pipe()
    pid = start(lambda: recorder(path, first, writer))
    os.close(writer)
    assert os.read(reader, 1) == b"!"  # a fork of a process with much in memory takes its time
    time.sleep(seconds)
    kill(pid)
    count = 0
    while chunk := os.read(reader, 4096):
        count += len(chunk)
    os.close(reader)
    return count


def test_what_was_acknowledged_is_there(store_path: Path) -> None:
    """Over twenty kills every acknowledged call is there, whole and equal, and the chain verifies."""
    vmstore.open(store_path).close()
    calls = number = 0
    while number < KILLS or calls <= KILLS:
        number += 1
        assert number < 200, "the recorder never came to record"
        other_number = acknowledged(store_path, calls + 1, 0.01 + 0.003 * number)
        with vmstore.open(store_path) as store:
            kept = _calls(store)
            assert calls + other_number <= kept <= calls + other_number + 1, (
                "one call may be written and not yet acknowledged"
            )
            calls = kept
    with vmstore.open(store_path) as store:
        assert store.verify().ok
        session = store.session("s")
        for call in range(1, calls + 1):
            assert session.wire.request(call=call) == request(call)
        assert all(call.status == "ok" for call in session.calls()[:-1])


def test_an_unacknowledged_call_is_asked_again(store_path: Path) -> None:
    """After a kill the same request id gives the first answer, so a retry never records a call twice."""
    vmstore.open(store_path).close()
    calls, tries = 0, 0
    while calls < 3:
        tries += 1
        assert tries < 100, "the recorder never came to record"
        acknowledged(store_path, 1, 0.05)
        with vmstore.open(store_path) as store:
            calls = _calls(store)
    with vmstore.open(store_path) as store:
        again = store.record("s", request(calls), answer(f"answer {calls}"), request_id=f"r-{calls}")
        assert (again.call, _calls(store)) == (calls, calls)
        assert store.record("s", request(calls + 1), None, request_id=f"r-{calls + 1}").call == calls + 1


def _calls(store: vmstore.Store) -> int:
    """How many calls the session has; none where the recorder was killed before the first."""
    try:
        return store.session("s").info().calls
    except VmstoreError:
        return 0
