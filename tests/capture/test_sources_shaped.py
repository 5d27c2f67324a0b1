"""Files of Responses items, Anthropic messages and Gemini contents, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.words import answer, ask, lines, message, model_text, request, result, system, user
from vmstore.capture.importers.formats import read
from vmstore.capture.steps import (
    CallStep,
    ContinuationStep,
    MessageStep,
    MetadataStep,
    ParsedSource,
    Step,
    UnreadableStep,
)
from vmstore.core.draft import Draft
from vmstore.core.page import Slot
from vmstore.providers import give_message
from vmstore.store.store import memory_store

ITEMS = [user("look it up"), ask("c1"), result("c1", "found"), model_text("done"), user("thanks")]
SHAPES = ["responses", "anthropic", "gemini"]


def talk(shape: str) -> list[dict[str, Any]]:
    """The conversation as messages of a shape."""
    return [message(item, shape) for item in ITEMS]


def document(path: Path, value: Any) -> ParsedSource:
    """A value as one JSON document over several lines."""
    file = path / "talk"
    file.write_text(json.dumps(value, indent=1))
    return read(file)


def steps(source: ParsedSource, track: int = 0) -> list[Step]:
    return list(source.tracks[track].steps)


def drafts(step: Step) -> list[Draft]:
    return (
        [step.draft]
        if isinstance(step, MessageStep)
        else list(step.reply.drafts)
        if isinstance(step, CallStep | ContinuationStep)
        else []
    )


def messages_of(made: list[Step]) -> list[Any]:
    every = (draft for step in made for draft in drafts(step))
    return [give_message(draft.skeleton, [part.content for part in draft.parts]) for draft in every]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_list_lines_and_a_body_are_one_conversation(shape: str, tmp_path: Path) -> None:
    """However a file holds them the messages are equal, calls derived, asking for a tool is not the end."""
    listed = document(tmp_path, talk(shape))
    lined = read(lines(tmp_path / "lines", talk(shape)))
    body = document(tmp_path, {**request([system("Be brief."), *ITEMS], shape, ["look"])})
    for source in (listed, lined, body):
        assert (source.format, len(source.tracks), source.tracks[0].key) == (shape, 1, None)
        made = [step for step in steps(source) if not isinstance(step, MetadataStep)]
        spoken = [step for step in made if drafts(step)[0].slot is Slot.MESSAGES]
        assert messages_of(spoken) == talk(shape)
        assert [type(step) for step in spoken] == [MessageStep, CallStep, MessageStep, CallStep, MessageStep]
        answers = [step for step in spoken if isinstance(step, CallStep)]
        assert [step.reply.final for step in answers] == [False, True]
        assert all(step.request is None for step in answers)
        assert [step.draft.human for step in spoken if isinstance(step, MessageStep)] == [True, False, True]
    slots = [draft.slot for step in steps(body) for draft in drafts(step)]
    assert slots[:3] == [Slot.TOOLS, Slot.SYSTEM, Slot.MESSAGES]


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_recorded(shape: str, tmp_path: Path) -> None:
    """A line with request and response is a call whose request comes back equal in every field."""
    asked = [user("where?"), model_text("there"), user("and now?")]
    sent = [request(asked[:1], shape, ["look"], temperature=0.5), request(asked, shape, ["look"], temperature=0.5)]
    replies = [answer(model_text("there"), shape, tokens=9), answer(model_text("here"), shape, tokens=12)]
    records = [{"request": first, "response": other} for first, other in zip(sent, replies, strict=True)]
    for n, file in enumerate((lines(tmp_path / "pairs.jsonl", records), tmp_path / "pair.json")):
        if n:
            file.write_text(json.dumps(records[1], indent=1))
        with memory_store() as store:
            (taken,) = store.import_file(file).sessions
            assert (taken.format, taken.fidelity, taken.calls, taken.raw) == (shape, "recorded", 2 - n, 0)
            session = store.session(taken.session)
            assert [session.wire.request(call=call.call) for call in session.calls()] == sent[n:]
            assert session.calls()[-1].tokens_reported == 12


@pytest.mark.parametrize("shape", ["anthropic", "gemini"])
def test_an_answer_as_it_was_given_brings_its_usage(shape: str, tmp_path: Path) -> None:
    """Among messages a whole answer is a call with its usage and its stop."""
    asked = message(user("where?"), shape)
    content = read(lines(tmp_path / "t", [asked, answer(model_text("there"), shape, tokens=9)]))
    assert content.format == shape
    _, step = steps(content)
    assert isinstance(step, CallStep) and step.reply.usage.tokens_in == 9 and step.joins
    assert step.reply.stop in ("end_turn", "STOP")


def test_items_of_the_model_in_a_row_are_one_call(tmp_path: Path) -> None:
    """Reasoning, a call and words after each other answer one request; a tool's output ends them."""
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    hosted = {"type": "web_search_call", "id": "ws1", "status": "completed"}
    spoken = [message(item, "responses") for item in ITEMS]
    actual_steps = steps(read(lines(tmp_path / "t", [spoken[0], thought, hosted, *spoken[1:]])))
    assert [type(step) for step in actual_steps] == [
        MessageStep,
        CallStep,
        ContinuationStep,
        ContinuationStep,
        MessageStep,
        CallStep,
        MessageStep,
    ]
    assert [step.reply.final for step in actual_steps if isinstance(step, CallStep | ContinuationStep)] == [
        True,
        True,
        False,
        True,
    ]


