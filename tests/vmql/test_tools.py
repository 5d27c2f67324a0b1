"""TOOLS is what the files of real sessions say of their tool calls, at any moment and in every fork."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vmstore
from vmstore.store.store import Store

Row = dict[str, Any]


@pytest.fixture(scope="module")
def pi(data: Path) -> Iterator[tuple[Store, list[Row]]]:
    """A session of pi's in a store, and the records of its file."""
    file = data / "pi" / "before-compaction.jsonl"
    with vmstore.memory_store() as store:
        store.import_file(file, session="pi")
        yield store, [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def blocks(records: list[Row]) -> Iterator[tuple[Row, Row]]:
    """The calls of a file of pi's that ran, each with the record that answers it, or none."""
    messages = [record for record in records if record.get("type") == "message"]
    answers = {record["message"]["toolCallId"]: record for record in messages if "toolCallId" in record["message"]}
    for record in messages:
        message = record["message"]
        if message["role"] == "assistant" and message.get("stopReason") not in ("aborted", "error"):
            for block in message["content"]:
                if block["type"] == "toolCall":
                    yield block, answers.get(block["id"], {})


def test_every_call_of_a_real_session_has_a_row(pi: tuple[Store, list[Row]]) -> None:
    """Tool, arguments, file, id, status and outcome of each call are those of the file, in its order."""
    store, records = pi
    wanted = []
    for block, answer in blocks(records):
        failed = answer.get("message", {}).get("isError")
        status = "open" if not answer else "failed" if failed else "ok"
        outcome = None if not answer else "error" if failed else "ok"
        arguments = block["arguments"]
        wanted.append((block["name"], arguments, arguments.get("path"), block["id"], status, outcome))
    assert list(store.query("TOOLS tool, arguments, path, tool_call, status, outcome")) == wanted != []
    assert {rule for (rule,) in store.query("TOOLS outcome_by WHERE outcome IS NOT NULL")} == {"is_error"}


def test_pages_and_calls_have_the_tool(pi: tuple[Store, list[Row]]) -> None:
    """A call's page and the pages that answer it have its tool and id, and the sums of both sides agree."""
    store, records = pi
    results = Counter(record["message"]["toolName"] for record in records if "toolCallId" in record.get("message", {}))
    assert dict(store.query("PAGES count(*) BY tool WHERE role = tool")) == results
    pages = {row["page"]: row for row in store.query("PAGES page, tool, tool_call, tokens, outcome").to_dicts()}
    for row in store.query("TOOLS page, result, tool, tool_call, tokens, outcome WHERE result IS NOT NULL").to_dicts():
        call, answer = pages[row["page"]], pages[row["result"]]
        assert call["tool"] == answer["tool"] == row["tool"] and call["tool_call"] == answer["tool_call"]
        assert (answer["tokens"], answer["outcome"]) == (row["tokens"], row["outcome"]) and call["outcome"] is None


def test_calls_are_as_of_the_moment(pi: tuple[Store, list[Row]]) -> None:
    """At every moment a call is open until its answer is there, and what comes later is not told."""
    store, _ = pi
    pages = store.query("PAGES position, role, tool_call WHERE tool_call IS NOT NULL").to_dicts()
    last = store.session("pi").info().position
    for position in range(1, last, last // 12):
        seen = [page for page in pages if page["position"] <= position]
        answered = {page["tool_call"] for page in seen if page["role"] == "tool"}
        wanted = [
            (page["tool_call"], page["tool_call"] not in answered) for page in seen if page["role"] == "assistant"
        ]
        rows = store.query(f"TOOLS tool_call, status AS OF POSITION {position}").to_dicts()
        assert [(row["tool_call"], row["status"] == "open") for row in rows] == wanted


def test_the_calls_around_a_tool_are_known(pi: tuple[Store, list[Row]]) -> None:
    """The call that asked had no result yet, and the first that saw it is the first whose context holds it."""
    store, _ = pi
    session = store.session("pi")
    rows = store.query("TOOLS call, seen_call, result WHERE result IS NOT NULL").to_dicts()
    assert all(row["seen_call"] is None or row["call"] < row["seen_call"] for row in rows)
    for row in rows[:: len(rows) // 8]:
        value = [row["result"] in {page.page for page in session.context(call=at).pages} for at in _around(row)]
        assert value == [False, True]


def _around(row: Row) -> tuple[int, int]:
    return row["seen_call"] - 1, row["seen_call"]


def test_a_fork_answers_the_calls_it_inherits() -> None:
    """A call that was open where a fork left has in each session the answer that came there, and none before it."""
    called = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [called]}
    asked = [{"role": "user", "content": "Look."}]
    with vmstore.memory_store() as store:
        store.record("s", {"messages": asked}, {"choices": [{"message": asks}]})
        fork = store.session("s").fork("f")
        assert list(store.query("TOOLS tool, status, result IN SESSION f")) == [("look", "open", None)]
        for name, text in (("f", "Error: nothing"), ("s", "a.py")):
            result = {"role": "tool", "tool_call_id": "c1", "content": text}
            store.record(name, {"messages": [*asked, asks, result]}, None)
        results = [list(store.query(f"TOOLS status, result, call, seen_call IN SESSION {name}")) for name in "sf"]
        assert [[row[0::2] for row in rows] for rows in results] == [[("ok", 1)], [("failed", 1)]]
        assert [rows[0][3] for rows in results] == [2, 2]
        pages = [store.session(name).page(rows[0][1]).tokens for name, rows in zip("sf", results, strict=True)]
        assert pages == [store.query(f"TOOLS tokens IN SESSION {name}").to_dicts()[0]["tokens"] for name in "sf"]
        before = f"TOOLS status IN SESSION f AS OF POSITION {fork.info().fork_position}"
        assert list(store.query(before)) == [("open",)]
        assert list(store.query("TOOLS session, status ACROSS SESSIONS")) == [("s", "ok")]


def test_verdicts_of_sources_are_outcomes_of_sessions(data: Path, tmp_path: Path) -> None:
    """Rewards of tau-bench and exits of SWE-agent are what their files say, by session and in sums."""
    file = data / "tau-bench" / "airline_even_tasks.json"
    runs = json.loads(file.read_text("utf-8"))[:12]
    few = tmp_path / "runs.json"
    few.write_text(json.dumps(runs))
    with vmstore.memory_store() as store:
        store.import_file(few)
        counts = {
            outcome: (number, mean)
            for outcome, number, mean in store.query("SESSIONS count(*), avg(reward) BY outcome")
        }
        wanted = Counter("passed" if run["reward"] == 1 else "failed" for run in runs)
        assert counts == {word: (wanted[word], 1.0 if word == "passed" else 0.0) for word in wanted}
        infos = {info.session: info for info in store.sessions()}
        for run in runs:
            info = infos[f"runs-task{run['task_id']}-trial{run['trial']}"]
            assert info.reward == run["reward"] and info.outcome == ("passed" if run["reward"] == 1 else "failed")
        other_counts = Counter(
            (call["function"]["name"]) for run in runs for m in run["traj"] for call in m.get("tool_calls") or ()
        )
        assert dict(store.query("TOOLS count(*) BY tool ACROSS SESSIONS")) == other_counts
        errors = sum(str(m["content"]).startswith("Error:") for run in runs for m in run["traj"] if m["role"] == "tool")
        assert list(store.query("TOOLS count(*) ACROSS SESSIONS WHERE outcome_by = error_text")) == [(errors,)]
        assert store.query("SESSIONS outcome AS OF TIME '1990-01-01'").to_dicts() == []
        before = store.query(f"SESSIONS outcome, reward IN SESSION '{info.session}' AS OF CALL 1").to_dicts()
        assert before == [{"outcome": None, "reward": None}], "a verdict is known from where it is logged on"


def test_an_exit_is_the_outcome_of_a_run(tmp_path: Path) -> None:
    """A SWE-agent run has its exit status, its actions are calls of the first word, timed by the file."""
    steps = [
        {"action": "ls -F", "response": "Let me look.", "observation": "a.py", "execution_time": 0.25},
        {"action": "submit", "response": "Done.", "observation": None},
    ]
    file = tmp_path / "run.traj"
    messages = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Let me look."}]
    steps[0]["messages"] = [*messages, {"role": "user", "content": "a.py"}]
    file.write_text(json.dumps({"trajectory": steps, "info": {"exit_status": "exit_cost"}}))
    with vmstore.memory_store() as store:
        store.import_file(file)
        assert [(info.outcome, info.reward) for info in store.sessions()] == [("exit_cost", None)]
        results = list(store.query("TOOLS tool, arguments, duration_ms, status"))
        assert results == [("ls", "ls -F", 250.0, "ok"), ("submit", "submit", None, "open")]
