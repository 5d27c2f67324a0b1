"""The embedder behind an address, against a server on this machine that answers, fails, stalls and lies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.refusals import refused
from vmstore.embedders.http import HttpEmbedder
from vmstore.errors import EmbedderError, InputError

Reply = tuple[int, bytes, dict[str, str]]
KEY = "sk-secret-key-of-the-caller"


class EmbeddingServer:
    """A server whose answers a test chooses; it keeps what it was asked and over how many connections."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = set[Any]()
        self.replies: list[Callable[[dict[str, Any]], Reply]] = []
        self.gate = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append({"path": self.path, **document})
                outer.headers.append(dict(self.headers))
                outer.connections.add(self.client_address)
                status, body, headers = (outer.replies.pop(0) if outer.replies else vectors)(document)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def vectors(fields: dict[str, Any]) -> Reply:
    """The length of each text and 1, the last text first."""
    rows = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(fields["input"])]
    return 200, json.dumps({"object": "list", "data": rows[::-1], "usage": {}}).encode(), {}


def failing(status: int, text: str = "no", **headers: str) -> Callable[[dict[str, Any]], Reply]:
    """An answer of a status."""
    return lambda value: (status, text.encode(), headers)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """A server for one test."""
    made = EmbeddingServer()
    yield made
    made.gate.set()
    made.server.shutdown()
    made.server.server_close()


def test_texts_go_there_and_vectors_come_back(server: EmbeddingServer) -> None:
    """Texts are asked about in requests of a bounded size over one connection, and vectors come in their order."""
    embedder = HttpEmbedder(server.url, "m", api_key=KEY, texts_max=2)
    assert embedder.dimension is None
    assert embedder.embed(["a", "bb", "ccc"]) == [[1, 1], [2, 1], [3, 1]]
    assert (embedder.dimension, embedder.name) == (2, "m")
    assert [record["input"] for record in server.asked] == [["a", "bb"], ["ccc"]]
    assert server.asked[0]["path"] == "/v1/embeddings" and "dimensions" not in server.asked[0]
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert len(server.connections) == 1
    embedder.close()
    HttpEmbedder(server.url + "/", "m", dimension=2).embed(["a"])
    assert server.asked[-1]["dimensions"] == 2 and "Authorization" not in server.headers[-1]


def test_what_passes_is_tried_again(server: EmbeddingServer) -> None:
    """An overloaded server is asked again after pauses that grow and heed what it asks for; then it is told."""
    waits: list[float] = []
    embedder = HttpEmbedder(server.url, "m", wait=waits.append)
    server.replies = [failing(429, **{"Retry-After": "3"}), failing(503)]
    assert embedder.embed(["a"]) == [[1, 1]]
    assert waits == [3.0, 1.0]
    server.replies = [failing(500)] * 3
    with refused("answered-an-error", EmbedderError, "500"):
        embedder.embed(["a"])
    assert len(server.asked) == 6


def test_what_does_not_pass_is_told_at_once(server: EmbeddingServer) -> None:
    """A refusal is told once, in few words, and without the key that it repeats."""
    server.replies = [failing(401, f"bad key {KEY} " + "x" * 9_000)]
    with refused("answered-an-error", EmbedderError, "401") as caught:
        HttpEmbedder(server.url, "m", api_key=KEY).embed(["a"])
    assert len(server.asked) == 1 and len(str(caught.value)) < 300
    assert KEY not in repr(HttpEmbedder(server.url, "m", api_key=KEY))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"data":[{"embedding":["x"]}]}', b'{"data":[{"embedding":[NaN]}]}', b"\xff" * 20]
)
def test_what_is_no_answer_is_named(server: EmbeddingServer, body: bytes) -> None:
    """A body that holds no embeddings is an error that says so."""
    server.replies = [lambda value: (200, body, {})]
    with refused("not-embeddings", EmbedderError):
        HttpEmbedder(server.url, "m").embed(["a"])


def test_a_stalled_server_is_given_up(server: EmbeddingServer) -> None:
    """A server that stalls is given up after its time, and one that is not there is named."""
    server.replies = [lambda value: (server.gate.wait(30), (200, b"", {}))[1]]
    with refused("not-reached", EmbedderError):
        HttpEmbedder(server.url, "m", timeout_s=0.05, attempts=1).embed(["a"])
    with refused("not-reached", EmbedderError):
        HttpEmbedder("http://127.0.0.1:1/v1", "m", attempts=2, wait=lambda seconds: None).embed(["a"])


def test_a_connection_the_server_closed_is_opened_again(server: EmbeddingServer) -> None:
    """A connection that the server closed between two questions costs no attempt."""
    embedder = HttpEmbedder(server.url, "m", attempts=1)
    server.replies = [lambda value: (*vectors(value)[:2], {"Connection": "close"})]
    assert embedder.embed(["a"]) == embedder.embed(["a"])


@pytest.mark.parametrize(
    "fields",
    [
        {"base_url": "ftp://h"}, {"base_url": "host/v1"}, {"base_url": "http://u:p@h/v1"}, {"model": ""},
        {"attempts": 0}, {"timeout_s": 0}, {"base_url": None},
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused(fields: dict[str, Any]) -> None:
    """What is no address, no model or no bound is refused before anybody is asked."""
    with pytest.raises(InputError):
        HttpEmbedder(**{"base_url": "http://h/v1", "model": "m", **fields})
