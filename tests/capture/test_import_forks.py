"""A transcript that forks at each step costs what its forks hold, not what their ancestors hold again each."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.test_follow import state
from vmstore.capture.conversation import ancestors
from vmstore.capture.conversation.load import load
from vmstore.store.store import memory_store
from vmstore.views.branch import Branch, _stretches

LANES, READS = "/vmstore/views/branch.py", "/vmstore/views/dispatch.py"
LEAVES = "/vmstore/cells/merkle.py"


def transcript(steps: int) -> str:
    """A Claude Code file in which each answer is followed by two prompts: forks as deep as it is long."""
    records = []
    before = None
    for n in range(steps):
        records.append(record(f"u{n}", before, "user", f"question {n}"))
        records.append(record(f"a{n}", f"u{n}", "assistant", f"answer {n}"))
        records.append(record(f"v{n}", f"a{n}", "user", f"another {n}"))
        before = f"a{n}"
    return "".join(json.dumps(record) + "\n" for record in records)


def record(name: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    """One line of such a file."""
    message: dict[str, Any] = {"role": role, "content": text}
    if role == "assistant":
        message |= {"id": f"msg_{name}", "content": [{"type": "text", "text": text}], "model": "c", "type": "message"}
        message["stop_reason"] = "end_turn"
    fields = {"type": role, "uuid": name, "parentUuid": parent, "sessionId": "s", "message": message}
    return {**fields, "timestamp": "2026-01-01T00:00:00.000Z", "isSidechain": False, "cwd": "/", "version": "1"}


def lines_run(folder: Path, steps: int, code: str) -> int:
    """How many lines of a module run while such a file is imported."""
    count = 0

    def tick(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if code not in frame.f_code.co_filename:
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
    """Twice as deep forks take far less than four times the looks at chains: each adds itself to its parent's."""
    assert lines_run(tmp_path, 60, LANES) < 3.35 * lines_run(tmp_path, 30, LANES)


def test_a_fork_reads_nothing_again_that_the_one_before_it_read(tmp_path: Path) -> None:
    """Twice as many forks walk through about twice as many commits: each goes on from where the last one began."""
    assert lines_run(tmp_path, 60, READS) < 2.4 * lines_run(tmp_path, 30, READS)


def test_a_fork_hashes_nothing_again_of_the_context_it_inherits(tmp_path: Path) -> None:
    """Twice as many forks hash somewhat over twice as many leaves: the tree of what they share is there already."""
    assert lines_run(tmp_path, 60, LEAVES) < 2.8 * lines_run(tmp_path, 30, LEAVES)


def tree(seed: int) -> str:
    """A Claude Code file whose prompts follow any answer before them: forks of forks, in no order."""
    chance, answers, lines = random.Random(seed), [None], []
    for n in range(60):
        before = chance.choice(answers[-12:])
        lines.append(record(f"u{n}", before, "user", f"question {n % 7}"))
        lines.append(record(f"a{n}", f"u{n}", "assistant", f"answer {n % 5}"))
        answers.append(f"a{n}")
    return "".join(json.dumps(line) + "\n" for line in lines)


def taken(file: Path) -> tuple[Any, ...]:
    """What an import leaves: its sessions, what they say, each mutation, and each conversation as the log has it."""
    with memory_store() as store:
        sessions = [session.session for session in store.import_file(file).sessions]
        messages = {name: store.session(name).wire.messages() for name in sessions}
        entries = [(entry.session, entry.position, entry.kind) for entry in store.tail()]
        engine = store._ns.engine
        keys = engine.projection.db.execute("SELECT session FROM sessions ORDER BY session")
        loaded = [state(load(engine, key)) for (key,) in keys]
        return len(sessions), messages, entries, loaded


@pytest.mark.parametrize("seed", range(4))
def test_forks_that_go_on_from_one_another_are_those_that_are_read_afresh(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever tree of forks a file holds, what is kept of their ancestors changes nothing of what is written."""
    file = tmp_path / "tree.jsonl"
    file.write_text(tree(seed))
    kept = taken(file)
    assert kept[0] > 12
    monkeypatch.setattr(ancestors, "MESSAGES_MAX", 0)
    assert taken(file) == kept


def test_the_way_to_a_fork_is_that_of_its_parent_and_its_own(tmp_path: Path) -> None:
    """Whichever fork is looked at after which, its lane is the one that its whole chain gives."""
    file = tmp_path / "tree.jsonl"
    file.write_text(tree(5))
    with memory_store() as store:
        store.import_file(file)
        keys = [key for (key,) in store.admin.views.execute("SELECT session FROM sessions ORDER BY session")]
        for order in (keys, keys[::-1], sorted(keys, key=lambda key: key * 7 % 11)):
            assert [Branch(store.admin.views, key).stretches for key in order] == [
                list(_stretches(store.admin.views, key)) for key in order
            ]
