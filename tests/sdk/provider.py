"""A provider on the loopback: answers as OpenAI, Anthropic and Google do, and keeps what it was sent.

The name of the model says what goes wrong: `busy` is refused once, `down` always, `html` answers
with a page, `gzip` compresses, `breaks` hangs up amid a stream, `slow` takes longer than anybody waits,
`waits` stops amid a stream until it is released, `whole` answers whole what was to be streamed.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Json = dict[str, Any]

VALUE = json.dumps({"n": 1, "word": "Kyoto"})  # what fits every schema and every tool of the scenarios
WORDS = ("In ", "Japan", ".")
REFUSED = {"error": {"type": "rate_limit_error", "message": "slow down", "code": "busy"}}
PAGE = b"<html>a proxy says hello</html>"
SLOW_S = 1.5
WAIT_S_MAX = 30


class Seen(NamedTuple):
    """One request as it came in, what was answered (a body, or the parts of a stream), and by which key it was."""

    path: str
    body: Json
    answer: Any
    authorization: str | None = None


class Provider(ThreadingHTTPServer):
    """The server; `seen` are the requests it got, in order."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[Seen] = []
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing where a client hung up."""


@contextmanager
def serving() -> Iterator[Provider]:
    """A provider that answers until the end of the block."""
    server = Provider()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # headers and body in one packet
    server: Provider

    def log_message(self, *about: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        """The list of models."""
        self._send(200, "application/json", b'{"object":"list","data":[]}')

    def do_POST(self) -> None:
        """Answers a question, and keeps both."""
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(data or b"{}")
        path = self.path.partition("?")[0]
        model = f"{body.get('model', '')} {path}"
        with self.server.lock:
            again = any(seen.body == body for seen in self.server.seen)
        streams = (bool(body.get("stream")) or "stream" in path) and "whole" not in model
        if "html" in model:
            return self._answer(path, body, None, 200, "text/html", PAGE)
        if "down" in model or ("busy" in model and not again):
            return self._answer(path, body, REFUSED, 429 if "busy" in model else 400, "application/json")
        if not streams:
            return self._answer(path, body, whole(path, body), 200, "application/json", squeezed="gzip" in model)
        parts = list(pieces(path, body))
        if "breaks" in model:
            parts = parts[:3]
        self._stream(path, body, parts, "breaks" in model, "gzip" in model)
        return None

    def _answer(
        self, path: str, body: Json, answer: Any, status: int, kind: str, data: bytes = b"", squeezed: bool = False
    ) -> None:
        with self.server.lock:
            self.server.seen.append(Seen(path, body, answer, self.headers.get("authorization")))
        if "slow" in str(body.get("model")):
            time.sleep(SLOW_S)
        data = data or json.dumps(answer).encode()
        self._send(status, kind, gzip.compress(data) if squeezed else data, squeezed)

    def _send(self, status: int, kind: str, data: bytes, squeezed: bool = False) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        if squeezed:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _stream(self, path: str, body: Json, parts: list[Json], breaks: bool, squeezed: bool) -> None:
        with self.server.lock:
            self.server.seen.append(Seen(path, body, parts, self.headers.get("authorization")))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        if squeezed:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        texts = [_event(part) for part in parts]
        if "completions" in path and not breaks:
            texts.append("data: [DONE]\n\n")
        if squeezed:
            self._chunk(gzip.compress("".join(texts).encode()))
        else:
            for nth, text in enumerate(texts):
                if nth == 2 and "waits" in str(body.get("model")):
                    self.server.released.wait(WAIT_S_MAX)
                self._chunk(text.encode())
        if breaks:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def _event(part: Json) -> str:
    named = f"event: {part['type']}\n" if "type" in part else ""
    return f"{named}data: {json.dumps(part)}\n\n"


def whole(path: str, body: Json) -> Json:
    """The answer to a question that is not streamed."""
    if path.endswith("chat/completions"):
        return _chat(body)
    if path.endswith("/responses") or path.endswith("/compact"):
        return _response(body)
    if path.endswith(("/messages", ":rawPredict", "/invoke")):
        return _message(body)
    if path.endswith("count_tokens"):
        return {"input_tokens": 7}
    if path.endswith("embeddings"):
        return {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                "usage": {"prompt_tokens": 1, "total_tokens": 1}}  # fmt: skip
    if path.endswith("completions"):
        return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "text": "Japan", "finish_reason": "stop", "logprobs": None}]}  # fmt: skip
    return _content(body)


def pieces(path: str, body: Json) -> Iterator[Json]:
    """The parts of a streamed answer."""
    if path.endswith("chat/completions"):
        return _chat_parts(body)
    if path.endswith("/responses"):
        return _response_parts(body)
    if path.endswith(("/messages", ":streamRawPredict")):
        return _message_parts(body)
    return _content_parts(body)


# ---- chat completions


def _tool(body: Json, name: Any, results: tuple[str, ...]) -> str | None:
    """The tool a model would ask for: the first, unless it was answered."""
    tools = body.get("tools") or []
    return None if not tools or any(word in json.dumps(body) for word in results) else str(name(tools[0]))


def _chat_message(body: Json) -> tuple[Json, str]:
    tool = _tool(body, lambda tool: tool["function"]["name"], ('"role": "tool"',))
    if tool is not None:
        call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": VALUE}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    kind = (body.get("response_format") or {}).get("type", "text")
    return {"role": "assistant", "content": "".join(WORDS) if kind == "text" else VALUE, "refusal": None}, "stop"


def _chat(body: Json) -> Json:
    message, stop = _chat_message(body)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stop}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }


def _chat_parts(body: Json) -> Iterator[Json]:
    message, stop = _chat_message(body)
    about = {"id": "chatcmpl-2", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}

    def part(delta: Json, ended: str | None = None) -> Json:
        return {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}

    yield part({"role": "assistant", "content": ""})
    if calls := message.get("tool_calls"):
        yield part({"tool_calls": [{**calls[0], "index": 0, "function": {**calls[0]["function"], "arguments": ""}}]})
        for text in (VALUE[:5], VALUE[5:]):
            yield part({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
    else:
        for text in (message["content"][:4], message["content"][4:7], message["content"][7:]):
            yield part({"content": text})
    yield part({}, stop)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**about, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}


# ---- responses


def _output(body: Json) -> Json:
    tool = _tool(body, lambda tool: tool["name"], ('"function_call_output"',))
    if tool is not None:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": VALUE}
        return {**call, "status": "completed"}
    kind = ((body.get("text") or {}).get("format") or {}).get("type", "text")
    text = "".join(WORDS) if kind == "text" else VALUE
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def _response(body: Json, status: str = "completed") -> Json:
    return {
        "id": f"resp_{abs(hash(json.dumps(body, sort_keys=True)))}",
        "object": "response",
        "created_at": 1,
        "model": "m-1",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "output": [_output(body)] if status == "completed" else [],
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 12,
        },
    }


def _response_parts(body: Json) -> Iterator[Json]:
    number = iter(range(99))

    def part(kind: str, **fields: Any) -> Json:
        return {"type": f"response.{kind}", "sequence_number": next(number), **fields}

    item = _output(body)
    yield part("created", response=_response(body, "in_progress"))
    at = {"output_index": 0, "item_id": item["id"]}
    if item["type"] == "message":
        record = item["content"][0]
        inside = {**at, "content_index": 0}
        yield part("output_item.added", output_index=0, item={**item, "status": "in_progress", "content": []})
        yield part("content_part.added", **inside, part={**record, "text": ""})
        for text in (record["text"][:4], record["text"][4:]):
            yield part("output_text.delta", **inside, delta=text, logprobs=[])
        yield part("output_text.done", **inside, text=record["text"], logprobs=[])
        yield part("content_part.done", **inside, part=record)
    else:
        yield part("output_item.added", output_index=0, item={**item, "status": "in_progress", "arguments": ""})
        yield part("function_call_arguments.delta", **at, delta=VALUE)
        yield part("function_call_arguments.done", **at, name=item["name"], arguments=VALUE)
    yield part("output_item.done", output_index=0, item=item)
    yield part("completed", response=_response(body))


# ---- messages


def _blocks(body: Json) -> tuple[list[Json], str]:
    tool = _tool(body, lambda tool: tool["name"], ('"tool_result"',))
    if tool is not None:
        return [{"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.loads(VALUE)}], "tool_use"
    plain = not (body.get("output_config") or {}).get("format") and "output_format" not in body
    return [{"type": "text", "text": "".join(WORDS) if plain else VALUE}], "end_turn"


def _message(body: Json) -> Json:
    blocks, stop = _blocks(body)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-1",
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }


def _message_parts(body: Json) -> Iterator[Json]:
    (block,), stop = _blocks(body)
    begun = {**_message(body), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "ping"}
    other_text = block.get("text", VALUE)
    for text in (other_text[:4], other_text[4:]):
        key, kind = ("text", "text_delta") if "text" in block else ("partial_json", "input_json_delta")
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: text}}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


# ---- contents


def _candidate(body: Json) -> Json:
    declared = lambda tool: tool["functionDeclarations"][0]["name"]  # noqa: E731
    tool = _tool(body, declared, ('"functionResponse"',))
    config = body.get("generationConfig") or {}
    text = "".join(WORDS) if config.get("responseMimeType", "text/plain") == "text/plain" else VALUE
    part = {"text": text} if tool is None else {"functionCall": {"name": tool, "args": json.loads(VALUE)}}
    return {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}


def _content(body: Json) -> Json:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
    return {"candidates": [_candidate(body)], "usageMetadata": usage, "modelVersion": "gemini-1", "responseId": "r1"}


def _content_parts(body: Json) -> Iterator[Json]:
    last = _content(body)
    part = last["candidates"][0]["content"]["parts"][0]
    if "text" not in part:
        yield last
        return
    for text in (part["text"][:4], part["text"][4:]):
        piece = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
        yield {"candidates": [piece], "modelVersion": "gemini-1"}
    yield {**last, "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}
