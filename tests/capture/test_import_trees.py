"""Trees of records: forks share their past, spawns point at the tool call that began them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.imports import all_seen, claude, claude_record, seen
from tests.capture.words import lines, texts
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

ASK_AGENT = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Count the files."}}


def forked() -> list[dict[str, Any]]:
    """Two turns, then another second turn off the first answer, then a third turn of the first line."""
    return [
        *claude(2),
        claude_record("user", "x1", "d0", "Forget that. What is in the box?"),
        claude_record("assistant", "x2", "x1", [{"type": "text", "text": "Nothing."}]),
        claude_record("user", "y1", "d1", "Thanks."),
        claude_record("assistant", "y2", "y1", [{"type": "text", "text": "Welcome."}]),
    ]


def spawned() -> list[dict[str, Any]]:
    """A line that starts an agent, the agent's own line, and its result."""
    side = {"isSidechain": True}
    return [
        claude_record("user", "a", None, "How many files?"),
        claude_record("assistant", "b", "a", [ASK_AGENT]),
        claude_record("user", "s1", None, "Count the files.", **side),
        claude_record("assistant", "s2", "s1", [{"type": "text", "text": "Sixty."}], **side),
        claude_record("user", "c", "b", [{"type": "tool_result", "tool_use_id": "t1", "content": "Sixty."}]),
        claude_record("assistant", "d", "c", [{"type": "text", "text": "There are sixty."}]),
    ]


def imported(store: Store, path: Path, records: list[dict[str, Any]]) -> list[Session]:
    """The sessions of a transcript, the main one first."""
    done = store.import_file(lines(path / "tree.jsonl", records))
    return [store.session(taken.session) for taken in done.sessions]


def test_a_fork_shares_the_past_and_no_more(tmp_path: Path) -> None:
    """Up to the common record parent and fork give the same pages and contexts; after it each its own."""
    with memory_store() as store:
        main, fork = imported(store, tmp_path, forked())
        info = fork.info()
        assert (main.name, fork.name, info.origin, info.parent) == ("s-1", "s-1-x1", "fork", "s-1")
        for call in (1, 2):
            assert main.context(call=call).pages == fork.context(call=call).pages
            assert main.wire.messages(call=call) == fork.wire.messages(call=call)
        assert main.pages(position=info.fork_position) == fork.pages(position=info.fork_position)
        assert [texts(session.context(call=3))[-1] for session in (main, fork)] == [
            "What is in module 1?",
            "Forget that. What is in the box?",
        ]
        assert (main.info().calls, info.calls, main.info().turns, info.turns) == (5, 3, 3, 2)
        assert "Forget that" not in json.dumps(main.wire.messages())
        assert store.verify().ok


def test_a_fork_is_what_its_line_alone_would_be(tmp_path: Path) -> None:
    """A fork shows what a file of its records alone does."""
    records = forked()
    alone = [*records[:4], *records[8:10]]
    with memory_store() as store, memory_store() as other:
        _, fork = imported(store, tmp_path, records)
        (single,) = imported(other, tmp_path, alone)
        assert seen(fork) == seen(single)


def test_forks_of_forks_reach_back_through_both(tmp_path: Path) -> None:
    """A fork off a fork sees the records of both before it, and those of neither after."""
    records = [*forked(), claude_record("user", "z1", "x2", "Really?"), claude_record("user", "z2", "x2", "Truly?")]
    records.append(claude_record("assistant", "z3", "z2", [{"type": "text", "text": "Truly."}]))
    with memory_store() as store:
        _, fork, inner = imported(store, tmp_path, records)
        assert inner.info().parent == fork.name
        before = inner.info().fork_position
        assert inner.pages(position=before) == fork.pages(position=before)
        assert [session.context(position=before).basis.call for session in (inner, fork)] == [3, 3]
        shown = texts(inner.context())
        assert shown[-3:] == ["Forget that. What is in the box?", "Nothing.", "Truly?"]
        assert "Really?" not in shown


def test_a_spawn_points_at_the_call_that_began_it(tmp_path: Path) -> None:
    """A sidechain is a session of its own, spawned by the page of the tool call, sharing no past."""
    with memory_store() as store:
        main, agent = imported(store, tmp_path, spawned())
        info = agent.info()
        assert (info.origin, info.parent, info.turns, info.calls) == ("spawn", "s-1", 1, 1)
        opened = next(entry for entry in store.tail() if entry.session == agent.name)
        page = main.page(int(opened.mutation["spawned_by"]))
        assert json.loads(main.content(page.page)) == ASK_AGENT
        assert opened.mutation["parent_position"] == page.position
        assert texts(agent.context()) == ["Count the files."]
        assert [page.role for page in agent.pages() if page.bytes] == ["user", "assistant"]
        assert texts(main.context())[0] == "How many files?" and len(main.wire.messages()) == 3


@pytest.mark.parametrize("make", [forked, spawned])
def test_a_tree_may_grow_record_by_record(make: Any, tmp_path: Path) -> None:
    """Imported after each record, a tree ends as the same sessions as imported at once."""
    records = make()
    with memory_store() as grown, memory_store() as whole:
        for end in range(1, len(records) + 1):
            imported(grown, tmp_path, records[:end])
        imported(whole, tmp_path, records)
        assert all_seen(grown) == all_seen(whole)
        infos = [[(i.session, i.origin, i.parent) for i in store.sessions()] for store in (grown, whole)]
        assert infos[0] == infos[1]


@pytest.mark.parametrize("make", [forked, spawned])
def test_a_tree_again_changes_nothing(make: Any, tmp_path: Path) -> None:
    """The same tree again writes nothing and names the same sessions, the main one first."""
    with memory_store() as store:
        first = [session.name for session in imported(store, tmp_path, make())]
        mutations = store.info().mutations
        assert [session.name for session in imported(store, tmp_path, make())] == first
        assert store.info().mutations == mutations


def test_a_changed_record_of_the_main_line_leaves_its_forks(tmp_path: Path) -> None:
    """A tree whose old record changed forks where it changed; what was imported before stays as it was."""
    records = forked()
    with memory_store() as store:
        before = {session.name: seen(session) for session in imported(store, tmp_path, records)}
        records[6] = claude_record("user", "c1", "b1", [{"type": "tool_result", "tool_use_id": "c1", "content": "no"}])
        imported(store, tmp_path, records)
        assert {name: seen(store.session(name)) for name in before} == before
        assert len(store.sessions()) == 3
        assert store.verify().ok


def test_a_tree_is_the_same_after_views_are_folded_anew(tmp_path: Path, store_path: Path) -> None:
    """Forks and spawns give the same answers from views rebuilt out of the log."""
    with memory_store() as store:
        imported(store, tmp_path, [*forked(), *spawned()])
        before = all_seen(store)
        store.admin.rebuild()
        assert all_seen(store) == before
