"""Sources whose numbers are none, and lists of what stands on lines elsewhere."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.capture.words import answer, model_text, request, user
from vmstore.store.store import memory_store

TALK = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}]


def lines(*values: Any) -> str:
    """JSON lines, numbers that are none written as Python writes them."""
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e308, -1.0, True, 10**400, "soon", None, [1]])
def test_a_latency_that_is_no_number_of_milliseconds_is_left_out(number: Any, tmp_path: Path) -> None:
    """Whatever stands where a latency or a cost should, the import goes on, and no later question raises."""
    file = tmp_path / "talk.json"
    fields = {"latency_ms": number, "cost_usd": number, "usage": {"tokens_in": number}, "at": number}
    file.write_text(json.dumps([TALK[0], {**TALK[1], "vm": fields}]))
    with memory_store() as store:
        store.import_file(file)
        (call,) = store.session("talk").calls()
        assert (call.latency_ms, call.cost, call.tokens_reported) == (None, None, None)
        store.query("CALLS latency_ms, cost, tokens_reported, at").to_dicts()


def test_a_line_with_a_number_that_json_cannot_hold_is_kept_raw_and_counted(tmp_path: Path) -> None:
    """NaN and 1e400 stand in no message: the line is kept as it stands, with the reason."""
    file = tmp_path / "talk.jsonl"
    file.write_text(lines(*TALK) + '{"role": "user", "content": "a", "x": NaN}\n{"role": "user", "content": 1e400}\n')
    with memory_store() as store:
        report = store.import_file(file)
        assert [problem.line for problem in report.problems] == [3, 4]
        assert all("NaN" in problem.reason or "1e400" in problem.reason for problem in report.problems)
        assert len(store.session("talk").pages(type="raw")) == 2


def test_a_document_says_such_a_number_in_words(tmp_path: Path) -> None:
    """In one JSON document NaN and 1e400 become their texts, so every answer about it is JSON."""
    file = tmp_path / "talk.json"
    file.write_text(
        '[{"role": "user", "content": "a", "x": [NaN, -Infinity, 1e400]}, {"role": "assistant", "content": "b"}]'
    )
    with memory_store() as store:
        store.import_file(file)
        (message,) = store.session("talk").wire.messages(call=1)
        assert message["x"] == ["NaN", "-Infinity", "1e400"]


def test_a_list_of_a_line_format_is_read_as_that_format(data: Path, tmp_path: Path) -> None:
    """pi's records collected into a JSON list are the session their lines are: calls, messages and all."""
    source = data / "pi" / "before-compaction.jsonl"
    file = tmp_path / "listed.json"
    file.write_text(json.dumps([json.loads(line) for line in source.read_text().splitlines()][:200]))
    cut = tmp_path / "cut.jsonl"
    cut.write_text("\n".join(source.read_text().splitlines()[:200]) + "\n")
    with memory_store() as store, memory_store() as other:
        listed, whole = store.import_file(file).sessions[0], other.import_file(cut).sessions[0]
        assert listed.format == whole.format == "pi"
        counts = [
            (info.turns, info.calls, info.messages, info.pages) for info in (store.sessions()[0], other.sessions()[0])
        ]
        assert counts[0] == counts[1] and counts[0][1] > 10


def test_a_list_of_pairs_is_the_pairs(tmp_path: Path) -> None:
    """Requests and responses in one JSON list are recorded as those on lines are, and come back equal."""
    pairs = [
        {"request": request([user("q")]), "response": answer(model_text("a"))},
        {"request": request([user("q"), model_text("a"), user("r")]), "response": answer(model_text("b"))},
    ]
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps(pairs))
    with memory_store() as store:
        store.import_file(file)
        session = store.session("pairs")
        for number, pair in enumerate(pairs, 1):
            assert session.wire.request(call=number) == pair["request"]
            assert session.wire.response(call=number).body == pair["response"]


# ---- growth


def pair(talk: list[str], reply: str) -> dict[str, Any]:
    """A call whose request holds a talk, each second message the model's."""
    users = [user(text) if n % 2 == 0 else model_text(text) for n, text in enumerate(talk)]
    return {"request": request(users), "response": answer(model_text(reply))}


def test_a_regenerated_turn_is_the_same_imported_at_once_or_in_parts(tmp_path: Path) -> None:
    """Pairs whose next request is shorter come to the same turns, pages and messages wherever the file was cut."""
    pairs = [
        pair(["q1"], "a1"),
        pair(["q1", "a1", "q2"], "a2"),
        pair(["q1", "a1", "q2"], "a2 again"),
        pair(["q1"], "a1 again"),
        pair(["q1", "a1 again", "q3"], "a3"),
    ]
    assert len({_counts(pairs, cut, tmp_path) for cut in range(len(pairs) + 1)}) == 1


kept_then_said = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=2, max_size=6)


@settings(max_examples=40)
@given(kept_then_said, st.integers(1, 5))
@example([(0, "a"), (1, "b"), (0, "a")], 2)  # what the draws of one run did not meet
def test_growth_is_once_whatever_the_requests_keep(fields: list[tuple[int, str]], cut: int) -> None:
    """Requests that keep any part of the talk before come to one session, imported at once or in two parts."""
    talk: list[str] = []
    pairs = []
    for keep, text in fields:
        talk = [*talk[: keep * 2], f"ask {text}"]
        pairs.append(pair(talk, f"say {text}"))
        talk = [*talk, f"say {text}"]
    with tempfile.TemporaryDirectory() as folder:
        assert _counts(pairs, min(cut, len(pairs)), Path(folder)) == _counts(pairs, 0, Path(folder))


def _counts(pairs: list[dict[str, Any]], cut: int, folder: Path) -> tuple[int, ...]:
    """Turns, pages, messages, calls and position of pairs imported in two parts."""
    file = folder / "pairs.jsonl"
    with memory_store() as store:
        for part in (pairs[:cut], pairs):
            file.write_text(lines(*part))
            if part:
                store.import_file(file)
        (info,) = store.sessions()
        return info.turns, info.pages, info.messages, info.calls, info.position
