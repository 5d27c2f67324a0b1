"""An upstream on the loopback that keeps the very bytes it is sent and answers what a test tells it to."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

CHUNK = 1 << 16


class RawRequest(NamedTuple):
    """One request: its first line, its header lines in order, its body."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header."""
        return next((value for key, value in self.headers if key.lower() == name), None)


Act = Callable[[RawRequest, socket.socket], None]


class Upstream:
    """Listens; `act` answers each request on its connection, `seen` are the requests so far."""

    def __init__(self, act: Act) -> None:
        self.act = act
        self.seen: list[RawRequest] = []
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """Takes no connection any more."""
        self._socket.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            stream = connection.makefile("rb", buffering=1 << 20)
            while (request := _read(stream)) is not None:
                self.seen.append(request)
                self.act(request, connection)


def _read(stream) -> RawRequest | None:
    line = stream.readline().decode("latin-1").strip()
    if not line:
        return None
    headers = []
    while text := stream.readline().decode("latin-1").strip():
        name, _, value = text.partition(":")
        headers.append((name, value.strip()))
    known = {name.lower(): value for name, value in headers}
    if "chunked" in known.get("transfer-encoding", ""):
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        body = stream.read(int(known.get("content-length", 0)))
    return RawRequest(line, headers, body)


@contextmanager
def upstream(act: Act) -> Iterator[Upstream]:
    """An upstream until the end of the block."""
    server = Upstream(act)
    try:
        yield server
    finally:
        server.close()


def send(connection: socket.socket, body: bytes, kind: str = "application/json", status: str = "200 OK") -> None:
    """Sends a whole answer."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def begin_stream(connection: socket.socket, *headers: str) -> None:
    """Sends the head of a stream of events."""
    lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "transfer-encoding: chunked", *headers]
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())


def piece(connection: socket.socket, data: bytes) -> None:
    """Sends a piece of a stream."""
    connection.sendall(b"%x\r\n%b\r\n" % (len(data), data))


def end_stream(connection: socket.socket) -> None:
    """Ends a stream."""
    connection.sendall(b"0\r\n\r\n")


def answer(text: str = "In Japan.") -> bytes:
    """A chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "c-1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()


def events(*texts: str, done: bool = True) -> list[bytes]:
    """A chat completion as events, one a text."""

    def event(delta: dict[str, str], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    parts = [event({"role": "assistant", "content": text}, None) for text in texts]
    return [*parts, event({}, "stop"), b"data: [DONE]\n\n"] if done else parts


def saying(text: str = "In Japan.") -> Act:
    """Answers every request with the same completion."""
    return lambda request, connection: send(connection, answer(text))


def streaming(*texts: str) -> Act:
    """Answers every request with the same stream."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        for data in events(*texts):
            piece(connection, data)
        end_stream(connection)

    return act
