"""What a call voids of the request before it is measured on the two as they were sent."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import vmstore
from vmstore.store.live.live_session import Live
from vmstore.vm.protocol.memo import Memo

SHAPES = ["chat", "responses", "anthropic", "gemini"]


def read(request: dict[str, Any]) -> str:
    """A request in the order a provider reads it: tools, what instructs, messages, without what closes the last."""
    text = next(key for key in ("messages", "contents", "input") if key in request)
    rest = {key: value for key, value in request.items() if key not in ("tools", text)}
    return json.dumps([request.get("tools"), rest, request[text]], ensure_ascii=False).rstrip('"]}')


def lost(before: str, now: str) -> float:
    """The tokens of a request from the first character on that is another in the next."""
    alike = next((n for n, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), None)
    return (len(before) - min(len(before), len(now) if alike is None else alike)) / 4


def worked(session: Live) -> list[str]:
    """Fourteen steps in a prompt that fills; the requests as they were sent."""
    requests = []
    for step in range(14):
        session.user(f"Look at step {step}: " + "what trains it has and where they stop. " * 12)
        requests.append(read(session.pack().request))
        session.assistant(f"Step {step} has been looked at, and {step} trains stop there.")
    return requests


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_says_what_it_voids_of_the_request_before(shape: str) -> None:
    """Each call's tokens are those behind the first other character, nothing where the next only adds."""
    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=2_600, shape=shape, system="You are brief.")
        requests = worked(session)
        row = [call.invalidated for call in session.calls()]
        right = [0.0, *(lost(before, now) for before, now in pairwise(requests))]
        assert row[0] == 0 and any(row) and not all(row[1:])
        for measured, counted in zip(row, right, strict=True):
            assert abs(measured - counted) <= 2 + counted // 50, (row, right)
        assert session.stats().invalidated == sum(row)
        recorded = session.debug.replay()
        assert recorded.measures.invalidated == sum(row)
        assert store.query("CALLS sum(invalidated)").to_dicts() == [{"sum(invalidated)": sum(row)}]
        assert store.verify().ok and session.debug.check().ok


def test_where_the_request_before_is_not_at_hand_pages_are_counted(tmp_path: Path) -> None:
    """The first call of a new process has none to compare with, and its number is that of its pages."""
    path = tmp_path / "s.vms"
    for _ in range(2):
        with vmstore.open(path) as store:
            session = store.live_session("s", l0_tokens_max=8_000)
            for _ in range(2):
                session.user("Is this it?")
                session.pack()
                session.assistant("It is.")
            assert len(session.calls()) in (2, 4)
            rows: Any = store.admin.views.execute("SELECT voided FROM calls ORDER BY call").fetchall()
    assert [row[0] for row in rows] == [0, 0, None, 0]


def test_a_request_that_only_adds_looks_at_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sixty messages sent before none is looked at again where one is added."""
    seen: list[object] = []
    look = Memo.of

    def note(self: Memo, key: Any, make: Any) -> Any:
        seen.append(key)
        return look(self, key, make)

    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=60_000, prefetch=False)
        for step in range(60):
            session.user(f"Look at step {step}.")
            session.pack()
            session.assistant(f"Step {step} it is.")
        session.user("And now?")
        before = session.pack().request["messages"]
        session.user("And then?")
        monkeypatch.setattr(Memo, "of", note)
        request = session.pack().request
        assert request["messages"][: len(before)] == before and len(before) > 100
        assert 0 < len(seen) < 20