def test_an_input_with_its_output(tmp_path: Path) -> None:
    """The input comes first, the output is one call with its usage, and it is derived."""
    body = {**request(ITEMS, "responses"), "instructions": "Be brief.", "temperature": 0.1}
    made = steps(
        document(tmp_path, {**body, **answer(model_text("bye"), "responses", tokens=40), "created_at": 1_700_000_000})
    )
    assert [type(step) for step in made] == [
        MetadataStep,
        MessageStep,
        MessageStep,
        CallStep,
        MessageStep,
        CallStep,
        MessageStep,
        CallStep,
    ]
    last = made[-1]
    assert isinstance(last, CallStep) and (last.reply.usage.tokens_in, last.reply.model) == (40, "m")
    assert (last.request, last.at) == (None, 1_700_000_000_000_000)
    assert isinstance(made[0], MetadataStep) and json.loads(made[0].aside)["temperature"] == 0.1
    assert messages_of(made[1:2]) == ["Be brief."]


def test_answers_that_name_each_other_are_one_session(tmp_path: Path) -> None:
    """A line goes on with the conversation whose last answer it names; others are a session each."""
    fields = {"id": "r1", **answer(model_text("one"), "responses"), "instructions": "Be brief."}
    two = {
        "id": "r2",
        "previous_response_id": "r1",
        **answer(model_text("two"), "responses"),
        "instructions": "Be brief.",
    }
    other = {"id": "r3", "previous_response_id": "r0", **answer(model_text("three"), "responses")}
    content = read(lines(tmp_path / "talk", [fields, two, other]))
    assert [(track.name, track.part) for track in content.tracks] == [("talk-1", "1"), ("talk-3", "3")]
    assert [type(step) for step in steps(content)] == [MetadataStep, MessageStep, CallStep, MetadataStep, CallStep]
    with memory_store() as store:
        store.import_file(tmp_path / "talk")
        context = store.session("talk-1").context(call=2)
        assert [context.contents()[page.page] for page in context.pages] == [b"Be brief.", b"one"]


def test_an_input_of_words_is_a_message(tmp_path: Path) -> None:
    """Responses and Gemini take a bare text as what the person said."""
    for body in ({"model": "m", "input": "where?"}, {"model": "m", "contents": "where?"}):
        *_, step = steps(document(tmp_path, body))
        assert isinstance(step, MessageStep) and step.draft.human and messages_of([step]) == ["where?"]


def test_the_key_vm_stands_beside_any_message(tmp_path: Path) -> None:
    """Names and sources may be said of every shape's messages; the model never saw them."""
    spoken = talk("gemini")
    spoken[0] = {**spoken[0], "vm": {"id": "m1", "at": "2026-01-01T00:00:00Z"}}
    spoken[3] = {**spoken[3], "vm": {"id": "m2", "type": "claim", "derives": ["m1"], "usage": {"tokens_in": 7}}}
    header = {"vm": {"session": "trip-1", "title": "A trip"}}
    with memory_store() as store:
        (taken,) = store.import_file(lines(tmp_path / "t.jsonl", [header, *spoken])).sessions
        assert (taken.session, taken.format, taken.raw) == ("trip-1", "gemini", 0)
        session = store.session("trip-1")
        assert [link.text for link in session.lineage.ancestors("m2")] == ["look it up"]
        assert session.wire.messages(call=1) == [talk("gemini")[0]]


@pytest.mark.parametrize(
    ("shape", "odd", "why"),
    [
        ("responses", {"id": "x"}, "not a message: no object with a type or a role"),
        ("anthropic", {"role": "user"}, "a message of role 'user' without content or tool calls"),
        ("gemini", {"role": "user"}, "not a message: no object with parts"),
    ],
)
def test_what_is_no_message_is_kept(shape: str, odd: Any, why: str, tmp_path: Path) -> None:
    """A record that is no message of the shape stays as it stands, with the reason."""
    actual_steps = steps(read(lines(tmp_path / "t", [*talk(shape), odd])))
    assert isinstance(actual_steps[-1], UnreadableStep) and actual_steps[-1].reason == why and len(actual_steps) == 6


@pytest.mark.parametrize(
    ("value", "format"),
    [
        ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}], "chat-completions"),
        ([{"role": "user", "content": [{"type": "image", "source": {}}]}], "anthropic"),
        ([{"parts": [{"text": "hi"}]}], "gemini"),
        ({"messages": [], "system": "x", "max_tokens": 4}, "anthropic"),
        ({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}]}, "chat-completions"),
        ({"id": "r", "object": "response", "output": []}, "responses"),
        ({"request": {"contents": "hi"}, "response": None}, "gemini"),
        ({"request": {"model": "m", "input": "hi"}, "response": None}, "responses"),
    ],
)
def test_a_shape_is_told_from_what_only_it_has(value: Any, format: str, tmp_path: Path) -> None:
    """Keys and parts that only one provider writes tell its files from the others'."""
    assert document(tmp_path, value).format == format


@pytest.mark.parametrize("value", [{"input": 3, "model": "m"}, {"contents": "a book"}, [{"type": "tool_call"}]])
def test_what_only_looks_alike_is_refused(value: Any, tmp_path: Path) -> None:
    """An object with a key of the same name is no conversation."""
    with pytest.raises(Exception, match="no known format recognised"):
        document(tmp_path, value)
