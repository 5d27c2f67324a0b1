"""Sessions in which nothing was said for long are closed when somebody sweeps, and say why."""

from __future__ import annotations

import pytest

from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError
from vmstore.store.store import memory_store

HOUR = 3_600_000_000


def test_what_was_silent_for_a_day_is_closed_and_nothing_else() -> None:
    """An idle session is completed with a reason, its open segment ends, and a message takes it up again."""
    clock = ManualClock(20_000 * 24 * HOUR, 1_000)
    store = memory_store(clock=clock, ids=SeededIds(1))
    old = store.live_session("old", l0_tokens_max=8_000, tags="keyword", compaction=True)
    old.user("What about the garden fence?")
    old.pack()
    old.assistant("It is fine.")
    clock.advance(25 * HOUR)
    store.record("new", {"messages": [{"role": "user", "content": "Hello"}]})
    assert store.admin.close_idle() == ["old"] and store.admin.close_idle() == []
    (row,) = store.query("SESSIONS status WHERE session = 'old'").to_dicts()
    assert row == {"status": "completed"} and [item.state for item in old.memory.segments.all()] == ["ended"]
    assert store.session("new").info().status == "active"
    old.user("And now?")
    assert old.info().status == "active" and old.debug.check().ok
    with pytest.raises(InputError):
        store.admin.close_idle(0)


def test_a_session_that_is_opened_again_after_its_idle_hours_has_ended() -> None:
    """With idle_hours the end is logged at the next opening, with its reason; a message takes the session up again."""
    clock = ManualClock(20_000 * 24 * HOUR, 0)
    store = memory_store(clock=clock)
    live = store.live_session("talk", l0_tokens_max=4_000, idle_hours=24)
    live.user("Plant beans by the wall.")
    clock.advance(23 * HOUR)
    assert store.live_session("talk").info().status == "active", "an hour is left"
    clock.advance(HOUR)
    ended = store.live_session("talk")
    assert ended.info().status == "completed"
    result = store.query("SESSIONS status, closed_because")
    assert list(result) == [("completed", "nothing was said for 24 hours")]
    ended.user("And roses.")
    assert list(store.query("SESSIONS status, closed_because")) == [("active", None)]
    assert store.live_session("talk", idle_hours=0).settings.idle_hours == 0
    clock.advance(1_000 * HOUR)
    assert store.live_session("talk").info().status == "active", "0 never ends it"
