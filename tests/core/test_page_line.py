"""What a page's content is read as, on one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vmstore.core.page import Mime, Modality
from vmstore.core.text.page_line import ToolRequest, page_line, tool_request

ARGUMENTS = {"path": "theme.md"}
WRITTEN = json.dumps(ARGUMENTS)
REQUESTS: list[dict[str, Any]] = [
    {"id": "call_77", "type": "function", "function": {"name": "read", "arguments": WRITTEN}},
    {"name": "read", "arguments": WRITTEN},
    {"type": "function_call", "id": "fc_77", "call_id": "call_77", "name": "read", "arguments": WRITTEN},
    {"type": "tool_use", "id": "toolu_77", "name": "read", "input": ARGUMENTS},
    {"functionCall": {"id": "77", "name": "read", "args": ARGUMENTS}},
    {"type": "toolCall", "id": "toolu_77", "name": "read", "arguments": ARGUMENTS},
]


def line(value: Any, **fields: Any) -> str:
    return page_line(json.dumps(value).encode(), Modality.STRUCTURED, Mime.JSON, **fields)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda form: str(form.get("type") or next(iter(form))))
def test_a_request_is_its_tool_and_arguments(request_: dict[str, Any]) -> None:
    """A request for a tool reads alike in every provider's form, and has no id in it."""
    assert line(request_) == '→ read({"path": "theme.md"})'
    assert tool_request(json.dumps(request_).encode()) == ToolRequest("read", ARGUMENTS)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "web_search_call", "id": "ws_1", "action": {"query": "deer"}}, '→ web_search({"query": "deer"})'),
        ({"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls -l"}, "→ sh(ls -l)"),
        ({"function": {"name": "now", "arguments": "{}"}}, "→ now()"),
        ({"type": "redacted_thinking", "data": "x" * 400}, "[redacted thinking, sealed, 400 bytes]"),
        ({"type": "reasoning", "id": "rs_1", "summary": [{"text": "I read on."}]}, "I read on."),
        ({"type": "reasoning", "id": "rs_1", "encrypted_content": "abc"}, "[reasoning, sealed, 3 bytes]"),
        ([{"type": "text", "text": "two parts"}, {"type": "image", "source": {"data": "AAAA"}}], "two parts [image]"),
        ([{"name": "read", "input_schema": {}}, {"function": {"name": "bash", "parameters": {}}}], "tools: read, bash"),
        ([{"functionDeclarations": [{"name": "read"}, {"name": "bash"}]}], "tools: read, bash"),
        ({"functionResponse": {"name": "read", "response": {"result": "port"}}}, "read → result: port"),
        ({"role": "assistant", "content": "whole", "tool_calls": [REQUESTS[0]]}, 'whole → read({"path": "theme.md"})'),
        ({"type": "system", "uuid": "u", "level": "info"}, "system: uuid: u, level: info"),
    ],
)  # fmt: skip
def test_a_structured_part_is_words(part: Any, shown: str) -> None:
    """A structured part stands as its words, without braces, quotes and ids."""
    assert line(part) == shown


def test_a_result_begins_with_what_was_asked() -> None:
    """The result of a tool begins with the tool and the argument that says best what was asked of it."""
    asked = ToolRequest("read", {"offset": 1, "path": "/home/ann/project/docs/deep/theme.md"})
    assert page_line(b"import {\n  Agent", asked=asked) == "read …/theme.md → import { Agent"
    moved = ToolRequest("bash", {"command": "cd /srv/app && git status"})
    assert page_line(b"clean", asked=moved) == "bash git status → clean"
    assert page_line(b"[]", asked=ToolRequest("flights", {"from": "JFK", "to": "SEA"})) == "flights JFK SEA → []"


def test_long_paths_of_a_request_are_cut_in_front() -> None:
    """Of a path in a request the end stays, since that tells files apart where a line is short."""
    asked = {"name": "read", "arguments": {"path": "/home/ann/project/docs/theme.md", "limit": 5}}
    assert line(asked) == '→ read({"path": "…/theme.md", "limit": 5})'


def test_json_texts_lose_their_quotes() -> None:
    """A text that is JSON is read without its quotes and outermost braces, also where it was cut."""
    assert page_line(b'{"name": {"first": "Mia"}, "tags": ["a", "b"]}') == "name: {first: Mia}, tags: [a, b]"
    assert (
        page_line(b'{"text": "one \\"two\\"\\nthree", "rest": "cut off he') == 'text: one "two" three, rest: cut off he'
    )
    assert page_line(b"[Old output omitted]") == "[Old output omitted]"
    assert page_line(json.dumps({"n": list(range(90_000))}).encode()).startswith("n: [0, 1, 2")


def test_what_drives_a_terminal_is_written_out() -> None:
    """Controls, NUL and marks that reorder a line are written as escapes, and a text with them stays a text."""
    assert page_line("a\0b\x1b[31m \u202edcba".encode()) == "a\\x00b\\x1b[31m \\u202edcba"
    assert page_line(b"\x89PNG\r\n\x1a\n" + bytes(range(128, 228))) == "[108 bytes, no text]"


@pytest.mark.parametrize(
    ("content", "mime", "shown"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 12_000, Mime.PNG, "[image/png, 12 kB]"),
        (b"data:image/jpeg;base64,AAAA", Mime.JPEG, "[image/jpeg, 27 bytes]"),
        (b"https://host/deer.png", Mime.OTHER, "[image https://host/deer.png]"),
        (b"a deer in the park", Mime.PNG, "[image] a deer in the park"),
    ],
)
def test_media_are_named(content: bytes, mime: Mime, shown: str) -> None:
    """A picture is its kind and size, its address, or the words in its place."""
    assert page_line(content, Modality.IMAGE, mime) == shown


def test_a_line_is_cut_where_it_is_long() -> None:
    """A line has at most so many characters, the last of them an ellipsis where it was cut; None cuts nothing."""
    assert page_line(b"x" * 5_000, chars=20) == "x" * 19 + "…"
    assert len(page_line(b"x" * 5_000, chars=None)) == 5_000
    assert page_line("é".encode() * 3_000, chars=10) == "é" * 9 + "…"
