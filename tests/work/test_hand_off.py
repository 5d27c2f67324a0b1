"""A memory handed from one model to another: each has its own window and levels, and the log says when."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, RefusedError
from vmstore.store.live.live_session import Live

LARGE, SMALL = "large-2", "small-1"


@pytest.fixture
def session() -> Live:
    """A session with a large model that said much."""
    store = vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))
    live = store.live_session("s", l0_tokens_max=8_000, model=LARGE, rules="short")
    for n in range(12):
        live.user(f"What of part {n}? " + "It is long. " * 40)
        live.pack()
        live.assistant(f"Part {n} is fine. " * 30)
    return live


def test_each_model_has_its_own_window_and_gets_it_back(session: Live) -> None:
    """What a model is given is kept for it, and holds again when the memory comes back to it."""
    work = session.work
    there = work.hand_off(SMALL, window_tokens_max=2_500, compress_level=3)
    assert (there.before, there.after, there.call) == (LARGE, SMALL, 12)
    assert there.settings == {"model": SMALL, "window_tokens_max": 2_500, "compress_level": 3}
    assert there.abi.max_context_tokens == 2_500
    assert session.pack().tokens <= 2_500
    back = work.hand_off(LARGE, window_tokens_max=None, compress_level=2)
    assert back.abi.max_context_tokens == 8_000 and session.pack().tokens > 2_500
    again = work.hand_off(SMALL)
    assert again.settings == there.settings and session.settings.window_tokens_max == 2_500
    assert session.debug.check().ok


def test_the_log_says_which_model_had_which_call(session: Live) -> None:
    """Calls are of the model that the memory was with, as of any moment."""
    session.work.hand_off(SMALL, window_tokens_max=2_500)
    session.user("And now?")
    session.pack()
    rows: list[Any] = list(session._ns.query("CALLS call, model WHERE call >= 12", session="s"))
    assert rows == [(12, LARGE), (13, SMALL)]
    assert session.kept(f"model:{SMALL}") == {"window_tokens_max": 2_500}


def test_what_is_no_hand_off_is_refused_and_changes_nothing(session: Live) -> None:
    """A name that is none, a setting of no model, a window that is none, a recorded session."""
    before = session.info().position
    for model, settings, code in (
        ("", {}, "not-a-name"),
        (SMALL, {"tags": "keyword"}, "no-setting"),
        (SMALL, {"window_tokens_max": -1}, "not-a-setting"),
    ):
        with refused(code, InputError):
            session.work.hand_off(model, **settings)
    assert session.info().position == before and session.settings.model == LARGE
    store = vmstore.memory_store()
    store.record("old", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    with refused("recorded-session", RefusedError):
        store.session("old").work.hand_off(SMALL)
