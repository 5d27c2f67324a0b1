"""The tools view: which pages call a tool and which answer, whatever way the log is folded."""

from __future__ import annotations

import json
from typing import Any

import apsw
import pytest

import vmstore
from vmstore.core.text.tool_call import arguments_text, call_in, path_in
from vmstore.core.text.tool_outcome import OutcomeRule, ToolOutcome, around, outcome_of
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.store import Store
from vmstore.views import projection
from vmstore.views.projection import Projection

ASK: dict[str, Any] = {"name": "look", "args": {"path": "a.py"}}
GEMINI = [
    {"role": "user", "parts": [{"text": "Where is it?"}]},
    {"role": "model", "parts": [{"functionCall": ASK}, {"functionCall": {"name": "find", "args": {}}}]},
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "find", "response": {"error": "nowhere"}}},
            {"functionResponse": {"name": "look", "response": {"output": "here"}}},
        ],
    },
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"path": "b.py"}}}]},
]


def rows(store: Store, table: str = "tools") -> list[tuple[Any, ...]]:
    """The rows of the view."""
    store.info()
    return store.admin.views.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize(
    ("value", "tool", "arguments"),
    [
        ({"type": "toolCall", "id": "t", "name": "read", "arguments": {"path": "a"}}, "read", '{"path":"a"}'),
        ({"type": "tool_use", "id": "t", "name": "Edit", "input": {}}, "Edit", "{}"),
        ({"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}, "f", '{"a":1}'),
        ({"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}, "f", '"{\\"a\\": "'),
        ({"functionCall": {"name": "f", "args": {"a": 1}}}, "f", '{"a":1}'),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            "local_shell",
            '{"command":["ls"]}',
        ),
        ({"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "***"}, "apply_patch", '"***"'),
        ({"name": "f", "arguments": "{}"}, "f", "{}"),
    ],
)
def test_a_call_is_read_in_every_form(value: Any, tool: str, arguments: str) -> None:
    """Whichever provider wrote a call, its tool and its arguments are found, the latter as JSON."""
    actual_tool = call_in(value)
    assert actual_tool is not None and (actual_tool.tool, actual_tool.arguments) == (tool, arguments)


def test_what_is_no_call_is_none() -> None:
    """JSON that names no tool is no call, and a file is named by a text alone."""
    assert call_in({"answer": 1}) is call_in([]) is call_in({"type": "image", "name": "x"}) is None
    assert path_in('{"path": 3, "file": "b"}') == "b" and path_in('"a"') is path_in("{") is path_in(None) is None
    assert arguments_text(None) is None


@pytest.mark.parametrize(
    ("envelope", "aside", "content", "value"),
    [
        (
            {"type": "tool_result", "is_error": True, "content": {"\0t": 0}},
            None,
            "x",
            (ToolOutcome.ERROR, OutcomeRule.IS_ERROR),
        ),
        ({"type": "tool_result", "content": {"\0t": 0}}, None, "Error: x", (ToolOutcome.OK, OutcomeRule.IS_ERROR)),
        (
            {"role": "toolResult", "isError": False, "content": [{"text": {"\0t": 0}}]},
            None,
            "",
            (ToolOutcome.OK, OutcomeRule.IS_ERROR),
        ),
        (
            {"functionResponse": {"response": {"error": {"\0t": 0}}}},
            None,
            "x",
            (ToolOutcome.ERROR, OutcomeRule.ERROR_FIELD),
        ),
        ({"\0t": 0}, None, '{"error": "no"}', (ToolOutcome.ERROR, OutcomeRule.ERROR_FIELD)),
        ({"\0t": 0}, None, '{"error": null}', (None, None)),
        ({"\0t": 0}, {"tool_returns": [{"status": "error"}]}, "x", (ToolOutcome.ERROR, OutcomeRule.STATUS)),
        ({"\0t": 0}, None, '{"status": "OK", "message": null, "time": "x"}', (ToolOutcome.OK, OutcomeRule.STATUS)),
        ({"\0t": 0}, None, '{"status": "OK"}', (None, None)),
        (
            {"type": "function_call_output", "status": "incomplete", "output": {"\0t": 0}},
            None,
            "x",
            (ToolOutcome.ERROR, OutcomeRule.STATUS),
        ),
        ({"\0t": 0}, None, '{"output": "x", "metadata": {"exit_code": 2}}', (ToolOutcome.ERROR, OutcomeRule.EXIT_CODE)),
        (
            {"\0t": 0},
            None,
            "Exit code: 0\nWall time: 1.5 seconds\nOutput:\nExit code: 1",
            (ToolOutcome.OK, OutcomeRule.EXIT_CODE),
        ),
        ({"\0t": 0}, None, "cat log\nExit code: 1", (None, None)),
        ({"\0t": 0}, None, "Error: no such user", (ToolOutcome.ERROR, OutcomeRule.ERROR_TEXT)),
        ({"\0t": 0}, None, "No Error: all is well", (None, None)),
    ],
)
def test_an_outcome_is_what_the_source_says(envelope: Any, aside: Any, content: str, value: Any) -> None:
    """Each rule speaks where its source does, in the order of the page, and nothing is said of anything else."""
    outcome = outcome_of(around(envelope).get(0, ()), aside, content.encode())
    assert (outcome.outcome, outcome.rule) == value


def test_a_source_says_how_long_it_took() -> None:
    """Codex writes the seconds of a command into its answer, as a field or as a line."""
    figures = ['{"output": "", "metadata": {"duration_seconds": 0.5}}', "Exit code: 0\nWall time: 2 seconds\nOutput:\n"]
    assert [outcome_of((), None, text.encode()).took_us for text in figures] == [500_000, 2_000_000]
    assert outcome_of((), None, b"Wall time: x seconds").took_us is None


def test_answers_without_ids_find_their_calls(tmp_path: Any) -> None:
    """An answer that names no id answers the first call of its tool in the last message that called."""
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GEMINI))
    with vmstore.memory_store() as store:
        store.import_file(path)
        results = list(store.query("TOOLS tool, path, status, outcome_by"))
    assert results == [
        ("look", "a.py", "ok", None),
        ("find", None, "failed", "error_field"),
        ("look", "b.py", "open", None),
    ]


def test_the_parts_of_an_answer_without_an_id_are_one() -> None:
    """A tool's message of two texts answers one call, and the next message the next one."""
    calls = [{"type": "function", "function": {"name": name, "arguments": "{}"}} for name in ("look", "find")]
    texts = [[{"type": "text", "text": f"{name} {part}"} for part in (1, 2)] for name in ("look", "find")]
    request = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "content": content} for content in texts),
        ],
    }
    with vmstore.memory_store() as store:
        store.record("s", request, {"choices": [{"message": {"role": "assistant", "content": "There."}}]})
        session = store.session("s")
        first, second = (page.page for page in session.pages() if page.role == "assistant" and page.modality != "text")
        answers = {page.page: session.content(page.page) for page in session.pages() if page.role == "tool"}
        called = [
            (session.content(f"p{page}").decode(), f"p{call}")
            for page, call in store._ns.views.execute("SELECT page, call FROM tools WHERE page <> call ORDER BY page")
        ]
    assert len(answers) == 4
    assert called == [("look 1", first), ("look 2", first), ("find 1", second), ("find 2", second)]


