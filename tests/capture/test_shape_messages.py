"""Messages of all four shapes: which parts they have, and what each part is."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import vmstore
from vmstore.core.draft import Draft
from vmstore.core.mutation import Update
from vmstore.core.page import Mime, Modality, PageType, Role, Slot
from vmstore.providers import Shape, give_message, take_message

PIXEL = base64.b64encode(b"\x89PNG not really").decode()


def draft_of(value: Any, shape: Shape = Shape.CHAT, slot: Slot = Slot.MESSAGES) -> Draft:
    draft = take_message(shape, slot, value)
    assert give_message(draft.skeleton, [part.content for part in draft.parts]) == value
    return draft


def test_tool_schemas_are_one_procedure() -> None:
    """The schemas of a request are one structured page of a pseudo message."""
    draft = draft_of([{"name": "t"}], slot=Slot.TOOLS)
    (part,) = draft.parts
    assert (part.type, part.modality, part.mime) == (PageType.PROCEDURE, Modality.STRUCTURED, Mime.JSON)
    assert draft.role is Role.SYSTEM


def test_moving_a_cache_mark_changes_no_content() -> None:
    """What stands beside a text stays in the skeleton, so the page is the same with and without it."""
    bare = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
    }
    assert draft_of(bare).parts == draft_of(marked).parts
    assert draft_of(bare).skeleton != draft_of(marked).skeleton


def test_a_chat_message_reads_thoughts_words_calls() -> None:
    """Parts are numbered as they are read: thoughts, then content, then the tools asked for."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    draft = draft_of({"role": "assistant", "content": "so", "tool_calls": [call], "reasoning_content": "hm"})
    assert [part.content for part in draft.parts[:2]] == [b"hm", b"so"]
    asked = draft.parts[2]
    assert (asked.is_call, asked.call_id, asked.tool) == (True, "c1", "look")
    assert json.loads(asked.content) == call
    assert (draft.role, draft.human) == (Role.ASSISTANT, False)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"role": "tool", "tool_call_id": "c1", "content": "42"}, Shape.CHAT),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]},
            Shape.ANTHROPIC,
        ),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]}],
            },
            Shape.ANTHROPIC,
        ),
        ({"type": "function_call_output", "call_id": "c1", "output": "42"}, Shape.RESPONSES),
        (
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "t", "response": {"result": "42"}}}],
            },
            Shape.GEMINI,
        ),
    ],
)
def test_a_tool_result_is_its_text_and_no_human_word(value: Any, shape: Shape) -> None:
    """In every shape a result is an artifact that answers its call, and opens no turn."""
    draft = draft_of(value, shape)
    (part,) = draft.parts
    assert (part.content, part.is_result, part.call_id, part.type) == (b"42", True, "c1", PageType.ARTIFACT)
    assert not draft.human


def test_a_result_of_several_blocks_is_one_structured_page() -> None:
    """A result that is no single text stays one JSON part, its envelope outside."""
    blocks_ = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    draft = draft_of({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": blocks_}]})
    (part,) = draft.parts
    assert json.loads(part.content) == blocks_
    assert (part.mime, part.is_result) == (Mime.JSON, True)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}, Shape.RESPONSES),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            Shape.CHAT,
        ),
        (
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]},
            Shape.GEMINI,
        ),
    ],
)
def test_a_tool_call_is_one_structured_page(value: Any, shape: Shape) -> None:
    """In every shape a call is the assistant's and names its id and tool."""
    draft = draft_of(value, shape)
    (part,) = draft.parts
    assert (part.is_call, part.call_id, part.tool, part.mime) == (True, "c1", "look", Mime.JSON)
    assert draft.role is Role.ASSISTANT


@pytest.mark.parametrize(
    ("part", "shape"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            Shape.ANTHROPIC,
        ),
        ({"inlineData": {"mimeType": "image/png", "data": PIXEL}}, Shape.GEMINI),
    ],
)
def test_base64_is_kept_as_the_bytes_it_stands_for(part: Any, shape: Shape) -> None:
    """An image in base64 becomes a page of its decoded bytes."""
    (page,) = draft_of({"role": "user", "content": [part], "parts": [part]}, shape).parts
    assert (page.content, page.modality, page.mime) == (b"\x89PNG not really", Modality.IMAGE, Mime.PNG)


