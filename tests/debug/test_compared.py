"""What the debugger answers of two sessions, and how far it is with what may take long."""

from __future__ import annotations

from tests.debug.conftest import Serve
from tests.replay.lives import live
from vmstore.debug.whatif import WhatIfs
from vmstore.store.store import Store, memory_store


def asked(name: str, call: str, answer: str) -> list[dict[str, object]]:
    """Three messages: a question, a tool call with an id of its own, and what the tool answered."""
    made = {"id": call, "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
    return [
        {"role": "user", "content": name},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": call, "content": answer},
    ]


def test_equal_contents_have_equal_digests(small: Store, serve: Serve) -> None:
    """Digests are equal where contents are, ids of tool calls aside; they come in the order of the film's pages."""
    small.record("a", {"model": "m", "messages": asked("Where?", "call-1", "here")})
    small.record("b", {"model": "m", "messages": asked("Where?", "call-2", "there")})
    served = serve(small)
    first, second = (served.read("digests", session=name)["digests"] for name in "ab")
    assert len(first) == len(served.read("film", session="a")["pages"]["page"]) == 3
    assert [each_first == two for each_first, two in zip(first, second, strict=True)] == [True, True, False]


def test_a_session_is_listed_with_what_it_is_about(small: Store, serve: Serve) -> None:
    """The list of sessions has what the user said first, and the tokens of all calls."""
    small.record("a", {"model": "m", "messages": asked("Where to?", "call-1", "here")})
    (session,) = (session for session in serve(small).read("store")["sessions"] if session["session"] == "a")
    assert session["first"] == "Where to?"
    assert session["tokens"] == small.session("a").calls()[0].tokens


def test_a_sweep_says_how_many_are_done() -> None:
    """While what-ifs are decided, their number and how many are done can be asked; after that nothing is under way."""
    with memory_store() as store:
        live(store, turns=3)
        name = store.sessions()[0].session
        whatifs = WhatIfs(store)
        seen = []
        whatifs.sweep(name, ["lru", "recency"], [6000], lambda: seen.append(dict(whatifs.progress[name])))
        assert [record["done"] for record in seen] == [0, 1, 2, 3]
        assert {record["of"] for record in seen} == {3}
        assert whatifs.progress == {}
