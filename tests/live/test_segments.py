"""Segments end by themselves, so that summaries are there without anybody asking for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError
from vmstore.store.live import Live
from vmstore.store.store import Store

BUDGET: dict[str, Any] = {"l0_tokens_max": 4_000, "rules": "short", "pinned_turns": 1}
LONG = "The harbour of stop {0} has a bridge, a crane and a clock that is late. " * 6


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


def talk(session: Live, turns: int) -> None:
    """Turns of a question and a long answer."""
    for n in range(turns):
        session.user(f"What of stop {n}?")
        session.pack()
        session.assistant(LONG.format(n))


def summaries(session: Live) -> list[str]:
    """The summaries there are, by name."""
    return [page.hint or "" for page in session.pages(type="summary")]


def test_a_segment_ends_by_itself(store: Store) -> None:
    """Once more than the setting was said in it, its summary is there, linked to all it stands for, and those leave."""
    session = store.session("s", segment_tokens_max=600, **BUDGET)
    talk(session, 5)
    assert summaries(session) == []
    talk(session, 1)
    assert summaries(session) == ["summary_1"]
    assert len(session.derived("p9")) >= 1 and len(session.sources("summary_1", kinds=["derives"])) == 12
    packed = session.pack()
    assert "summary_1" in packed.pages and len(packed.pages) < 6  # the last turn, and what it asked for
    talk(session, 6)
    assert summaries(session) == ["summary_1", "summary_2"]
    assert not {link.target for link in session.sources("summary_2", depth=1)} & {
        link.target for link in session.sources("summary_1", depth=1)
    }
    assert store.verify().ok and session.check().ok


def test_none_ends_in_the_middle_of_work(store: Store) -> None:
    """While tools are called a segment goes on, however much they say; it ends with the answer."""
    session = store.session("s", segment_tokens_max=300, **BUDGET)
    session.user("Look at every stop.")
    for n in range(6):
        session.pack()
        call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
        session.tool(f"c{n}", LONG.format(n))
        assert summaries(session) == []
    session.run(lambda request: {"choices": [{"message": {"role": "assistant", "content": "All have bridges."}}]})
    assert summaries(session) == ["summary_1"]
    assert "All have bridges." in json.dumps(session.pack().request)  # the last turn stays
    assert session.check().ok


def test_without_the_setting_none_ends(store: Store) -> None:
    """As it was before there was the setting; told later, it counts what was said since the segment began."""
    session = store.session("s", **BUDGET)
    talk(session, 12)
    assert summaries(session) == []
    session.configure(segment_tokens_max=600)
    talk(session, 1)
    assert summaries(session) == ["summary_1"]
    with pytest.raises(InputError, match="segment_tokens_max"):
        session.configure(segment_tokens_max=-1)
