"""A team's server over a store in PostgreSQL: what other hosts write, and a database that goes away."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")
pytest.importorskip("starlette", reason="the server needs starlette and uvicorn: pip install 'vmstore[debug]'")

import vmstore
from tests.postgres.server import own_server
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.debug.assets import Asset, Assets
from vmstore.namespace.backends.address import backend_of
from vmstore.serve.server import Listening, TeamServer
from vmstore.serve.tokens import TokenFile


@contextmanager
def serving(address: str, tokens: TokenFile) -> Iterator[str]:
    """A server in a thread of its own; where it listens."""
    server = TeamServer(
        backend_of(address),
        lambda name: vmstore.open(address, "rw", namespace=name, wait_s=1),
        Assets({"/": Asset(b"<p>", "text/html")}, "default-src 'none'"),
        Listening(port=0),
        clock=SystemClock(),
        tokens=tokens,
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.door.port}"
    finally:
        server.stop()
        thread.join(30)
        server.close()


def asked(url: str, token: str | None = None, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    headers = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_database_is_served_and_may_go_away(tmp_path: Path) -> None:
    """What another host acknowledged is answered, each token sees its namespace, and a database that is killed is not
    ready until it is back."""
    server = own_server()
    address = server.database()
    for team in ("team-a", "team-b"):
        with vmstore.open(f"{address}&cache={tmp_path / 'writer'}", namespace=team) as store:
            store.record("chat", {"messages": [{"role": "user", "content": f"of {team}"}]}, None)
    tokens = TokenFile(tmp_path / "tokens.json", SystemClock(), SystemIds())
    a = tokens.add("a", "unmasked", ("team-a",))
    with serving(f"{address}&cache={tmp_path / 'reader'}", tokens) as url:
        assert asked(f"{url}/namespaces", a) == (200, {"namespaces": ["team-a"]})
        assert asked(f"{url}/n/team-b/api/store", a)[0] == 404
        with vmstore.open(f"{address}&cache={tmp_path / 'writer'}", namespace="team-a") as store:
            store.record("chat", {"messages": [{"role": "user", "content": "just now"}]}, None)
        status, answer = asked(f"{url}/n/team-a/query", a, {"query": "PAGES line", "session": "chat"})
        assert status == 200 and [row["line"] for row in answer["rows"]][-1] == "just now"
        assert asked(f"{url}/ready")[0] == 200
        server.stop()
        status, answer = asked(f"{url}/ready")
        assert status == 503 and "postgresql" not in json.dumps(answer)
        assert asked(f"{url}/health")[0] == 200
        server.kill_and_start()
        for _ in range(50):
            status, answer = asked(f"{url}/ready", a)
            if status == 200:
                break
            time.sleep(0.1)
        assert status == 200, answer["error"]["reason"]
        status, answer = asked(f"{url}/n/team-a/query", a, {"query": "PAGES line", "session": "chat"})
        assert status == 200, answer["error"]["reason"]
