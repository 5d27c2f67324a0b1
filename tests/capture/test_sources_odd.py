"""Session files in which anything may be anything: each is read, in part or in whole, or refused with the reason."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capture.imports import FILES
from tests.capture.test_sources_otlp import FOUND, JAPAN, LOOK, WHERE, asked, export
from vmstore.capture.importers.formats import read
from vmstore.capture.steps import Step
from vmstore.errors import InputError
from vmstore.store.store import memory_store

ODD = st.one_of(
    st.sampled_from([None, True, 3, -1, 1e300, "", "x", [], {}, [None], {"type": 3}, [[]], "\ud800", "\0t"]),
    st.recursive(st.none() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2), max_leaves=3),
)
LOCOMO = {
    "sample_id": "conv-0",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ben", "dia_id": "D1:1", "text": "hi"}, {"speaker": "Ann", "text": "yo"}],
    },
    "observation": {"session_1_observation": {"Ann": [["said yo", "D1:1"]]}},
    "session_summary": {"session_1_summary": "They met."},
    "event_summary": {"events_session_1": {}},
    "qa": [{"question": "Who?", "answer": 3, "evidence": ["D1:1"], "category": 4}],
}
COMPACTED = {"message": "sum", "replacement_history": [{"type": "message", "role": "user", "content": "sum"}]}
TAKEN_AWAY = [
    {"type": "compacted", "payload": COMPACTED},
    {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    {"type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}},
]


def value_of(kind: str) -> tuple[Any, bool]:
    """A file of a kind as the value it holds, and whether that is a value a line."""
    if kind == "locomo":
        return [LOCOMO], False
    if kind == "otlp":
        return [export(asked(1, [WHERE], LOOK)), export(asked(2, [WHERE, LOOK, FOUND], JAPAN))], True
    made, spelled = FILES[kind]
    records = made(1) + (TAKEN_AWAY if kind == "codex" else [])
    text = spelled(records)
    lined = "lines" in kind or kind == "codex"
    return [json.loads(line) for line in text.splitlines()] if lined else json.loads(text), lined


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where each value stands within another."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """The value with something odd at a place."""
    if not path:
        return odd
    changed = copy.copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], odd)
    return changed


NEW = [
    "codex",
    "letta",
    "locomo",
    "otlp",
    "responses lines",
    "responses list",
    "anthropic lines",
    "gemini list",
    "gemini object",
]


@pytest.mark.parametrize("kind", NEW)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_anything_may_stand_anywhere(kind: str, tmp_path: Path, data: st.DataObject) -> None:
    """A value replaced by another makes at worst unread records; what is read goes into a store that verifies."""
    value, lined = value_of(kind)
    for _ in range(data.draw(st.integers(1, 3))):
        value = put(value, data.draw(st.sampled_from(places(value))), data.draw(ODD))
    file = tmp_path / "odd"
    file.write_text(
        "".join(json.dumps(line) + "\n" for line in value) if lined and isinstance(value, list) else json.dumps(value)
    )
    with contextlib.suppress(InputError):
        content = read(file)
        assert all(isinstance(step, Step) for track in content.tracks for step in track.steps)
        with memory_store() as store:
            done = store.import_file(file)
            assert store.verify().ok and store.import_file(file).new == 0
            assert [session.session for session in done.sessions]
