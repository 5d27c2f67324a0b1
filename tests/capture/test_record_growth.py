"""Recording costs what a request holds, not its square: work at twice the size is about twice the work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from vmstore.store.store import memory_store

CODE = "/vmstore/capture/"
Requests = Callable[[int], list[list[dict[str, Any]]]]


def alike(n: int) -> list[list[dict[str, Any]]]:
    """Messages that all say the same, then half of them, then all again."""
    same = [{"role": "user", "content": "go on"}] * n
    return [same, [{"role": "system", "content": "x"}, *same, {"role": "user", "content": "z"}], same[: n // 2], same]


def turned(n: int) -> list[list[dict[str, Any]]]:
    """A message of many parts, and the same turned round."""
    parts = [{"type": "text", "text": f"part {k}"} for k in range(n)]
    return [[{"role": "user", "content": parts}], [{"role": "user", "content": parts[::-1]}]]


def reversed_talk(n: int) -> list[list[dict[str, Any]]]:
    """Two words said again and again, and all of it turned round."""
    talk = [{"role": ("user", "assistant")[k % 2], "content": ("go on", "ok")[k % 2]} for k in range(n)]
    return [talk, talk[::-1]]


def changed_results(n: int) -> list[list[dict[str, Any]]]:
    """Tool calls with their results, then every result changed and every second call gone."""
    talk: list[dict[str, Any]] = []
    for k in range(n):
        call = {"id": f"c{k}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        talk.append({"role": "assistant", "content": None, "tool_calls": [call]})
        talk.append({"role": "tool", "tool_call_id": f"c{k}", "content": f"result {k}"})
    changed = [{**record, "content": record["content"] and record["content"] + " changed"} for record in talk]
    return [talk, [item for k, item in enumerate(changed) if k % 4 != 0]]


def lines_run(requests: list[list[dict[str, Any]]]) -> int:
    """How many lines of capture's code recording takes."""
    count = 0

    def tick(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if CODE not in frame.f_code.co_filename:
            return None
        count += 1
        return tick

    with memory_store() as store:
        store.record("warm", {"model": "m", "messages": requests[0][:2]})
        sys.settrace(tick)
        try:
            for messages in requests:
                store.record("s", {"model": "m", "messages": messages})
        finally:
            sys.settrace(None)
    return count


@pytest.mark.parametrize("make", [alike, turned, reversed_talk, changed_results])
def test_twice_the_messages_take_about_twice_the_work(make: Requests) -> None:
    """Alike messages, turned parts and changed results are matched without looking at all others for each."""
    small, large = lines_run(make(150)), lines_run(make(600))
    assert large < 6 * small