def test_base64_of_urls_is_kept_as_its_bytes_too() -> None:
    """A picture in the alphabet of URLs, as google-genai sends it, is a page of its bytes and comes back as it was."""
    picture = bytes(range(256))
    data = base64.urlsafe_b64encode(picture).decode()
    assert "-" in data and "_" in data
    value = {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}
    with vmstore.memory_store() as store:
        store.record("s", {"model": "m", "contents": [value]})
        session = store.session("s")
        assert session.wire.request(call=1) == {"model": "m", "contents": [value]}
        (page,) = session.pages()
        assert (page.modality, session.content(page.page)) == ("image", picture)
        with session.batch() as batch:  # a hole of its kind may be filled with any bytes
            batch.add(Update(int(page.page[1:]), 2, batch.cell(b"\xfb\xff"), 2, 1))


def test_an_image_by_data_url_or_link_is_an_image() -> None:
    """A data URL is kept as its text, a link as its block; both are images."""
    url = f"data:image/jpeg;base64,{PIXEL}"
    links = [{"type": "image_url", "image_url": {"url": u}} for u in (url, "https://example.org/a.png")]
    inline, linked = draft_of({"role": "user", "content": links}).parts
    assert (inline.content, inline.modality, inline.mime) == (url.encode(), Modality.IMAGE, Mime.JPEG)
    assert (linked.modality, linked.mime) == (Modality.IMAGE, Mime.JSON)


@pytest.mark.parametrize("bad", ["not base64!", PIXEL + "\n", "QQ=", "-_-", "-_+/"])
def test_base64_that_would_not_come_back_stays_text(bad: str) -> None:
    """Data that does not encode back to the very same text is kept as JSON."""
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": bad}}
    (page,) = draft_of({"role": "user", "content": [block]}).parts
    assert page.mime is Mime.JSON


@pytest.mark.parametrize(
    "value",
    [{"role": "user", "content": None}, {"role": "user", "content": []}, {"role": "user"}, "hi", 5, None, []],
)
def test_a_message_without_parts_is_one_part(value: Any) -> None:
    """What has no content of its own is kept whole."""
    draft = draft_of(value)
    assert len(draft.parts) == 1
    assert json.loads(draft.parts[0].content) == value


def test_a_forged_hole_in_an_envelope_keeps_the_message_whole() -> None:
    """A key that could be read as a hole never reaches a skeleton."""
    draft = draft_of({"role": "user", "content": "hi", "name": {"\0t": 0}})
    assert draft.skeleton == b'{"\\u0000j":0}'
    inside = draft_of({"role": "user", "content": [{"type": "odd", "x": {"\0t": 0}}, {"type": "text", "text": "\0t"}]})
    assert len(inside.parts) == 2


def test_a_call_is_the_same_page_in_any_key_order() -> None:
    """SDKs and agents order a call's keys differently: what the model asked for is one content, its order kept."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    other = {"function": {"arguments": "{}", "name": "look"}, "type": "function", "id": "c1"}
    drafts = [draft_of({"role": "assistant", "tool_calls": [each]}) for each in (call, other)]
    assert drafts[0].parts == drafts[1].parts
    for draft, each in zip(drafts, (call, other), strict=True):
        back = give_message(draft.skeleton, [part.content for part in draft.parts])
        assert json.dumps(back) == json.dumps({"role": "assistant", "tool_calls": [each]})


@pytest.mark.parametrize(
    ("value", "shape", "human"),
    [
        ({"role": "user", "content": "hi"}, Shape.CHAT, True),
        ({"role": "system", "content": "hi"}, Shape.CHAT, False),
        ({"role": "developer", "content": "hi"}, Shape.CHAT, False),
        ({"role": "narrator", "content": "hi"}, Shape.CHAT, False),
        ("hi", Shape.RESPONSES, True),
        ({"parts": [{"text": "hi"}]}, Shape.GEMINI, True),
        (
            {"role": "user", "content": [{"type": "tool_result"}, {"type": "text", "text": "and"}]},
            Shape.ANTHROPIC,
            True,
        ),
    ],
)
def test_only_a_person_is_human(value: Any, shape: Shape, human: bool) -> None:
    """A user's message with anything but tool results is human; nobody else's is."""
    assert draft_of(value, shape).human is human


def test_reasoning_is_the_assistants_and_its_texts_are_pages() -> None:
    """A reasoning item's summaries are pages; its ciphertext stays in the envelope."""
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "x",
    }
    draft = draft_of(item, Shape.RESPONSES)
    assert (draft.role, draft.hint, [p.content for p in draft.parts]) == (Role.ASSISTANT, "rs_1", [b"hm"])
