"""Serves a store over HTTP: finds a port, and runs until it is stopped."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Literal

import uvicorn

from vmstore.debug.api import DebugApi
from vmstore.debug.app import application
from vmstore.debug.assets import Assets
from vmstore.debug.guard import App, ServerAddress
from vmstore.errors import InputError
from vmstore.store.store import Store

PORT = 7117
TRIED = 20  # ports after the one that is taken
GRACE_S = 2  # for answers under way when the server is stopped


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
    ) -> None:
        self._socket = listener
        self.door = ServerAddress(host, self._socket.getsockname()[1], token)
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
            listening(host, port),
            host,
            token,
        )


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens at a port, or, where none is given, at the usual one or the next that is free.

    Raises InputError where the given port is taken, naming one that is free.
    """
    if port is not None:
        try:
            return _bound(host, port)
        except OSError as error:
            raise _refused(error, host, port) from error
    for usual in range(PORT, PORT + TRIED + 1):
        try:
            return _bound(host, usual)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise _refused(error, host, usual) from error
    return _bound(host, 0)


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except BaseException:
        found.close()
        raise
    return found


def _refused(error: OSError, host: str, port: int) -> InputError:
    """What to say of a port that cannot be had."""
    if error.errno == errno.EADDRINUSE:
        with _bound(host, 0) as spare:
            free = spare.getsockname()[1]
        return InputError(f"port {port} is in use; port {free} is free: --port {free}, or --port 0 for any")
    if error.errno == errno.EACCES:
        return InputError(f"port {port} is not for everyone to open ({error.strerror}); take one from 1024 up")
    return InputError(f"nothing can listen at {host} port {port} ({error}); name another with --host and --port")
