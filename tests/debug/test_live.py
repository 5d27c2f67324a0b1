"""Who listens learns that a session grew."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import vmstore
from tests.debug.conftest import Serve, Served
from vmstore.store.store import Store


def events(served: Served) -> Iterator[dict[str, object]]:
    """What the server tells, from when it has begun to listen."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.request("GET", "/api/live")
    found = connection.getresponse()
    assert found.status == 200 and found.headers["content-type"].startswith("text/event-stream")
    assert found.readline() == b"retry: 2000\n"
    yield {}
    while line := found.readline():
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_a_session_that_is_written_is_followed(small: Store, serve: Serve) -> None:
    """Each session that grew is told with its position and calls, a new one too, and the film has what is new."""
    served = serve(small)
    told = events(served)
    next(told)
    for name in ("s1", "s2"):
        small.record(name, {"model": "m", "messages": [{"role": "user", "content": f"more of {name}"}]})
        found = next(told)
        info = small.session(name).info()
        while found["session"] != name or found["position"] != info.position:  # told half-way
            found = next(told)
        assert found == {"session": name, "position": info.position, "calls": info.calls}
        assert len(served.read("film", session=name)["calls"]["call"]) == info.calls


def test_what_another_process_writes_is_told(tmp_path: object, serve: Serve) -> None:
    """A second handle on the store writes, and the server notices."""
    path = f"{tmp_path}/agent.vms"
    with vmstore.open(path) as store, vmstore.open(path) as other:
        told = events(serve(store))
        next(told)
        other.record("s", {"model": "m", "messages": []})
        assert next(told)["session"] == "s"