@pytest.mark.parametrize("batch", [1, 3])
def test_batches_change_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """The rows are the same however few commits are folded at once, when nothing is at hand between them."""
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GEMINI))
    with vmstore.memory_store() as store:
        store.import_file(path)
        whole = rows(store)
        monkeypatch.setattr(projection, "BATCH", batch)
        folded = Projection(store.admin.log, apsw.Connection(":memory:"))
        while folded.ordinal < store.admin.log.ordinal:
            folded.catch_up(upto=folded.ordinal + 1)
            folded.fold.forget()
        assert folded.db.execute("SELECT * FROM tools").fetchall() == whole != []


def test_what_was_erased_is_in_no_row() -> None:
    """After an erasure of a call neither its tool, its file nor its arguments are told, nor after a rebuild."""
    called = {"id": "c1", "type": "function", "function": {"name": "reveal", "arguments": '{"path": "secret.txt"}'}}
    asked = {"messages": [{"role": "user", "content": "Look."}]}
    with vmstore.memory_store() as store:
        store.record(
            "s", asked, {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [called]}}]}
        )
        result = {"role": "tool", "tool_call_id": "c1", "content": "Error: none"}
        fields = {"role": "assistant", "content": None, "tool_calls": [called]}
        store.record("s", {"messages": [*asked["messages"], fields, result]}, None)
        assert list(store.query("TOOLS tool, path, arguments, status")) == [
            ("reveal", "secret.txt", {"path": "secret.txt"}, "failed")
        ]
        (page,) = (row[0] for row in store.query("TOOLS page"))
        vmstore.erase(store, page=page, in_session="s")
        assert list(store.query("TOOLS tool, path, arguments, status")) == [(None, None, None, "failed")]
        assert not any("secret" in str(row) or "reveal" in str(row) for row in rows(store))
        store.admin.rebuild()
        assert list(store.query("TOOLS tool, path, arguments, status")) == [(None, None, None, "failed")]


def test_a_claim_that_a_tool_stated_names_its_tool() -> None:
    """What a tool answered for good is a claim, and is its call's answer like any other."""
    with vmstore.memory_store() as store:
        store.import_file(SHIPPED)
        rows = list(store.query("PAGES tool, line WHERE type = claim AND role = tool"))
    assert len(rows) == 60
    assert {tool for tool, _ in rows} == {"remember_decision"} and all(
        line.startswith("remember_decision ") for _, line in rows
    )


def test_each_call_that_ships_is_answered_once() -> None:
    """A call whose answer is a claim has one answer, and one row, as the file has one message for each."""
    messages = [json.loads(line) for line in SHIPPED.read_text(encoding="utf-8").splitlines()]
    asked = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    with vmstore.memory_store() as store:
        store.import_file(SHIPPED)
        assert list(store.query("TOOLS tool_call, results")) == [(call, 1) for call in asked]
        ((answered,),) = store.query("SESSIONS observations")
        ((tokens,),) = store.query("TOOLS sum(tokens)")
        assert answered == len(asked) and [(tokens,)] == list(store.query("PAGES sum(tokens) WHERE role = tool"))


def test_a_claim_of_others_answers_no_call(tmp_path: Any) -> None:
    """Only what a tool says is its answer: a claim beside leaves a call that waits, as one without an id does, open."""
    path = tmp_path / "c.jsonl"
    called = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    beside = {"role": "dataset", "content": "Kyoto is in Japan.", "vm": {"type": "claim"}}
    result = {"role": "function", "name": "look", "content": "Here it is."}
    lines = [{"role": "user", "content": "Where?"}, called, beside, result, {"role": "assistant", "content": "Here."}]
    path.write_text("\n".join(map(json.dumps, lines)))
    with vmstore.memory_store() as store:
        store.import_file(path)
        assert list(store.query("PAGES tool, type, text WHERE type = claim OR tool IS NOT NULL AND role = tool")) == [
            (None, "claim", "Kyoto is in Japan."),
            ("look", "artifact", "Here it is."),
        ]
        assert list(store.query("TOOLS tool, results")) == [("look", 1)]
