"""Markers that carry the session of a conversation in the answers themselves: `<!-- vc:session=UUID -->`.

A client that sends an answer back with its next request so says which session that belongs to. Markers
are cut out of requests before they go on, and put into answers behind their first text; what is recorded
has none. Where anything is not as expected, it passes as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from enum import Enum
from typing import Any

MARKER = re.compile(
    rb"(?:<|\\u003[cC])!-- vc:session=([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}) --(?:>|\\u003[eE])"
)
ANSWERING = ("assistant", "model")
EVENT_ENDS = re.compile(rb"\r?\n\r?\n")

Json = dict[str, Any]


class AnswerForm(Enum):
    """The forms that an answer has, by the end of the path it is asked at."""

    CHAT = "/chat/completions"
    RESPONSES = "/responses"
    ANTHROPIC = "/messages"
    GEMINI = "ontent"  # …:generateContent, …:streamGenerateContent


def form_of(path: str) -> AnswerForm | None:
    """The form of the answers at a path; None where no marker is put into them."""
    return next((form for form in AnswerForm if path.rstrip("/").endswith(form.value)), None)


def marker_of(session: str) -> str:
    """The marker that names a session."""
    return f"<!-- vc:session={session} -->"


def without_markers(body: bytes) -> bytes:
    """A request's body without any marker; else it stays byte for byte."""
    return MARKER.sub(b"", body)


def session_in(body: bytes) -> str | None:
    """The session that the last answer in a request names; what people write names none."""
    if MARKER.search(body) is None:
        return None
    with suppress(ValueError, RecursionError):
        request = json.loads(body)
        for message in reversed(list(_messages(request))):
            named = MARKER.findall(json.dumps(message).encode())
            if message.get("role") in ANSWERING and named:
                return str(named[-1].decode().lower())
    return None


def _messages(request: Any) -> Iterator[Json]:
    for key in ("messages", "input", "contents"):
        listed = request.get(key) if isinstance(request, dict) else None
        if isinstance(listed, list):
            yield from (message for message in listed if isinstance(message, dict))


def marked_body(body: bytes, form: AnswerForm, marker: str) -> bytes:
    """A whole answer with a marker behind its last text; as it is where it says nothing."""
    with suppress(ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError):
        answer = json.loads(body)
        texts = list(TEXTS[form](answer))
        if texts:
            owner, key = texts[-1]
            owner[key] += marker
            return json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return body


def _chat_texts(answer: Json) -> Iterator[tuple[Json, str]]:
    message = answer["choices"][0]["message"]
    if isinstance(message.get("content"), str) and message["content"]:
        yield message, "content"


def _anthropic_texts(answer: Json) -> Iterator[tuple[Json, str]]:
    yield from ((block, "text") for block in answer["content"] if block.get("type") == "text" and block["text"])


def _responses_texts(answer: Json) -> Iterator[tuple[Json, str]]:
    for item in answer["output"]:
        for part in item.get("content") or ():
            if part.get("type") == "output_text" and part["text"]:
                yield part, "text"


def _gemini_texts(answer: Json) -> Iterator[tuple[Json, str]]:
    for part in answer["candidates"][0]["content"]["parts"]:
        if part.get("text") and not part.get("thought"):
            yield part, "text"


TEXTS: dict[AnswerForm, Callable[[Json], Iterator[tuple[Json, str]]]] = {
    AnswerForm.CHAT: _chat_texts,
    AnswerForm.ANTHROPIC: _anthropic_texts,
    AnswerForm.RESPONSES: _responses_texts,
    AnswerForm.GEMINI: _gemini_texts,
}


