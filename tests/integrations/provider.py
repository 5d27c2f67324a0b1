"""A provider of models on this machine: it answers chat completions and Responses with what a test tells it to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Provider:
    """The address of a provider, what it was asked, and what it says next: texts, or calls of tools by name."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.says: list[str | tuple[str, dict[str, Any]]] = []


def _chat(reply: str | tuple[str, dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        call = {"name": reply[0], "arguments": json.dumps(reply[1])}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
    reason = "stop" if isinstance(reply, str) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice], "usage": usage}


def _response(reply: str | tuple[str, dict[str, Any]]) -> dict[str, Any]:
    output: dict[str, Any]
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": [], "logprobs": []}]
        output = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        output = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": reply[0]}
        output |= {"arguments": json.dumps(reply[1]), "status": "completed"}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8, **details}
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m-1", "status": "completed"}
    rest = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return {**body, **rest, "output": [output], "usage": usage}


@contextmanager
def providing() -> Iterator[Provider]:
    """A provider on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            provider.asked.append(asked)
            made = _response if self.path.endswith("/responses") else _chat
            content = json.dumps(made(provider.says.pop(0))).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
