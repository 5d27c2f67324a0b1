"""Serves a store over HTTP: finds a port, and runs until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Literal, NamedTuple

import uvicorn

from vmstore.core.system.sockets import listening
from vmstore.debug.api import DebugApi
from vmstore.debug.app import application
from vmstore.debug.assets import Assets
from vmstore.debug.guard import App, ServerAddress
from vmstore.store.store import Store

PORT = 7117
GRACE_S = 2  # for answers under way when the server is stopped


class TlsFiles(NamedTuple):
    """The files of a certificate with its chain and of its key."""

    certificate: str
    key: str


class HttpServer:
    """A server on a socket of its own that does not answer yet; connections already made wait for `run`.

    `application` makes what answers, of the server's address and of a function that says whether it is to stop.
    """

    def __init__(
        self,
        application: Callable[[ServerAddress, Callable[[], bool]], App],
        listener: socket.socket,
        host: str,
        token: str | None = None,
        *,
        lifespan: Literal["on", "off"] = "off",
        tls: TlsFiles | None = None,
        public: str | None = None,
    ) -> None:
        self._socket = listener
        scheme = "http" if tls is None else "https"
        self.door = ServerAddress(host, self._socket.getsockname()[1], token, scheme, public)
        self._server = uvicorn.Server(
            uvicorn.Config(
                application(self.door, lambda: self._server.should_exit),
                log_level="warning",
                access_log=False,
                lifespan=lifespan,
                ws="none",
                http="h11",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_S,
                ssl_certfile=None if tls is None else tls.certificate,
                ssl_keyfile=None if tls is None else tls.key,
            )
        )

    def run(self) -> None:
        """Answers until it is stopped, by `stop` or by Ctrl-C, which is then raised."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Ends `run`, from any thread."""
        self._server.should_exit = True


class BoundServer(HttpServer):
    """The debugger's server."""

    def __init__(
        self,
        store: Store,
        answers: DebugApi,
        assets: Assets,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(
            lambda door, stopped: application(store, answers, assets, door, stopped),
            listening(host, port, PORT),
            host,
            token,
        )
