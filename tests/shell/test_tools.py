"""The command for tool calls."""

from __future__ import annotations

import json
from pathlib import Path

import vmstore
from tests.shell.conftest import Run


def test_tool_calls_are_listed_and_chosen(run: Run, store_path: Path) -> None:
    """Calls come with how they ended and what they were given, and are chosen by tool, file, status and moment."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps({"path": path})}}
        for n, (name, path) in enumerate([("read", "a.py"), ("write", "b.py")])
    ]
    asked = [{"role": "user", "content": "Look."}]
    asks = {"role": "assistant", "content": None, "tool_calls": calls}
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(["fine", "Error: no"])
    ]
    with vmstore.open(store_path) as store:
        store.record("s", {"messages": asked}, {"choices": [{"message": asks}]}, at_us=1_000_000)
        store.record("s", {"messages": [*asked, asks, *results]}, None, at_us=3_000_000)

    def listed(*more: str) -> list[str]:
        return [row["tool"] for row in json.loads(run("tools", store_path, *more, "--json").out)["tools"]]

    assert listed() == listed("--all") == listed("--slowest") == ["read", "write"]
    assert listed("--largest") == ["write", "read"]
    assert listed("--tool", "read") == listed("--path", "a.py") == listed("--limit", "1") == ["read"]
    assert listed("--status", "failed") == ["write"] and listed("--call", "1") == []
    shown = run("tools", store_path).out
    assert "b.py" in shown and "failed" in shown and "2.0" in shown
    assert "no tool was called, tool grep" in run("tools", store_path, "--tool", "grep").err
