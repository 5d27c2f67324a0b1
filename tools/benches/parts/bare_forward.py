"""A bare forward in a process of its own: the proxy's own libraries, and nothing but the passing on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import web
from yarl import URL

HOP = ("host", "connection", "transfer-encoding")


@contextmanager
def forwarding(upstream: str) -> Iterator[str]:
    """The address of a forward to an upstream, until the end of the block."""
    with subprocess.Popen([sys.executable, __file__, upstream], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None, "it was asked for"
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def _serve(upstream: str) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
    ) as client:

        async def forward(request: web.BaseRequest) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
            address = URL(upstream + request.raw_path, encoded=True)
            data = request.content.iter_any()
            async with client.request(request.method, address, headers=headers, data=data) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
                return response

        runner = web.ServerRunner(web.Server(forward, access_log=None, auto_decompress=False))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1_024)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
