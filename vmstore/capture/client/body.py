"""Reads HTTP bodies: which endpoints ask a model, the request that was sent, the answer that came.

Nothing here runs while a call is made but `endpoint`; bodies are read on the recorder's thread.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from vmstore.errors import InputError

ANSWER_BYTES_MAX = 64 << 20  # more of an answer is not held while it passes
TEXT_MAX = 300  # characters of an answer nobody can read that its error repeats

ASKING = re.compile(
    r"(?:^|/)(?:chat/completions|responses|messages)$"
    r"|:(?:generateContent|streamGenerateContent|rawPredict|streamRawPredict)$"
    r"|/model/[^/]+/invoke(?:-with-response-stream)?$"
)
UNREADABLE = re.compile(r"(?:^|/)(?:completions|responses/compact|threads(?:/[^/]+)?/runs|interactions)$")
NO_CALL = re.compile(r"/threads/[^/]+/messages$")
EVENT_STREAM, AWS_STREAM = "text/event-stream", "application/vnd.amazon.eventstream"
DONE = b"[DONE]"


class Endpoint(Enum):
    """The provider's shape and options that an endpoint implies."""

    CALL = "a call whose messages can be recorded"
    GAP = "a call whose messages are in a form that cannot be recorded"
    ASIDE = "not a question to a model"


class HTTPStatusError(Exception):
    """A provider's refusal: its status code, and its body where that is JSON."""

    def __init__(self, message: str, status_code: int, body: Any = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = body


class UnreadableAnswerError(Exception):
    """An answer that came and is not what a model's endpoint answers."""

    def __init__(self, message: str, status_code: int | None) -> None:
        super().__init__(message)
        self.status_code = status_code


class ResponseBody(msgspec.Struct, frozen=True):
    """A response body: its bytes, how to read them, and the error that broke it off."""

    status: int | None = None
    kind: str = ""  # content type
    encoding: str = ""  # content encoding the bytes still have
    data: bytes = b""
    error: BaseException | None = None
    response_type: Any = None  # the HTTP library's class, which knows its encodings
    cut: bool = False  # there was more than is held

    @property
    def size(self) -> int:
        """Bytes held."""
        return len(self.data)


def endpoint(method: str, path: str) -> Endpoint:
    """The endpoint that a method and a path address."""
    if method != "POST":
        return Endpoint.ASIDE
    path = path.rstrip("/")
    if UNREADABLE.search(path) and not path.endswith("/chat/completions"):
        return Endpoint.GAP
    return Endpoint.CALL if ASKING.search(path) and not NO_CALL.search(path) else Endpoint.ASIDE


def request_of(data: bytes) -> dict[str, Any]:
    """The JSON of a request's body."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the body of a request is no JSON: {error}; only JSON bodies can be recorded", code="not-json"
        ) from error
    if not isinstance(body, dict):
        raise InputError(
            f"the body of a request is a JSON {type(body).__name__}; only objects can be recorded", code="not-an-object"
        )
    return body


def answer_of(answer: ResponseBody) -> Any:
    """The response in the form `Store.record` takes: a body, a stream's parts, an exception, or None."""
    try:
        data = _decoded(answer)
    except Exception as error:  # each library and encoding has its own
        return _unreadable(answer, f"cannot be decoded as {answer.encoding}: {error}")
    if answer.cut:
        return _unreadable(answer, f"has over {ANSWER_BYTES_MAX} bytes")
    if answer.status is not None and answer.status >= 400:
        return _refusal(answer.status, data)
    if answer.kind == AWS_STREAM:
        return [*_aws_parts(data), *_broken(answer)]
    if answer.kind == EVENT_STREAM or data.startswith((b"data:", b"event:")):
        return [*_parts(data), *_broken(answer)]
    if answer.error is not None or not data:
        return answer.error
    value = _json(data)
    if isinstance(value, dict) or (isinstance(value, list) and value and all(isinstance(part, dict) for part in value)):
        return value
    return _unreadable(answer, f"is {answer.kind or 'of no type'} and no JSON object: {_start(data)}")


def _broken(answer: ResponseBody) -> list[BaseException]:
    return [] if answer.error is None else [answer.error]


def _decoded(answer: ResponseBody) -> bytes:
    if answer.encoding in ("", "identity") or not answer.data:
        return answer.data
    read = answer.response_type(answer.status, headers={"content-encoding": answer.encoding}, content=answer.data)
    return bytes(read.content)


def _refusal(status: int, data: bytes) -> HTTPStatusError:
    body = _json(data)
    error = body.get("error") if isinstance(body, dict) else None
    text = error.get("message") if isinstance(error, dict) else error
    return HTTPStatusError(text if isinstance(text, str) and text else f"HTTP {status}: {_start(data)}", status, body)


def _unreadable(answer: ResponseBody, why: str) -> UnreadableAnswerError:
    return UnreadableAnswerError(f"the answer {why}", answer.status)


def _start(data: bytes) -> str:
    return data[: TEXT_MAX * 4].decode("utf-8", "replace")[:TEXT_MAX]


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _parts(data: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of server-sent events; the last one too where its blank line never came."""
    lines: list[bytes] = []
    for line in (*data.splitlines(), b""):
        if line.startswith(b"data:"):
            lines.append(line[5:].removeprefix(b" "))
        elif not line and lines:
            event = b"\n".join(lines)
            lines = []
            if event.strip() != DONE and isinstance(part := _json(event), dict):
                yield part


def _aws_parts(data: bytes) -> Iterator[dict[str, Any]]:
    """The parts in frames of AWS: length, length of headers, a checksum; headers, payload, a checksum."""
    at = 0
    while at + 16 <= len(data):
        size, headers = (int.from_bytes(data[at + n : at + n + 4], "big") for n in (0, 4))
        if size < 16 or at + size > len(data):
            return
        payload = _json(data[at + 12 + headers : at + size - 4])
        at += size
        if isinstance(payload, dict):
            inner = payload.get("bytes")
            part = _json(base64.b64decode(inner)) if isinstance(inner, str) else payload
            if isinstance(part, dict):
                yield part
