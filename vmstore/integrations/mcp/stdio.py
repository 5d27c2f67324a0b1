"""The MCP server over standard input and output: a message a line, and an answer to what is none."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from vmstore.integrations.mcp.server import MemoryServer

LINE_BYTES_MAX = 16 << 20
READ_BYTES = 1 << 16
ANSWER_S = 60  # for what is being answered when standard input ends
TOO_LONG = f"a message is longer than {LINE_BYTES_MAX >> 20} MiB; send it in parts"
NOT_JSON = "a line is no JSON-RPC message; write each as JSON in a line of its own"


class BoundedLines:
    """The lines of a binary stream; of one that is too long nothing is kept, and an empty object stands for it.

    An empty object is no message, so it is answered as one that cannot be read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.too_long = False
        """Whether the line given last was."""

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await run_sync(self._stream.readline, LINE_BYTES_MAX, abandon_on_cancel=True):
            self.too_long = len(line) >= LINE_BYTES_MAX and not line.endswith(b"\n")
            while self.too_long and not line.endswith(b"\n"):
                line = await run_sync(self._stream.readline, READ_BYTES, abandon_on_cancel=True)
                if not line:
                    break
            text = "{}" if self.too_long else line.decode("utf-8", "replace")
            if text.strip():
                yield text


async def serve_stdio(server: MemoryServer) -> None:
    """Answers on standard output until standard input ends and all that was asked is answered."""
    lines: Any = BoundedLines(sys.stdin.buffer)
    async with stdio_server(stdin=lines) as (read, write):
        talk = _Conversation(lines, write)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.take_in, read)
            tasks.start_soon(talk.give_out)
            async with talk.answers:
                await server.serve(talk.messages, talk.answers)


class _Conversation:
    """Stands between the standard streams and the server, which drops what it cannot read and stops at once."""

    def __init__(self, lines: BoundedLines, write: Any) -> None:
        self._lines = lines
        self._write = write
        self._sender, self.messages = anyio.create_memory_object_stream[Any](0)
        self.answers, self._receiver = anyio.create_memory_object_stream[Any](0)
        self._asked: set[str | int] = set()
        self._answered = anyio.Event()

    async def take_in(self, read: Any) -> None:
        """Hands messages to the server, and answers what is none; ends once all are answered."""
        async with self._sender, read:
            async for item in read:
                if isinstance(item, Exception):
                    reason = TOO_LONG if self._lines.too_long else NOT_JSON
                    error = types.ErrorData(code=types.PARSE_ERROR, message=reason)
                    await self._write.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))
                    continue
                if isinstance(item.message, types.JSONRPCRequest):
                    self._asked.add(item.message.id)
                await self._sender.send(item)
            with anyio.move_on_after(ANSWER_S):
                while self._asked:
                    self._answered = anyio.Event()
                    await self._answered.wait()

    async def give_out(self) -> None:
        """Writes what the server says."""
        async with self._write, self._receiver:
            async for item in self._receiver:
                await self._write.send(item)
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._asked.discard(item.message.id)
                    self._answered.set()
