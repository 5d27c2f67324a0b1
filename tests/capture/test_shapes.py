"""Requests of all four shapes are taken apart and come back equal in every field."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vmstore.core.draft import Draft
from vmstore.core.page import Slot
from vmstore.errors import InputError
from vmstore.providers import (
    Shape,
    give_message,
    give_request,
    shape_of,
    split_request,
    take_message,
    take_request,
)

# Any character, lone surrogates and NUL included, and keys that look like holes.
texts = st.text(st.characters(), max_size=12)
keys = st.sampled_from(["type", "text", "id", "name", "role", "content", "\0t", "\0j", "\0b", "\0l", "\0v"]) | texts
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
strange = st.dictionaries(keys, values, max_size=2)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these fields, mostly as they should be, and some that nobody knows."""
    known = st.fixed_dictionaries({}, optional={key: field | values for key, field in fields.items()})
    return st.builds(lambda a, b: {**b, **a}, known, strange)


def typed(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return objects(**fields).map(lambda value: {"type": kind, **value})


data = st.builds(
    lambda raw, encode: encode(raw).decode(),
    st.binary(max_size=9),
    st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
media = st.sampled_from(["image/png", "application/pdf", "text/plain", "audio/wav", "x/y", "", "é"])
urls = data.map(lambda d: f"data:image/png;base64,{d}") | st.just("https://example.org/a.png")
calls = objects(id=texts, type=st.just("function"), function=objects(name=texts, arguments=texts))
blocks = st.one_of(
    typed("text", text=texts, cache_control=strange),
    typed("output_text", text=texts),
    typed("thinking", thinking=texts, signature=texts),
    typed("image_url", image_url=objects(url=urls)),
    typed("input_image", image_url=urls),
    typed("input_audio", input_audio=objects(data=data, format=texts)),
    typed("file", file=objects(file_data=urls)),
    typed("image", source=objects(type=st.just("base64"), media_type=media, data=data)),
    typed("tool_use", id=texts, name=texts, input=strange),
    typed("tool_result", tool_use_id=texts, content=texts | st.lists(typed("text", text=texts), max_size=2)),
)
roles = st.sampled_from(["system", "user", "assistant", "tool", "function", "developer", "model", "narrator"])
turns = objects(
    role=roles,
    content=texts | st.lists(blocks | values, max_size=3),
    tool_calls=st.lists(calls, max_size=2),
    tool_call_id=texts,
    reasoning_content=texts,
)
items = st.one_of(
    turns,
    typed("function_call", call_id=texts, name=texts, arguments=texts),
    typed("function_call_output", call_id=texts, output=texts | st.lists(blocks, max_size=2)),
    typed("reasoning", summary=st.lists(typed("summary_text", text=texts), max_size=2)),
    typed("image_generation_call", result=data),
)
parts = st.one_of(
    objects(text=texts, thought=st.booleans()),
    objects(functionCall=objects(id=texts, name=texts, args=strange)),
    objects(function_response=objects(name=texts, response=st.fixed_dictionaries({"result": texts}) | strange)),
    objects(inlineData=objects(mimeType=media, data=data)),
)
contents = objects(role=roles, parts=st.lists(parts | values, max_size=3))
schemas = st.lists(objects(name=texts, input_schema=strange), max_size=2)


def requests(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> Any:
    whole = st.fixed_dictionaries(required, optional={**optional, "model": texts, "stream": values})
    return st.builds(lambda a, b: {**{k: v for k, v in b.items() if k not in SLOTS}, **a}, whole, strange)


SLOTS = frozenset({"messages", "input", "contents", "content"})
anything = st.one_of(
    requests({"messages": st.lists(turns | values, max_size=4)}, tools=schemas | values),
    requests({"input": texts | st.lists(items | values, max_size=4)}, instructions=texts, tools=schemas),
    requests(
        {"messages": st.lists(turns, max_size=3), "system": texts | st.lists(blocks, max_size=2)},
        tools=schemas,
    ),
    requests(
        {"contents": texts | st.lists(contents | values, max_size=3) | contents},
        systemInstruction=contents | texts,
        config=objects(system_instruction=contents | texts, tools=schemas),
    ),
)


def message(draft: Draft) -> Any:
    return give_message(draft.skeleton, [part.content for part in draft.parts])


def back(request: dict[str, Any], shape: Shape | None = None) -> dict[str, Any]:
    taken = take_request(request, shape)
    return give_request(Shape(taken.shape), taken.rest, [(draft.slot, message(draft)) for draft in taken.drafts])


def draft_of(value: Any, shape: Shape = Shape.CHAT, slot: Slot = Slot.MESSAGES) -> Draft:
    draft = take_message(shape, slot, value)
    assert message(draft) == value
    return draft


@given(anything)
@example({"messages": [{"role": "user", "content": "\ud83d\ude00"}], "model": "\ud83d\ude00"})
@example({"messages": [], "\0l": {"\0l": 2, "\0\0v": {"\0v": 1}}, "tools": [{"\0j": 0}]})
@example({"messages": [{"role": "user", "content": [{"\0t": 0}], "name": {"\0b": 0}}]})
@example({"messages": [{"role": "user", "content": [{"type": "tool_result", "content": {"type": []}}]}]})
@example({"contents": "", "config": {"\0v": 1, "tools": [1], "system_instruction": {"\0v": 1}}})
def test_every_request_comes_back_equal(request: dict[str, Any]) -> None:
    """Any request, forged holes and lone surrogates included, comes back equal and untouched."""
    before = copy.deepcopy(request)
    given_back = back(request)
    assert given_back == before
    assert json.dumps(given_back, sort_keys=True) == json.dumps(before, sort_keys=True)
    assert request == before


@given(anything, st.sampled_from(Shape))
def test_a_wrong_guess_still_comes_back_equal(request: dict[str, Any], shape: Shape) -> None:
    """A request read in another shape is refused as a whole or comes back equal."""
    try:
        split_request(request, shape)
    except InputError:
        return
    assert back(request, shape) == request


@given(turns | items | contents | values, st.sampled_from(Shape), st.sampled_from(Slot))
def test_every_message_has_a_part_and_every_part_its_hole(value: Any, shape: Shape, slot: Slot) -> None:
    """Any JSON value in any place yields at least one part and comes back equal."""
    draft = draft_of(value, shape, slot)
    assert draft.parts
    assert draft.slot is slot
    assert json.dumps(json.loads(draft.skeleton)).count("\\u0000") >= len(draft.parts)


@pytest.mark.parametrize(
    ("request_", "shape"),
    [
        ({"messages": []}, Shape.CHAT),
        ({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "model": "gpt-9"}, Shape.CHAT),
        (
            {"messages": [{"role": "system", "content": "s"}], "model": "claude-x", "max_tokens": 9},
            Shape.CHAT,
        ),
        ({"messages": [], "tools": [{"type": "function", "function": {}}], "model": "claude-x"}, Shape.CHAT),
        ({"messages": [], "system": "s"}, Shape.ANTHROPIC),
        ({"messages": [], "tools": [{"name": "t", "input_schema": {}}]}, Shape.ANTHROPIC),
        ({"messages": [], "model": "claude-x", "max_tokens": 9}, Shape.ANTHROPIC),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, Shape.ANTHROPIC),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, Shape.ANTHROPIC),
        ({"input": "hi"}, Shape.RESPONSES),
        ({"prompt": {"id": "p"}}, Shape.RESPONSES),
        ({"contents": "hi"}, Shape.GEMINI),
    ],
)
def test_the_shape_is_told_from_the_keys(request_: dict[str, Any], shape: Shape) -> None:
    """What a request holds tells its shape; in doubt it is a chat completion."""
    assert shape_of(request_) is shape
    assert back(request_) == request_


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"messages": "hi"}, "`messages` is of type str"),
        ({"messages": {"role": "user"}}, "`messages` is of type dict"),
        ({"input": 5}, "`input` is of type int"),
        ({"contents": None}, "`contents` is of type NoneType"),
        ({"model": "m"}, "no key that holds its messages"),
        ([], "a request is a list"),
        ({"messages": [], "user": {1: 2}}, "user has the key 1"),
        (
            {"messages": [{"content": [{"text": b"x"}]}]},
            r"messages message 0.content\[0\].text is a value of type bytes",
        ),
    ],
)
def test_what_is_no_request_is_refused(request_: Any, named: str) -> None:
    """A request without a list of messages, or not of JSON, is refused with its place and the reason."""
    with pytest.raises(InputError, match=named):
        take_request(request_)


def test_slots_leave_named_holes_in_the_rest() -> None:
    """Tools, system and messages each leave one hole, at whatever depth they stood."""
    rest = json.loads(split_request({"contents": [], "config": {"tools": [1], "system_instruction": "s"}}).rest)
    assert rest == {"contents": {"\0l": 2}, "config": {"tools": {"\0v": 0}, "system_instruction": {"\0v": 1}}}


def test_messages_come_in_the_order_of_the_prompt() -> None:
    """Tool schemas come first, then the system text, then the messages; the model is told."""
    split = split_request({"messages": [{"role": "user"}], "system": "s", "model": "m", "tools": [{"name": "t"}]})
    assert [slot for slot, _ in split.messages] == [Slot.TOOLS, Slot.SYSTEM, Slot.MESSAGES]
    assert split.model == "m"
