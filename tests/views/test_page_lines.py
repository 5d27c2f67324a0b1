"""Every page of a session of any format is a line that people read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import vmstore
from vmstore.core.asof import Call
from vmstore.views.branch import Branch
from vmstore.views.reads.page_lines import page_lines

# What the recordings have that is no text: whole lines of their files that no reader knows.
JSON = re.compile(r'(?:^|→ )\s*(?:\{\s*"|\[\s*\{\s*")|"(?:id|call_id|tool_call_id|toolCallId)":')
FORMATS = ("pi", "claude-code", "swe-agent", "letta-af", "tau-bench")
FILES_MAX = 4  # the others are alike


@pytest.mark.parametrize("format", FORMATS)
def test_no_row_is_raw_json(format: str, data: Path, store_path: Path, tmp_path: Path) -> None:
    """In the context of each recording no row has to be read as JSON, and results name their tool."""
    with vmstore.open(store_path) as store:
        for file in sorted((data / format).iterdir())[:FILES_MAX]:
            if file.suffix == ".json":
                few = tmp_path / file.name
                few.write_text(json.dumps(json.loads(file.read_text())[:3]))
                store.import_file(few)
            elif file.suffix in (".jsonl", ".traj", ".af"):
                store.import_file(file)
        for info in store.sessions():
            session = store.session(info.session)
            if not info.calls:
                continue
            context = session.context()
            lines = context.lines()
            rows = [(page, lines.get(page.page, "")) for page in context.pages]
            raw = [line for _, line in rows if JSON.search(line.partition("(")[0] if line[:2] == "→ " else line)]
            assert rows and not raw
            artifacts = [line for page, line in rows if page.role == "tool"]
            assert all(re.match(r"\S+ (?:.*→|→)", line) for line in artifacts)


def test_the_same_line_in_each_list(data: Path, store_path: Path) -> None:
    """A context, a difference and a walk show a page by one and the same line."""
    with vmstore.open(store_path) as store:
        name = store.import_file(data / "pi" / "before-compaction.jsonl").sessions[0].session
        session = store.session(name)
        lines = session.context(call=9).lines()
        entered = {change.page: change.text for change in session.diff(Call(1), Call(9)).changes}
        assert len(entered) > 5 and all(lines[page] == text for page, text in entered.items() if page in lines)
        assert any(text.startswith("→ ") for text in entered.values())


def test_a_fork_finds_what_its_parent_asked(store_path: Path) -> None:
    """A result that a fork took in names the tool that was asked before the fork."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.md"}'}}
    asked = [{"role": "user", "content": "Read it."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    with vmstore.open(store_path) as store:
        reply = {"choices": [{"message": asked[1], "finish_reason": "tool_calls"}]}
        store.record("s", {"model": "m", "messages": asked[:1]}, reply)
        fork = store.session("s").fork("f")
        result = {"role": "tool", "tool_call_id": "c1", "content": "port = 1"}
        fork.record({"model": "m", "messages": [*asked, result]}, None)
        assert [*fork.context().lines().values()][-1] == "read a.md → port = 1"
        ns = store._ns
        with ns.asking():
            lane = Branch(ns.views, ns.key("f") or 0)
            assert "read a.md → port = 1" in page_lines(lane, ns.log, fork.context().page_ids).values()
