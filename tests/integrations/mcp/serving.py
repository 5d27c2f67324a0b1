"""MCP servers as clients meet them: in process, as a process, over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import vmstore
from vmstore.integrations.mcp.server import MemoryServer

Work = Callable[[Any], Awaitable[Any]]
CHECKOUT = Path(__file__).resolve().parents[3]
ENV = {**os.environ, "PYTHONPATH": str(CHECKOUT)}


def fill(path: Path) -> Path:
    """A store with two sessions: a trip whose turns are tagged, and a talk about a harbour."""
    with vmstore.open(path) as store:
        live = store.live_session("trip", l0_tokens_max=16_000)
        pages: list[str] = []
        for text, answer in (
            ("The budget of the trip to Kyoto is 900 euros.", "Noted: 900 euros for Kyoto."),
            ("We stay at the hotel Maple near the river.", "The hotel Maple it is."),
        ):
            pages += live.user(text)
            live.pack()
            live.assistant(answer)
        live.memory.turns.tag()
        live.memory.tags.give(pages[0], "money")
        harbour = {"model": "m", "messages": [{"role": "user", "content": "The harbour master is Olga."}]}
        store.record("harbour", harbour, None)
    return path


def in_process(server: MemoryServer, work: Work) -> Any:
    """The result of some work with a client of a server in this process."""

    async def main() -> Any:
        async with Client(server) as client:
            return await work(client)

    return anyio.run(main)


def as_process(store: Path, work: Work, *options: str) -> Any:
    """The result of some work with a client of `vmstore mcp`, over standard input and output."""
    arguments = ["-m", "vmstore", "mcp", str(store), *options]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=ENV)

    async def main() -> Any:
        async with Client(stdio_client(parameters)) as client:
            return await work(client)

    return anyio.run(main)


class Listening(NamedTuple):
    """A server over HTTP: where it is, and the end of what it wrote, which is there once it is stopped."""

    url: str
    port: int
    written: list[str]


@contextmanager
def over_http(store: Path, *options: str) -> Iterator[Listening]:
    """`vmstore mcp --http` on a free port, in a process."""
    command = [sys.executable, "-m", "vmstore", "mcp", str(store), "--http", "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        line = json.loads(process.stdout.readline())
        listening = Listening(line["url"], line["port"], [])
        try:
            yield listening
        finally:
            process.send_signal(signal.SIGINT)
            listening.written.extend(process.communicate(timeout=30))
