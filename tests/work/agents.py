"""Recorded sessions of an agent that calls tools, for the tests of its work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vmstore import Store

Done = tuple[str, dict[str, Any], str]
"""A call: the tool, its arguments, its answer."""


def messages_of(turns: Sequence[Sequence[Done]]) -> list[dict[str, Any]]:
    """The messages of a conversation: a question a turn, the calls it brings, and a final answer."""
    records: list[dict[str, Any]] = []
    for number, calls in enumerate(turns, 1):
        records.append({"role": "user", "content": f"Question {number}, please."})
        for at, (tool, arguments, answer) in enumerate(calls):
            name = f"c{number}_{at}"
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"id": name, "type": "function", "function": function}
            records.append({"role": "assistant", "content": f"I call {tool}.", "tool_calls": [call]})
            records.append({"role": "tool", "tool_call_id": name, "content": answer})
        records.append({"role": "assistant", "content": f"Answer {number}."})
    return records


def worked(store: Store, name: str, turns: Sequence[Sequence[Done]], user: str | None = None) -> None:
    """Records a session in which these calls were made."""
    store.session(name, create=True, user=user)
    store.record(name, {"model": "m", "messages": messages_of(turns)})


def failing(times: int, *, ok_between: bool = False) -> list[list[Done]]:
    """Turns in which one tool fails so often for the same reason, in other words each time."""
    turns: list[list[Done]] = []
    for number in range(times):
        booked: Done = (
            "book",
            {"flight": f"HAT{number}", "cabin": "economy"},
            f"Error: card card_{number}99 not found",
        )
        turns.append([("look", {"day": number}, "{}"), booked] if ok_between else [booked])
    return turns
