"""A provider in a process of its own: the same short answer to whatever it is asked, at once, streamed where asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MESSAGE = {"role": "assistant", "content": "In Japan."}
BODY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9_000, "completion_tokens": 3, "total_tokens": 9_003},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
EVENTS = [
    b"data: "
    + json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
    ).encode()
    + b"\n\n"
    for delta, finish in (*(({"content": word}, None) for word in ("In ", "Ja", "pan", ".")), ({}, "stop"))
]
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PIECES = [b"%x\r\n%b\r\n" % (len(event), event) for event in (*EVENTS, b"data: [DONE]\n\n")]
PIECE_S = 0.002  # between two pieces of a stream
STREAMED = b'"stream": true'


@contextmanager
def answering() -> Iterator[str]:
    """The address of a provider that answers until the end of the block."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None, "it was asked for"
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = head.lower().split(b"\r\n")
            size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:"))
            if STREAMED in await reader.readexactly(size):
                writer.write(STREAM)
                for piece in PIECES:
                    writer.write(piece)
                    await asyncio.sleep(PIECE_S)
                writer.write(b"0\r\n\r\n")
            else:
                writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
