"""A debugger that is really served, over a store with the session that ships with vmstore."""

from __future__ import annotations

import http.client
import importlib.resources
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import vmstore
from vmstore.debug import assets
from vmstore.debug.api import DebugApi
from vmstore.debug.serve import BoundServer
from vmstore.store.store import Store

DEMO = "planning-220"
INDEX = """<!doctype html><title>t</title><style>p{margin:0}</style>
<script type="module" src="/assets/app-1a2b.js"></script><p>a page</p><script>var inline = 1 < 2;</script>"""
SCRIPT = "document.title = 'here';\n" * 100


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value; it must say that it is JSON."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """What is said of a refusal: a reason and a remedy at least."""
        fields: dict[str, Any] = self.json["error"]
        assert fields["reason"] and "remedy" in fields
        return fields


class Served(NamedTuple):
    """A debugger that answers."""

    store: Store
    answers: DebugApi
    listening: BoundServer

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.listening.door.port

    def ask(self, target: str, *, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
        """One request as it is told; the Host is ours where none is told."""
        fields = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in fields.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def get(self, path: str, **parameters: Any) -> Answer:
        """Asks the API."""
        return self.ask(f"/api/{path}?{urlencode(parameters)}")

    def read(self, path: str, **parameters: Any) -> Any:
        """What the API answers; it must not refuse."""
        answer = self.get(path, **parameters)
        assert answer.status == 200, answer.body
        return answer.json


Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small page with what a built one has: an index with inline parts, an asset beside it, and a map."""
    folder = tmp_path_factory.mktemp("bundle") / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "assets" / "app-1a2b.js").write_text(SCRIPT)
    (folder / "assets" / "app-1a2b.js.map").write_text("{}")
    (folder.parent / "secret.js").write_text("not yours")
    return folder


@contextmanager
def running(store: Store, page: Path, **items: Any) -> Iterator[Served]:
    """A debugger in a thread of its own, until the end of the block."""
    answers = DebugApi(store, "agent.vms", "default", items.pop("redact", None))
    listening = BoundServer(store, answers, assets.read(page), **{"port": 0, **items})
    thread = threading.Thread(target=listening.run, daemon=True)
    thread.start()
    try:
        yield Served(store, answers, listening)
    finally:
        listening.stop()
        thread.join(30)
        assert not thread.is_alive(), "the server ends when it is told to"


@pytest.fixture
def serve(page: Path) -> Iterator[Serve]:
    """Serves stores, each until the end of the test."""
    with ExitStack() as stack:
        yield lambda store, **options: stack.enter_context(running(store, page, **options))


@pytest.fixture(scope="session")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the session that ships; it is read only."""
    path = tmp_path_factory.mktemp("demo") / "agent.vms"
    demo = importlib.resources.files("vmstore.shell") / "demo.jsonl"
    with vmstore.open(path) as store, importlib.resources.as_file(demo) as file:
        store.import_file(file)
    return path


@pytest.fixture(scope="session")
def demo(demo_path: Path, page: Path) -> Iterator[Served]:
    """The debugger of that store."""
    with vmstore.open(demo_path) as store, running(store, page) as served:
        yield served


@pytest.fixture
def small() -> Iterator[Store]:
    """A store with one call of one message."""
    with vmstore.memory_store() as store:
        store.record("s1", {"model": "m", "messages": [{"role": "user", "content": "hello"}]})
        yield store
