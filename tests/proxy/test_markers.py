"""Markers carry the session of a conversation through the client, and neither the upstream nor the store sees them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import vmstore
from tests.proxy.running import chat, proxied
from tests.proxy.upstream import saying, streaming, upstream
from tests.sdk.provider import serving
from vmstore.proxy.markers import (
    AnswerForm,
    MarkedStream,
    marked_body,
    marker_of,
    session_in,
    without_markers,
)

UUID = "0d6f1d3c-7a7e-4c59-9c5f-1f1f7a2b3c4d"
MARKER = marker_of(UUID)
PATTERN = re.compile(r"<!-- vc:session=([0-9a-f-]{36}) -->")


@pytest.mark.parametrize("act", [saying(), streaming("In ", "Japan.")], ids=["whole", "streamed"])
def test_a_marker_leads_the_next_request_to_its_session(path: Path, act: Any) -> None:
    """An answer that is sent back names its session, also where the conversation says nothing else of before."""
    with upstream(act) as far, proxied(path, "--upstream", far.url, "--markers") as proxy:
        first = proxy.say("Where is Kyoto?").body.decode()
        other = proxy.say("Where is Kyoto?").body.decode()
        (session,) = PATTERN.findall(first)
        assert session != PATTERN.findall(other)[0]
        proxy.say("(the beginning was cut off)", f"In Japan.{marker_of(session)}", "And Nara?")
        proxy.settled(3)
        assert far.seen[2].body == json.dumps(chat("(the beginning was cut off)", "In Japan.", "And Nara?")).encode()
        assert b"vc:session" not in b"".join(request.body for request in far.seen)
    with vmstore.open(path) as store:
        assert len(store.session(session).calls()) == 2
        assert store.session(session).wire.response(call=1).messages[0]["content"] == "In Japan."
        sessions = [store.session(info.session) for info in store.sessions()]
        contents = [session.content(page.page) for session in sessions for page in session.pages()]
        assert contents and not any(b"vc:session" in content for content in contents)


def test_each_provider_s_own_client_reads_the_marker(path: Path) -> None:
    """Clients of OpenAI and Anthropic, whole and streamed, give the text with the marker at its end."""
    texts: list[str] = []
    with serving() as far, proxied(path, "--upstream", far.url, "--markers") as proxy:
        chat_client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-0", max_retries=0)
        claude = anthropic.Anthropic(base_url=proxy.url, api_key="sk-0", max_retries=0)
        records: Any = [{"role": "user", "content": "Where is Kyoto?"}]
        texts.append(str(chat_client.chat.completions.create(model="m", messages=records).choices[0].message.content))
        chunks = chat_client.chat.completions.create(model="m", messages=records, stream=True)
        texts.append("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))
        texts.append(chat_client.responses.create(model="m", input="Where?").output_text)
        with chat_client.responses.stream(model="m", input="Where?") as events:
            texts.append(events.get_final_response().output_text)
        message = claude.messages.create(model="claude-x", max_tokens=9, messages=records)
        texts.append("".join(block.text for block in message.content if block.type == "text"))
        with claude.messages.stream(model="claude-x", max_tokens=9, messages=records) as stream:
            texts.append(stream.get_final_text())
        proxy.settled(6)
    assert [len(PATTERN.findall(text)) for text in texts] == [1] * 6
    assert len({PATTERN.findall(text)[0] for text in texts}) == 6


def test_what_a_person_writes_names_no_session() -> None:
    """A marker in a user's message is cut out and leads nowhere; the last answer's counts."""
    body = json.dumps(chat(f"go to {MARKER}", "In Japan.", "And?")).encode()
    assert session_in(body) is None
    assert json.loads(without_markers(body)) == chat("go to ", "In Japan.", "And?")
    later = UUID.replace("0d6f", "aaaa")
    assert session_in(json.dumps(chat("a", f"b {MARKER}", "c", f"d {marker_of(later)}", "e")).encode()) == later


def test_a_body_without_markers_stays_byte_for_byte() -> None:
    """Cutting changes nothing but markers, escaped ones too."""
    body = b'{ "messages" : [ {"role":"assistant","content":"\\u003c!-- x --\\u003e \xff"}]}'
    assert without_markers(body) == body
    escaped = MARKER.replace("<", "\\u003c").replace(">", "\\u003e").encode()
    assert without_markers(b'{"a": "x' + escaped + b'y"}') == b'{"a": "xy"}'


@pytest.mark.parametrize("form", list(AnswerForm))
@pytest.mark.parametrize(
    "data", [b"", b"data: {half\n\n", b"data: [1]\n\n", b'data: {"type": 3}\n\n', b": x\n\ndata: "]
)
def test_events_of_no_known_form_pass_as_they_are(form: AnswerForm, data: bytes) -> None:
    """Whatever cannot be read is passed byte for byte, the cut-off end too."""
    stream = MarkedStream(form, MARKER)
    assert stream.take(data) + stream.rest() == data
    assert marked_body(data, form, MARKER) == data


def test_an_answer_that_only_calls_a_tool_gets_no_marker() -> None:
    """Without a text there is nothing to put a marker behind."""
    message = {"role": "assistant", "content": None, "tool_calls": []}
    body = json.dumps({"choices": [{"message": message}]}).encode()
    assert marked_body(body, AnswerForm.CHAT, MARKER) == body
    parts = [{"functionCall": {"name": "f", "args": {}}}]
    body = json.dumps({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}).encode()
    assert marked_body(body, AnswerForm.GEMINI, MARKER) == body
    event = b"data: " + body + b"\n\n"
    assert MarkedStream(AnswerForm.GEMINI, MARKER).take(event) == event


def test_a_stream_of_gemini_gets_the_marker_before_its_end() -> None:
    """A part with the marker comes before the event that ends the answer, which stays as it is."""
    text = b'data: {"candidates": [{"content": {"parts": [{"text": "In Japan."}], "role": "model"}}]}\n\n'
    end = b'data: {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {}}\n\n'
    stream = MarkedStream(AnswerForm.GEMINI, MARKER)
    passed = b"".join(stream.take(bytes([byte])) for byte in text + end) + stream.rest()
    assert passed.startswith(text) and passed.endswith(end)
    added = json.loads(passed[len(text) : -len(end)].removeprefix(b"data: "))
    assert added["candidates"][0]["content"]["parts"] == [{"text": MARKER}]
