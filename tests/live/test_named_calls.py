"""Calls that agents write in forms of their own are sent as calls of their tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vmstore
from tests.capture.imports import pi


@pytest.mark.parametrize(("behaviour", "tool"), [(2, "bash"), (1, "tool")])
def test_a_call_of_an_agents_own_form_is_sent_as_one_of_its_tool(tmp_path: Path, behaviour: int, tool: str) -> None:
    """The request names the tool and gives it its arguments; a log without the number is written as it was sent."""
    file = tmp_path / "pi.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in pi(2)), "utf-8")
    with vmstore.memory_store() as store:
        (source,) = (session.session for session in store.import_file(file).sessions)
        live = store.admin.redrive(source, "own", l0_tokens_max=8_000, behaviour=behaviour)
        messages = live.wire.request()["messages"]
        asked = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
        documents = [json.loads(record["arguments"]) for record in asked]
        assert {record["name"] for record in asked} == {tool}
        assert [document if behaviour > 1 else document["arguments"] for document in documents] == [
            {"command": "ls 0"},
            {"command": "ls 1"},
        ]
