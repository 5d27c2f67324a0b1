"""Bodies as they come over HTTP are read as they were sent, and what cannot be read says why."""

from __future__ import annotations

import base64
import gzip
import json

import httpx2
import pytest

from vmstore.capture.client.body import (
    ANSWER_BYTES_MAX,
    AWS_STREAM,
    EVENT_STREAM,
    Endpoint,
    ResponseBody,
    answer_of,
    endpoint,
    request_of,
)
from vmstore.errors import InputError


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/v1/chat/completions", Endpoint.CALL),
        ("/openai/deployments/m/chat/completions", Endpoint.CALL),
        ("/v1/responses", Endpoint.CALL),
        ("/v1/responses/", Endpoint.CALL),
        ("/v1/messages", Endpoint.CALL),
        ("/v1beta/models/m:generateContent", Endpoint.CALL),
        ("/v1beta/models/m:streamGenerateContent", Endpoint.CALL),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict", Endpoint.CALL),
        ("/model/claude/invoke-with-response-stream", Endpoint.CALL),
        ("/v1/completions", Endpoint.GAP),
        ("/v1/responses/compact", Endpoint.GAP),
        ("/v1/threads/t1/runs", Endpoint.GAP),
        ("/v1/threads/runs", Endpoint.GAP),
        ("/v1beta/interactions", Endpoint.GAP),
        ("/v1/embeddings", Endpoint.ASIDE),
        ("/v1/threads/t1/messages", Endpoint.ASIDE),
        ("/v1/messages/count_tokens", Endpoint.ASIDE),
        ("/v1/messages/batches", Endpoint.ASIDE),
        ("/v1beta/models/m:countTokens", Endpoint.ASIDE),
        ("/", Endpoint.ASIDE),
    ],
)
def test_an_endpoint_is_told_from_its_path(path: str, what: Endpoint) -> None:
    """What asks a model for the next message is a call, in a form that cannot be recorded a gap, the rest neither."""
    assert endpoint("POST", path) is what
    assert endpoint("GET", path) is Endpoint.ASIDE


def test_server_sent_events_are_read_as_they_are_written() -> None:
    """Any line ends, comments, data over several lines, no blank line at the end; half an event is left out."""
    data = b': hello\r\n\r\ndata: {"a":\r\ndata: 1}\r\n\r\nevent: b\ndata:{"b":"\xe4\xba\xac"}\n\ndata: [DONE]\n\n'
    assert answer_of(ResponseBody(200, EVENT_STREAM, data=data)) == [{"a": 1}, {"b": "京"}]
    assert answer_of(ResponseBody(200, EVENT_STREAM, data=b'data: {"a":1}\n\ndata: {"b":2}')) == [{"a": 1}, {"b": 2}]
    broken = ConnectionError("reset")
    assert answer_of(ResponseBody(200, EVENT_STREAM, data=b'data: {"a":1}\n\ndata: {"b"', error=broken)) == [
        {"a": 1},
        broken,
    ]
    assert answer_of(ResponseBody(200, EVENT_STREAM)) == []


def test_frames_of_amazon_are_read() -> None:
    """A stream in frames of lengths and checksums holds the same events; a frame cut short is left out."""

    def frame(part: object, headers: bytes = b"\x05:type") -> bytes:
        payload = json.dumps({"bytes": base64.b64encode(json.dumps(part).encode()).decode()}).encode()
        size = 16 + len(headers) + len(payload)
        return b"%b%b....%b%b...." % (size.to_bytes(4, "big"), len(headers).to_bytes(4, "big"), headers, payload)

    data = frame({"type": "message_start"}) + frame({"type": "message_stop"}) + frame({"type": "x"})[:-9]
    assert answer_of(ResponseBody(200, AWS_STREAM, data=data)) == [{"type": "message_start"}, {"type": "message_stop"}]
    assert answer_of(ResponseBody(200, AWS_STREAM, data=b"\0" * 40)) == []


def test_compressed_bytes_are_read() -> None:
    """What passed by compressed is read as the HTTP library does, cut short or not."""
    packed = gzip.compress(b'data: {"a":1}\n\n' * 100)
    body = ResponseBody(200, EVENT_STREAM, "gzip", packed, None, httpx2.Response)
    assert answer_of(body) == [{"a": 1}] * 100
    cut = ResponseBody(200, EVENT_STREAM, "gzip", packed[:-12], ConnectionError("reset"), httpx2.Response)
    assert isinstance(answer_of(cut)[-1], ConnectionError)
    assert "cannot be decoded as gzip" in str(
        answer_of(ResponseBody(200, "", "gzip", b"no gzip", None, httpx2.Response))
    )


def test_what_cannot_be_read_says_why() -> None:
    """An answer in another form is an error that says what came; nothing at all is an aborted call."""
    assert answer_of(ResponseBody(200, "application/json", data=b'{"a": 1}')) == {"a": 1}
    assert answer_of(ResponseBody(200, "application/json", data=b'[{"a": 1}]')) == [{"a": 1}]
    assert answer_of(ResponseBody(200, "application/json")) is None
    assert "is text/html and no JSON object: <html>" in str(answer_of(ResponseBody(200, "text/html", data=b"<html>")))
    assert "no JSON object: [1]" in str(answer_of(ResponseBody(200, "application/json", data=b"[1]")))
    assert f"over {ANSWER_BYTES_MAX} bytes" in str(answer_of(ResponseBody(200, "", cut=True)))
    refused = answer_of(ResponseBody(503, "text/plain", data=b"overloaded"))
    assert (str(refused), refused.status_code, refused.body) == ("HTTP 503: overloaded", 503, None)


@pytest.mark.parametrize("data", [b"", b"[]", b"--boundary", b"\xff", b"[" * 100_000])
def test_a_request_that_is_no_json_object_is_refused(data: bytes) -> None:
    """Only a JSON object is a request that can be recorded."""
    with pytest.raises(InputError, match="the body of a request is"):
        request_of(data)
