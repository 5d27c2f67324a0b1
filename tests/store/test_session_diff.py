"""Two sessions side by side: aligned by what they say, however their pages are numbered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.refusals import refused
from vmstore.errors import UnknownError
from vmstore.store.store import Store, memory_store

SYSTEM = {"role": "system", "content": "You book trains."}


def run_of(store: Store, name: str, *other_text: str, call_id: str = "c1", to: str = "Kyoto") -> None:
    """A run of one task: a call of a tool, its result, then what is said."""
    call = {"id": call_id, "type": "function", "function": {"name": "find", "arguments": json.dumps({"to": to})}}
    messages: list[dict[str, Any]] = [SYSTEM, {"role": "user", "content": "A train to Kyoto, please."}]
    messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
    messages += [{"role": "tool", "tool_call_id": call_id, "content": f"trains to {to}: two"}]
    messages += [{"role": "user" if n % 2 else "assistant", "content": text} for n, text in enumerate(other_text)]
    store.record(name, {"model": "gpt-4o", "messages": [SYSTEM]}, None)  # so that pages are numbered otherwise
    store.record(name, {"model": "gpt-4o", "messages": messages}, None, cost=0.5)


@pytest.fixture
def store() -> Store:
    """Two runs that part after the tool's result, one of them with other ids."""
    made = memory_store()
    run_of(made, "a", "There are two.", "The first one.")
    made.record("b", {"model": "gpt-4o", "messages": [{"role": "system", "content": "Be brief."}]}, None)
    run_of(made, "b", "Two trains.", "The first one.", "Booked.", call_id="other")
    return made


def test_sessions_are_aligned_by_what_they_say(store: Store) -> None:
    """Equal pages stand together whatever their numbers and call ids are, different ones beside each other."""
    diff = store.session("a").debug.compare("b")
    by_change: dict[str, list[Any]] = {}
    for line in diff.lines:
        by_change.setdefault(line.change, []).append((line.text_before, line.text_after))
    assert ("There are two.", "Two trains.") in by_change["differs"]
    assert ("", "Booked.") in by_change["entered"] and ("", "Be brief.") in by_change["entered"]
    assert diff.same_pages == len(by_change["same"]) == 5, "the call is the same though its id is not"
    assert (diff.before.session, diff.before.cost, diff.after.session) == ("a", 0.5, "b")
    assert store.session("a").debug.compare("a").same_messages == store.session("a").info().messages
    with refused("no-session", UnknownError):
        store.session("a").debug.compare("c")


def test_vmql_tells_what_two_contexts_have_different(store: Store) -> None:
    """DIFF SESSION has no row for a page that both say, and one of each side where they differ."""
    rows = store.query("DIFF SESSION 'a' TO 'b'").to_dicts()
    assert [(row["change"], row["text"]) for row in rows] == [
        ("left", "There are two."),
        ("entered", "Two trains."),
        ("entered", "Booked."),
    ]
