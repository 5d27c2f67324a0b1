"""Makes the server of a team: its port, its namespaces and its guard, in the debugger's own server."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from vmstore.core.clock import Stopwatch
from vmstore.core.system.sockets import listening
from vmstore.debug.assets import Assets
from vmstore.debug.guard import App, ServerAddress, is_loopback
from vmstore.debug.serve import HttpServer, TlsFiles
from vmstore.errors import InputError
from vmstore.namespace.backends.port import Backend
from vmstore.serve.app import TeamApp, guarded
from vmstore.serve.figures import ServerFigures
from vmstore.serve.namespaces import Namespaces
from vmstore.serve.tokens import TokenFile
from vmstore.store.store import Store

PORT = 7119


class Listening(NamedTuple):
    """The place a server listens at; `public` is its address where another server stands before it."""

    host: str = "127.0.0.1"
    port: int | None = None
    tls: TlsFiles | None = None
    public: str | None = None


class TeamServer(HttpServer):
    """A server over the namespaces of a store; close it once it has run."""

    def __init__(
        self,
        backend: Backend,
        opened: Callable[[str], Store],
        assets: Assets,
        where: Listening,
        *,
        clock: Stopwatch,
        tokens: TokenFile | None = None,
        only: frozenset[str] | None = None,
        open_metrics: bool = False,
    ) -> None:
        check(where, tokens)
        figures = ServerFigures()

        def application(door: ServerAddress, stopped: Callable[[], bool]) -> App:
            self._namespaces = Namespaces(backend, opened, assets, stopped, figures.refused, only)
            app = TeamApp(self._namespaces, tokens, door, stopped, figures, clock)
            return guarded(app, door, tokens, figures, open_metrics=open_metrics)

        channel = listening(where.host, where.port, PORT)
        super().__init__(application, channel, where.host, tls=where.tls, public=where.public)

    def close(self) -> None:
        """Closes every namespace."""
        self._namespaces.close()


def check(where: Listening, tokens: TokenFile | None) -> None:
    """Raises InputError where a server would let in anybody, or is given an address that is none."""
    if tokens is None and not (is_loopback(where.host) and where.public is None):
        raise InputError(
            "other machines could ask without a token; make one with `vmstore token add NAME --tokens FILE`, and start "
            "with --tokens FILE",
            code="tokens-needed",
        )
    if tokens is not None:
        tokens.all()
    if where.public is not None:
        parts = urlsplit(where.public)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or "@" in parts.netloc:
            raise InputError(
                f"{where.public!r:.80} is no address of a server; give one like https://memory.example, without a path",
                code="not-an-address",
            )
