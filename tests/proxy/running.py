"""A proxy as people run it: the command in a process of its own, and a plain HTTP client."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEADLINE_S = 60.0
CHAT = "/v1/chat/completions"


class RunningProxy:
    """A proxy that answers: its process, its addresses, and its token where it has one."""

    def __init__(self, process: subprocess.Popen[str], started: dict[str, Any]) -> None:
        self.process = process
        self.urls = [port["url"] for port in started["ports"]]
        self.url = self.urls[0]
        self.token = started["token"]

    def ask(self, body: Any, path: str = CHAT, headers: dict[str, str] | None = None, port: int = 0) -> Reply:
        """Posts a body, as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", path, data, {"content-type": "application/json", **(headers or {})}, port)

    def say(self, *texts: str, **options: Any) -> Reply:
        """Posts a chat whose messages take turns, the first a user's."""
        return self.ask(chat(*texts), **options)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, port: int = 0
    ) -> Reply:
        """Sends one request and reads its answer."""
        connection = self.connection(port)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Reply(response.status, response.getheaders(), response.read())
        finally:
            connection.close()

    def connection(self, port: int = 0) -> http.client.HTTPConnection:
        """A connection to a port."""
        return http.client.HTTPConnection(urlsplit(self.urls[port]).netloc, timeout=DEADLINE_S)

    def figures(self) -> dict[str, Any]:
        """What the proxy says it has done."""
        headers = {} if self.token is None else {"x-vmstore-token": self.token}
        return json.loads(self.send("GET", "/vmstore", headers=headers).body)

    def settled(self, calls: int) -> dict[str, Any]:
        """Waits until so many calls are in the store, whole or as gaps; the figures then."""
        figures: dict[str, Any] = until(lambda: _settled(self.figures(), calls))
        return figures

    def stop(self) -> int:
        """Ends it in order; its exit code."""
        self.process.terminate()
        return self.process.wait(DEADLINE_S)


def _settled(figures: dict[str, Any], calls: int) -> dict[str, Any] | None:
    return figures if figures["recorded"] + figures["gaps"] >= calls else None


class Reply:
    """An answer: status, headers in order, body."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def chat(*texts: str, **fields: Any) -> dict[str, Any]:
    """The body of a chat whose messages take turns, the first a user's."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"model": "m", "messages": messages, **fields}


def until(look: Any) -> Any:
    """What `look` gives once it gives something."""
    deadline = time.monotonic() + DEADLINE_S
    while not (seen := look()):
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
    return seen


@contextmanager
def proxied(store: Path, *arguments: str, port: str | None = "0") -> Iterator[RunningProxy]:
    """A proxy on any free port until the end of the block, where it is stopped in order."""
    ports = [] if port is None else ["--port", port]
    command = [sys.executable, "-m", "vmstore", "proxy", str(store), *ports, "--json", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it was asked for"
        try:
            line = process.stdout.readline()
            assert line, "the proxy did not start"
            yield RunningProxy(process, json.loads(line))
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(DEADLINE_S)