class MarkedStream:
    """Events on their way to the client: each passes as it is, once it is whole, and one with the marker is added."""

    def __init__(self, form: AnswerForm, marker: str) -> None:
        self._marker = marker
        self._added = {
            AnswerForm.CHAT: self._chat,
            AnswerForm.ANTHROPIC: self._anthropic,
            AnswerForm.RESPONSES: self._responses,
            AnswerForm.GEMINI: self._gemini,
        }[form]
        self._spoke = False  # whether a text came so far
        self._done = False
        self._held = b""

    def take(self, data: bytes) -> bytes:
        """The events that `data` completes, and what is added to them."""
        self._held += data
        passed = b""
        while (end := EVENT_ENDS.search(self._held)) is not None and not self._done:
            event, self._held = self._held[: end.end()], self._held[end.end() :]
            passed += self._marked(event)
        return passed + self.rest() if self._done else passed

    def rest(self) -> bytes:
        """The beginning of an event, which is held back until it ends."""
        rest, self._held = self._held, b""
        return rest

    def _marked(self, event: bytes) -> bytes:
        data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
        with suppress(ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError):
            value = json.loads(data)
            if isinstance(value, dict):
                return self._added(value, event)
        return event

    def _chat(self, value: Json, event: bytes) -> bytes:
        choice = value["choices"][0] if value.get("choices") else {}
        self._spoke = self._spoke or bool((choice.get("delta") or {}).get("content"))
        if not choice.get("finish_reason"):
            return event
        self._done = True
        added = {key: item for key, item in value.items() if key != "usage"}
        added["choices"] = [{"index": 0, "delta": {"content": self._marker}, "finish_reason": None}]
        return (event_of(added) if self._spoke else b"") + event

    def _anthropic(self, value: Json, event: bytes) -> bytes:
        delta = value.get("delta") or {}
        self._spoke = self._spoke or (delta.get("type") == "text_delta" and bool(delta.get("text")))
        if value["type"] != "content_block_stop" or not self._spoke:
            return event
        self._done = True
        text = {"type": "text_delta", "text": self._marker}
        added = {"type": "content_block_delta", "index": value["index"], "delta": text}
        return event_of(added, "content_block_delta") + event

    def _gemini(self, value: Json, event: bytes) -> bytes:
        candidate = value["candidates"][0]
        self._spoke = self._spoke or any(
            True for _ in _gemini_texts({"candidates": [{"content": {"parts": []}, **candidate}]})
        )
        if not candidate.get("finishReason"):
            return event
        self._done = True
        added = {key: item for key, item in value.items() if key != "usageMetadata"}
        added["candidates"] = [{"content": {"role": "model", "parts": [{"text": self._marker}]}, "index": 0}]
        return (event_of(added) if self._spoke else b"") + event

    def _responses(self, value: Json, event: bytes) -> bytes:
        """Adds a delta before a text is done; the events that say the text again say it with the marker."""
        kind = value["type"]
        changed = deepcopy(value)
        if kind == "response.output_text.done" and value["text"]:
            changed["text"] += self._marker
            kept = {key: item for key, item in value.items() if key not in ("text", "type")}
            added = {"type": "response.output_text.delta", **kept, "delta": self._marker}
            return event_of(added, added["type"]) + event_of(changed, kind)
        if kind == "response.content_part.done":
            answer: Json = {"output": [{"content": [changed["part"]]}]}
        elif kind == "response.output_item.done":
            answer = {"output": [changed["item"]]}
        elif kind in ("response.completed", "response.incomplete"):
            answer = changed["response"]
            self._done = True
        else:
            return event
        texts = list(_responses_texts(answer))
        for owner, key in texts:
            owner[key] += self._marker
        return event_of(changed, kind) if texts else event


def events_in(data: bytes) -> tuple[list[bytes], bytes]:
    """The events that are whole at the beginning of some bytes, and what follows them."""
    ends = [found.end() for found in EVENT_ENDS.finditer(data)]
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)], data[ends[-1] if ends else 0 :]


def event_of(value: Json, name: str | None = None) -> bytes:
    """An event that says a value."""
    data = b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"
    return data if name is None else b"event: " + name.encode() + b"\n" + data
