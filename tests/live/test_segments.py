"""Segments end by themselves, so that summaries are there without anybody asking for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.vm.kernel.settings import decoded

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
    session = store.live_session("s", segment_tokens_max=600, **BUDGET)
    talk(session, 5)
    assert summaries(session) == []
    talk(session, 1)
    assert summaries(session) == ["summary_1"]
    assert (
        len(session.lineage.descendants("p9")) >= 1
        and len(session.lineage.ancestors("summary_1", kinds=["derives"])) == 12
    )
    packed = session.pack()
    assert "summary_1" in packed.pages and len(packed.pages) < 6  # the last turn, and what it asked for
    talk(session, 6)
    assert summaries(session) == ["summary_1", "summary_2"]
    assert not {link.target for link in session.lineage.ancestors("summary_2", depth=1)} & {
        link.target for link in session.lineage.ancestors("summary_1", depth=1)
    }
    assert store.verify().ok and session.debug.check().ok


def test_none_ends_in_the_middle_of_work(store: Store) -> None:
    """While tools are called a segment goes on, however much they say; it ends with the answer."""
    session = store.live_session("s", segment_tokens_max=300, **BUDGET)
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
    assert session.debug.check().ok


def test_without_the_setting_none_ends(store: Store) -> None:
    """As it was before there was the setting; told later, it counts what was said since the segment began."""
    session = store.live_session("s", **BUDGET)
    talk(session, 12)
    assert summaries(session) == []
    session.configure(segment_tokens_max=600)
    talk(session, 1)
    assert summaries(session) == ["summary_1"]
    with refused("not-a-setting", InputError):
        session.configure(segment_tokens_max=-1)


def test_summaries_of_the_last_segments_are_wished_for(store: Store) -> None:
    """As many as the setting says, those out of the prompt; a log older than the setting had one."""
    wished: dict[int, list[str]] = {}
    for depth in (0, 1, 2):
        session = store.live_session(f"s{depth}", prefetch_depth=depth, **BUDGET)
        made = []
        for title in ("One", "Two", "Three"):
            talk(session, 2)
            made.append(session.segment(title, summary=f"{title}: nothing."))
        for page in made:
            session.evict(page)
        session.user("Hello?")
        wished[depth] = [
            page for page in made if any(event.event == "reference" for event in session.lineage.history(page))
        ]
        assert wished[depth] == made[len(made) - depth :]
        assert session.debug.check().ok
    assert decoded(None, b"{}").prefetch_depth == 1


def test_pressure_shows_pages_at_the_level_asked_for(store: Store) -> None:
    """What gives way is shown at `compress_level` first: reduced, an abstract or a line."""
    for level in (1, 2, 3):
        fields = {
            **BUDGET,
            "l0_tokens_max": 2_000,
            "recall_share": 0.0,
            "batches": False,
            "mark_soft": 0.7,
            "mark_hard": 0.85,
        }
        session = store.live_session(f"s{level}", compress_level=level, **fields)
        shown: set[int] = set()
        for n in range(14):
            session.user(f"What of stop {n}?")
            session.assistant(" ".join(f"At stop {n} house {m} is painted in colour {m * n}." for m in range(24)))
            shown |= {page.level for page in session.pages(tier="L0")}
            session.pack()
        levels = {row["level"] for row in store.query(EVICTED, session=session.name).to_dicts()}
        assert levels & {level} and not levels & ({1, 2, 3} - set(range(level, 4)))
        assert session.debug.check().ok
    with refused("not-a-setting", InputError):
        store.live_session("s1", compress_level=0, **BUDGET)


EVICTED = "MUTATIONS level WHERE kind = evict AND level IS NOT NULL"
