"""Live sessions at hand: a handle keeps the last used, and reads another again when it acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from tests.live.small import FEW, PROSE
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.store.live import acts
from vmstore.store.store import Store
from vmstore.testing.live_laws import mutations_of
from vmstore.vm.compressors.callback import Outcome


def short(*_: Any) -> str:
    """A form of anything."""
    return "Clocks are late."


def played(compressor: Callable[..., str] = short) -> Store:
    """Sessions that take turns at acting, the first with a compressor."""
    store = vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(1))
    for name in "abcde":
        store.live_session(name, **FEW, **({"compressor": compressor} if name == "a" else {}))
    for n in range(6):
        for name in "abcde":
            session: Any = store.session(name)
            session.user(f"{n} {PROSE[: 900 * n + 1_500]}")
            session.pack()
            session.assistant("Yes.")
    return store


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_sessions_are_at_hand_than_may_be(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many live sessions act through one handle, so many are kept, and the log says what it would say."""
    whole = [mutations_of(commit) for commit in played().admin.log.tail(0, 10_000)]
    monkeypatch.setattr(acts, "RUNTIMES_MAX", most)
    store = played()
    assert len(store._ns.live) == most
    assert [mutations_of(commit) for commit in store.admin.log.tail(0, 10_000)] == whole
    assert store.verify().ok


def test_a_session_that_was_not_at_hand_keeps_its_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressor that was handed in is asked also after its session was read again."""
    monkeypatch.setattr(acts, "RUNTIMES_MAX", 1)
    asked = list[int]()

    def counted(*_: Any) -> str:
        asked.append(1)
        return short()

    store = played(counted)
    assert asked
    session: Any = store.session("a")
    assert Outcome.ANSWERED in session.runtime().shorter.outcomes
