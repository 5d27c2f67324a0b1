"""The debugger: a session's film and texts, asked of its server over loopback."""

from __future__ import annotations

import gzip
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import vmstore
from benches.parts import stores, text
from benches.parts.rounds import LOWER, Bench, Goal, Row, row
from vmstore.debug.api import DebugApi
from vmstore.debug.assets import Asset, Assets
from vmstore.debug.export import exported
from vmstore.debug.serve import BoundServer
from vmstore.debug.session_data import film

MADE = Goal("film of 1,000 calls and 10,000 pages, made: ms of CPU", 500, LOWER)
AGAIN = Goal("the same film, asked for again: ms of CPU, both ends", 100, LOWER)
TEXTS = Goal("the texts of a context, in one request: ms of CPU, both ends", 100, LOWER)
REQUEST = Goal("the request of a call: ms of CPU, both ends", 100, LOWER)
WHY = Goal("why a page is there, in VMQL: ms of CPU, both ends", 100, LOWER)
PACKED = Goal("the same film, packed, bytes", 1_000_000, LOWER)
SHARED = Goal("that session as one file, masked, bytes", 5_000_000, LOWER)
GOALS = (MADE, AGAIN, TEXTS, REQUEST, WHY, PACKED, SHARED)

CALLS = (1_000, 40)
MESSAGES = 10  # that are new in each call
WINDOW = 200  # messages of a request
ROUNDS = 9


def measure(bench: Bench) -> Iterator[Row]:
    """Makes the film again and again, then asks a real server one thing after the other."""
    count = bench.size(*CALLS)
    path = stores.built(bench, f"scrubbed-{count}", lambda place: scrubbed(place, count))
    with vmstore.open(path) as store, served(store) as ask:
        session = store.session(stores.SESSION)
        made = film(store, session)
        last = len(made.calls.call) - 1
        here = [n for n in range(len(made.stays.page)) if made.stays.begin[n] <= last < made.stays.end[n]]
        positions = ",".join(str(made.stays.content[n]) for n in here)
        page = made.pages.page[made.stays.page[here[-1]]]
        contenders: dict[str, Callable[[], object]] = {
            "again": lambda: ask("/api/film"),
            "texts": lambda: ask(f"/api/texts?at={positions}"),
            "request": lambda: ask(f"/api/request?call={last}"),
            "why": lambda: ask(f"/api/vmql?q=WHY+{page}+IN+CONTEXT+AT+CALL+{last + 1}"),
        }
        taken = bench.race({"film": lambda: msgspec.json.encode(film(store, session))}, bench.size(ROUNDS, 2))
        yield row(MADE, in_ms(taken["film"]))
        for contender in contenders.values():
            contender()
        times = bench.race(contenders, bench.size(ROUNDS, 2))
        for goal, name in ((AGAIN, "again"), (TEXTS, "texts"), (REQUEST, "request"), (WHY, "why")):
            yield row(goal, in_ms(times[name]))
        plain = ask("/api/film")
        bench.say(f"  {len(made.stays.page)} stays, {len(made.events.kind)} events, {len(plain)} bytes unpacked")
        yield row(PACKED, [len(gzip.compress(plain, 5))])
        yield row(SHARED, [len(exported(store, session).content)])


def in_ms(seconds: list[float]) -> list[float]:
    """Milliseconds of seconds."""
    return [1e3 * each_seconds for each_seconds in seconds]


@contextmanager
def served(store: vmstore.Store) -> Iterator[Callable[[str], bytes]]:
    """A debugger in a thread, asked over one connection; what is packed comes unpacked."""
    page = Assets({"/": Asset(b"<p>", "text/html")}, "default-src 'none'")
    listening = BoundServer(store, DebugApi(store, "agent.vms", "default"), page, port=0)
    thread = threading.Thread(target=listening.run)
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", listening.door.port)

    def ask(target: str) -> bytes:
        headers = {"Accept-Encoding": "gzip"}
        connection.request("GET", target, headers=headers)
        try:
            response = connection.getresponse()
        except http.client.RemoteDisconnected:  # the server closes what was idle for seconds, on a busy machine
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        return gzip.decompress(content) if response.headers["Content-Encoding"] == "gzip" else content

    try:
        yield ask
    finally:
        connection.close()
        listening.stop()
        thread.join()


def scrubbed(path: Path, calls: int) -> None:
    """A store with a session whose requests are its last messages: each call brings some and lets as many go."""
    texts = iter(text.Texts(1))
    records: list[dict[str, str]] = []
    with vmstore.open(path) as store:
        for call in range(calls):
            for nth in range(MESSAGES - 1):
                records.append({"role": "assistant" if nth else "user", "content": next(texts).decode()})
            answer = {"role": "assistant", "content": next(texts).decode()}
            response = {"choices": [{"message": answer, "finish_reason": "stop"}]}
            request = {"model": "m", "messages": records[-WINDOW:]}
            store.record(stores.SESSION, request, response, at_us=1 + call * 1_000_000)
            records.append(answer)
        store.admin.follow()
