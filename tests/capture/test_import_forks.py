"""A transcript that forks at each step costs what its forks hold, not what their ancestors hold again each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from vmstore.store.store import memory_store

CODE = "/vmstore/views/lane.py"


def transcript(steps: int) -> str:
    """A Claude Code file in which each answer is followed by two prompts: forks as deep as it is long."""
    records = []
    before = None
    for n in range(steps):
        records.append(record(f"u{n}", before, "user", f"question {n}"))
        records.append(record(f"a{n}", f"u{n}", "assistant", f"answer {n}"))
        records.append(record(f"v{n}", f"a{n}", "user", f"another {n}"))
        before = f"a{n}"
    return "".join(json.dumps(one) + "\n" for one in records)


def record(name: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    """One line of such a file."""
    message: dict[str, Any] = {"role": role, "content": text}
    if role == "assistant":
        message |= {"id": f"msg_{name}", "content": [{"type": "text", "text": text}], "model": "c", "type": "message"}
        message["stop_reason"] = "end_turn"
    told = {"type": role, "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message}
    return {**told, "timestamp": "2026-01-01T00:00:00.000Z", "isSidechain": False, "cwd": "/", "version": "1"}


def lines_run(folder: Path, steps: int) -> int:
    """How many lines the lanes of sessions run while such a file is imported."""
    count = 0

    def tick(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if CODE not in frame.f_code.co_filename:
            return None
        count += 1
        return tick

    file = folder / f"forks-{steps}.jsonl"
    file.write_text(transcript(steps))
    with memory_store() as store:
        sys.settrace(tick)
        try:
            store.import_file(file)
        finally:
            sys.settrace(None)
        assert len(store.sessions()) == steps
    return count


def test_a_fork_does_not_ask_each_ancestor_who_wrote_what(tmp_path: Path) -> None:
    """Twice as deep forks look at their chains about four times as often: each fork at its own, not at all of them."""
    assert lines_run(tmp_path, 60) < 4.6 * lines_run(tmp_path, 30)
