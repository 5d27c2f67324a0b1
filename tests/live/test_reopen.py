"""What a session is opened again with is logged as what it is, or refused; nothing is passed over in silence."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import ConflictError, InputError, RefusedError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
WRITE = {"type": "function", "function": {"name": "write", "parameters": {"type": "object", "properties": {}}}}
BUDGET: dict[str, Any] = {"l0_tokens_max": 8_000}


@pytest.fixture
def store() -> Store:
    """A store in which session `s` has said a word."""
    store = vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))
    session = store.live_session("s", system="You are brief.", tools=[READ], user="ann", **BUDGET)
    session.user("Hello.")
    session.pack()
    session.assistant("Hi.")
    return store


def sent(session: Live) -> tuple[str, list[str]]:
    """The instructions and the tools of the next call, as it is logged."""
    request = session.pack().request
    assert request == session.wire.request()
    names = [tool["function"]["name"] for tool in request["tools"]]
    return request["messages"][0]["content"].partition("\n")[0], names[: len(names) - 2]


def test_another_system_prompt_and_other_tools_are_sent(store: Store) -> None:
    """Both are versions of the pages that hold them: the next call has the new ones, an earlier one the old."""
    assert sent(store.live_session("s", **BUDGET)) == ("You are brief.", ["read"])
    before = store.session("s").calls()[-1].call
    again = store.live_session("s", system="You are thorough.", tools=[READ, WRITE], **BUDGET)
    assert sent(again) == ("You are thorough.", ["read", "write"])
    assert again.wire.request(call=before)["messages"][0]["content"].startswith("You are brief.")
    for page in again.pages(role="system"):
        if page.page in again.pack().pages:
            assert [version.version for version in again.lineage.versions(page.page)] == [1, 2]
    assert again.debug.check().ok and store.verify().ok


def test_what_is_the_same_is_not_logged(store: Store) -> None:
    """Opening a session as it is writes nothing."""
    position = store.session("s").info().position
    store.live_session("s", system="You are brief.", tools=[READ], user="ann", **BUDGET)
    assert store.session("s").info().position == position


def test_what_is_empty_is_taken_back(store: Store) -> None:
    """An empty text or list takes instructions and tools out of the next call; they come back when they are told."""
    session = store.live_session("s", system="", tools=[], **BUDGET)
    first, names = sent(session)
    assert (first, names) == ("<VM:RULES>", [])
    again = store.live_session("s", system="You are kind.", tools=[WRITE], **BUDGET)
    assert sent(again) == ("You are kind.", ["write"])
    assert store.verify().ok and again.debug.check().ok


def test_what_is_taken_back_is_pinned_no_more(store: Store) -> None:
    """A page of tools that somebody pinned by hand too leaves when the tools are taken back, and no pin is on it."""
    session = store.live_session("s", **BUDGET)
    pinned = session.look(lambda runtime: [page for page, item in runtime.state.here.items() if item.pinned])
    (tools,) = (f"p{page}" for page in pinned if session.content(f"p{page}").startswith(b"["))
    session.pin(tools)
    session = store.live_session("s", tools=[], **BUDGET)
    assert tools not in session.pack().pages
    assert not session.look(lambda runtime: runtime.state.pages[int(tools[1:])].pinned)
    assert session.debug.check().ok


def test_settings_and_model_are_logged(store: Store) -> None:
    """Another budget, model or policy holds from then on, and the log says when."""
    session = store.live_session("s", l0_tokens_max=6_000, model="m-2", policy="lru")
    assert (session.settings.l0_tokens_max, session.settings.model) == (6_000, "m-2")
    assert session.pack().request["model"] == "m-2"
    assert store.session("s").calls()[-1].model == "m-2"
    rows = store.query("MUTATIONS position WHERE kind = settings", session="s").to_dicts()
    assert len(rows) == 2


def test_what_cannot_be_changed_is_refused(store: Store) -> None:
    """Whose a session is stays, and instructions that do not fit are refused whole; neither writes anything."""
    position = store.session("s").info().position
    with refused("other-user", ConflictError, "'s'", "'ann'"):
        store.live_session("s", user="bob", **BUDGET)
    with refused("other-user", ConflictError):
        store.live_session("s", agent="planner", **BUDGET)
    with pytest.raises(RefusedError):
        store.live_session("s", system="word " * 40_000, **BUDGET)
    with refused("not-an-instruction", InputError):
        store.live_session("s", system=["no"], **BUDGET)
    assert store.session("s").info().position == position


def test_tools_of_a_run_replace_those_before(store: Store) -> None:
    """Functions given to a run are what its calls offer, and what later calls offer until others are given."""

    def look(place: str) -> str:
        """Looks at a place."""
        return place

    session = store.live_session("s", **BUDGET)
    fields = {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}
    session.run(lambda request: fields, tools={"look": look})
    assert sent(session)[1] == ["look"]
    session.run(lambda request: fields)
    assert sent(session)[1] == ["look"]
