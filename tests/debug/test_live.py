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
    response = connection.getresponse()
    assert response.status == 200 and response.headers["content-type"].startswith("text/event-stream")
    assert response.readline() == b"retry: 2000\n"
    yield {}
    while line := response.readline():
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_a_session_that_is_written_is_followed(small: Store, serve: Serve) -> None:
    """Each session that grew is told with its position and calls, a new one too, and the film has what is new."""
    served = serve(small)
    records = events(served)
    next(records)
    for name in ("s1", "s2"):
        small.record(name, {"model": "m", "messages": [{"role": "user", "content": f"more of {name}"}]})
        record = next(records)
        info = small.session(name).info()
        while record["session"] != name or record["position"] != info.position:  # told half-way
            record = next(records)
        assert record == {"session": name, "position": info.position, "calls": info.calls}
        assert len(served.read("film", session=name)["calls"]["call"]) == info.calls


def test_what_another_process_writes_is_told(tmp_path: object, serve: Serve) -> None:
    """A second handle on the store writes, and the server notices."""
    path = f"{tmp_path}/agent.vms"
    with vmstore.open(path) as store, vmstore.open(path) as other:
        records = events(serve(store))
        next(records)
        other.record("s", {"model": "m", "messages": []})
        assert next(records)["session"] == "s"
