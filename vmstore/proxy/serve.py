"""Serves the proxy: its ports, the writers of their stores, and an end in order."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

import aiohttp
import msgspec
from aiohttp import web

from vmstore.core.clock import Stopwatch
from vmstore.core.system.sockets import listening
from vmstore.debug.guard import ServerAddress
from vmstore.errors import InputError
from vmstore.proxy.figures import ProxyFigures
from vmstore.proxy.forward import Forwarder
from vmstore.proxy.frames import OpenStore
from vmstore.proxy.ports import PortSettings
from vmstore.proxy.writer import CallWriter

LINE_BYTES_MAX = 64 << 10  # of an address and of a header
CONNECT_S = 30.0  # until an upstream takes a connection; how long it thinks is its own affair
GRACE_S = 5.0  # for answers under way when the proxy is stopped
FLUSH_S = 30.0  # for calls that wait to be written then


class BoundPort(msgspec.Struct, frozen=True):
    """A port that listens, before it answers."""

    settings: PortSettings
    address: ServerAddress
    socket: socket.socket


def bound(ports: Sequence[PortSettings], host: str, token: str | None) -> list[BoundPort]:
    """Every port bound; InputError where one is taken, and none is then."""
    taken: list[BoundPort] = []
    try:
        for settings in ports:
            channel = listening(host, settings.port)
            taken.append(BoundPort(settings, ServerAddress(host, channel.getsockname()[1], token), channel))
    except InputError:
        for port in taken:
            port.socket.close()
        raise
    return taken


class Proxy:
    """A proxy of one store, at one or several ports."""

    def __init__(self, opening: OpenStore, ports: Sequence[BoundPort], clock: Stopwatch) -> None:
        self.figures = ProxyFigures()
        self._opening = opening
        self._ports = ports
        self._clock = clock
        self._writers: dict[OpenStore, CallWriter] = {}
        self._stopped = asyncio.Event()

    async def run(self, started: Callable[[], None]) -> int:
        """Answers until it is stopped, by a signal or by `stop`; how many calls were not written when it ended.

        Calls `started` when every port answers. StoreError where the store cannot be opened.
        """
        try:
            for port in self._ports:
                await self._writer(port.settings)
            await self._answer(started)
        finally:
            for port in self._ports:
                port.socket.close()
            await asyncio.gather(*(writer.close(FLUSH_S) for writer in self._writers.values()))
        return sum(writer.unsettled() for writer in self._writers.values())

    def stop(self) -> None:
        """Ends `run`, from the loop's own thread."""
        self._stopped.set()

    async def _answer(self, started: Callable[[], None]) -> None:
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        runners: list[web.ServerRunner] = []
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
        ) as client:
            try:
                for port in self._ports:
                    writer = await self._writer(port.settings)
                    forwarder = Forwarder(port.settings, port.address, client, writer, self.figures)
                    runners.append(await _serving(port.socket, forwarder))
                self._listen_to_signals()
                started()
                await self._stopped.wait()
            finally:
                await asyncio.gather(*(runner.cleanup() for runner in runners))

    async def _writer(self, settings: PortSettings) -> CallWriter:
        """The writer of a port's namespace and redaction; ports that have them in common share it."""
        opening = self._opening
        opening = msgspec.structs.replace(
            opening,
            namespace=settings.namespace or opening.namespace,
            redaction=settings.redact or opening.redaction,
        )
        if opening not in self._writers:
            marked = msgspec.structs.replace(
                opening, base=opening.base + ("-" + str(len(self._writers) + 1)) * bool(self._writers)
            )
            writer = CallWriter(marked, self.figures, self._clock)
            self._writers[opening] = writer
            await writer.start()
        return self._writers[opening]

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(RuntimeError, ValueError):  # only the main thread may
                loop.add_signal_handler(number, self.stop)


async def _serving(channel: socket.socket, forwarder: Forwarder) -> web.ServerRunner:
    server = web.Server(
        forwarder.answer,
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        max_line_size=LINE_BYTES_MAX,
        max_field_size=LINE_BYTES_MAX,
    )
    runner = web.ServerRunner(server, shutdown_timeout=GRACE_S)
    await runner.setup()
    await web.SockSite(runner, channel, backlog=1_024).start()
    return runner
