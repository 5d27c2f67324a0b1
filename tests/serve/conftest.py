"""A server for a team that is really served, over a store of two namespaces."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import vmstore
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.debug import assets
from vmstore.namespace.backends.address import backend_of
from vmstore.serve.server import Listening, TeamServer
from vmstore.serve.tokens import Role, TokenFile

KEY = "ghp_" + "a1B2" * 9  # which redaction masks
WORDS = {"team-a": f"apricots by the lake, {KEY}", "team-b": "walnuts by the mill"}


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value."""
        return json.loads(self.body)


class Team(NamedTuple):
    """A server that answers, and its file of tokens."""

    server: TeamServer
    tokens: TokenFile
    clock: TestClock

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.door.port

    def token(self, name: str, role: Role = "read", *namespaces: str, days: int | None = None) -> str:
        """A new token."""
        return self.tokens.add(name, role, namespaces or None, days)

    def ask(
        self, target: str, token: str | None = None, *, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> Answer:
        """One request; the token goes in a header."""
        fields = {"Host": f"127.0.0.1:{self.port}"} if "Host" not in headers else {}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            fields["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in fields.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        finally:
            connection.close()

    def query(self, namespace: str, token: str | None, **question: Any) -> Answer:
        """A statement by POST."""
        body = json.dumps(question).encode()
        target = f"/n/{namespace}/query"
        return self.ask(target, token, method="POST", body=body, Content_Type="application/json")


class TestClock(SystemClock):
    """The machine's clock, which can be set forward."""

    __test__ = False

    def __init__(self) -> None:
        self.ahead_us = 0

    def now(self) -> int:
        """Microseconds since 1970 UTC, and as many as it was set forward."""
        return super().now() + self.ahead_us

    __slots__ = ("ahead_us",)


Serve = Callable[..., Team]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of two namespaces, each with a session of one message."""
    for namespace, words in WORDS.items():
        with vmstore.open(tmp_path / "agent.vms", namespace=namespace) as store:
            request = {"model": "m", "messages": [{"role": "user", "content": words}]}
            store.record(f"of-{namespace}", request, {"choices": [{"message": {"role": "assistant", "content": "so"}}]})
    return tmp_path / "agent.vms"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A small page, whether one is built or not."""
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text('<!doctype html><script src="./page.js"></script>')
    (folder / "page.js").write_text("0")
    return folder


@pytest.fixture
def serve(tmp_path: Path, page: Path) -> Iterator[Serve]:
    """Serves stores, each until the end of the test."""
    with ExitStack() as stack:
        yield lambda address, **options: stack.enter_context(_running(address, tmp_path / "tokens.json", page, options))


@pytest.fixture
def team(serve: Serve, path: Path) -> Team:
    """The store of two namespaces, served to those who have a token."""
    return serve(path)


class _running:
    """A server in a thread of its own, until the end of the block."""

    def __init__(self, address: Any, tokens: Path, page: Path, options: dict[str, Any]) -> None:
        clock = TestClock()
        file = TokenFile(tokens, clock, SystemIds())
        if options.pop("tokens", True):
            if not tokens.exists():
                file.add("first", "metrics")
            options["tokens"] = TokenFile(tokens, clock, SystemIds())
        where = options.pop("where", Listening(port=0))
        self.server = TeamServer(
            backend_of(address),
            lambda name: vmstore.open(address, namespace=name, wait_s=2),
            assets.read(page),
            where,
            clock=clock,
            **options,
        )
        self.team = Team(self.server, file, clock)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> Team:
        self.thread.start()
        return self.team

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        self.thread.join(30)
        self.server.close()
        assert not self.thread.is_alive(), "the server ends when it is told to"
