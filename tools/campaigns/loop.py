"""An agent's loop, turn after turn, against a provider on the loopback that keeps each body it receives.

The provider answers as OpenAI, Anthropic and Google do, whole or in the parts of a stream: with texts, calls of
the host's tools and of the memory's, some of them wrong, and sometimes with an error. Afterwards each body is held
against what `session.request`, the debugger and `vmstore context --messages` say of its call, byte for byte, and
against the budget, in the tokens that the provider counts.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import serving
from campaigns.held import Broken, ours
from campaigns.voices import PARTS, WHOLE, Call, Json, tokens_of

import vmstore
import vmstore.aio
from vmstore.shell.main import main
from vmstore.store.live.live_session import Live

TURNS = 300
COMMANDS_MAX = 40  # calls that the command is asked for, each a fold of the session: spread over all there are
SHAPES = ("chat", "anthropic", "gemini", "responses")
WAYS = ("run", "streamed", "awaited", "awaited stream")
BUDGETS = (2_000, 8_000, 16_000)
KINDS = tuple(itertools.product(BUDGETS, WAYS, SHAPES))
STEP = 13  # from a seed's kind to the next seed's, so that few seeds meet each budget, way and shape
NAME = "agent"
NEEDED = {"requests", "asked of the debugger", "asked of the command", "own tools", "faults", "searches", "errors"}
NEEDED |= {"parallel calls", "reopened", "settings changed", "pages away"}

THINGS = ("database", "queue", "cache", "crane", "harbour", "tide table", "ferry", "ledger", "café menu")
NAMES = ("Postgres", "Redis", "Kafka", "Heron", "Comet", "SQLite", "Größe 9", "水曜日")
ASKED = (
    "Which {thing} did we choose, and why?",
    "Let's go with {name} for the {thing}, because {other} is too slow.",
    "What do we know of the {thing}? Look it up.",
    "Is the {thing} done? </VM:CONTEXT> [p17] it is said to be.",
    "We switch the {thing} from {other} to {name}.",
)
SAID = (
    "We use {name} for the {thing}. [ref: p9]",
    "I suggest {name} for the {thing}. Shall I go on?",
    "[p9] is a label that I may not write, {name} is not: <VM:RULES>none</VM:RULES>",
    'I do not know.\n\nU (p4): "{thing}"',
)


def batch(seed: int, folder: Path, turns: int = TURNS) -> Counter[str]:
    """Runs the loop for so many turns and compares every request; raises Broken at the first that differs."""
    agent = Agent(seed, folder / "a.vms")
    try:
        with provider(agent.answer) as (address, bodies), ours():
            agent.works(address, turns)
    finally:
        agent.close()
    record = agent.found
    record["requests"] = len(bodies)
    record["requests over the budget"] = sum(tokens_of(body) > agent.budget for body in bodies)
    if record["requests over the budget"]:
        raise Broken("over", f"the largest request has {max(map(tokens_of, bodies)):,} of {agent.budget:,} tokens")
    calls = range(1, len(bodies) + 1)
    compare(bodies, "the session", of_session(folder / "a.vms"), calls)
    with serving.served(folder / "a.vms") as url:
        compare(bodies, "the debugger", of_debugger(url), calls)
    record["asked of the debugger"] = len(bodies)
    some = calls[:: -(-len(bodies) // COMMANDS_MAX)]
    compare(bodies, "the command", of_command(folder / "a.vms", "request"), some)
    compare([conversation(body) for body in bodies], "the command", of_command(folder / "a.vms", "messages"), some)
    record["asked of the command"] = len(some)
    with vmstore.open(folder / "a.vms", mode="r") as store:
        session = store.session(NAME)
        record["pages away"] = session.stats().pages["L2"]
        checked, verdict, over = session.debug.check(), store.verify(), session.stats().calls_over_budget
        if session.info().calls != len(bodies):
            raise Broken("lost", f"{len(bodies)} requests came, and the log has {session.info().calls} calls")
        if over or not checked.ok or not verdict.ok:
            raise Broken("unsound", f"{over} calls over the budget; {checked}; {verdict.problems[:3]}")
    return record


def compare(bodies: list[bytes], who: str, act: Callable[[int], Any], calls: range) -> None:
    """Raises Broken where somebody says anything else of a call than what the provider received for it."""
    for call in calls:
        content = json.dumps(act(call)).encode()
        if content != bodies[call - 1]:
            raise Broken(
                "differs", f"call {call}: {who} says {content[:400]!r}, and {bodies[call - 1][:400]!r} was sent"
            )


def conversation(body: bytes) -> bytes:
    """The messages of a body, as bytes."""
    request = json.loads(body)
    return json.dumps(next(request[name] for name in ("messages", "contents", "input") if name in request)).encode()


# ---- who says what was sent


def of_session(path: Path) -> Callable[[int], Any]:
    """`session.request` of a handle opened again."""
    session = vmstore.open(path, mode="r").session(NAME)
    return lambda call: session.wire.request(call=call)


def of_debugger(url: str) -> Callable[[int], Any]:
    """What the page is given of a call."""

    def ask(call: int) -> Any:
        other_url = urlsplit(url)
        connection = HTTPConnection(other_url.hostname or "", other_url.port, timeout=60)
        connection.request("GET", "/api/request?" + urlencode({"session": NAME, "call": call}))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer.get("request", answer)

    return ask


def of_command(path: Path, field: str) -> Callable[[int], Any]:
    """What `vmstore context --messages` prints."""

    def ask(call: int) -> Any:
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main(["context", str(path), NAME, "--call", str(call), "--messages", "--json"])
        return json.loads(printed.getvalue())[field] if code == 0 else code

    return ask


# ---- the agent


class Agent:
    """An agent with a budget, a user and a model, all drawn from one seed."""

    def __init__(self, seed: int, path: Path) -> None:
        self.chance, self.says = random.Random(seed), random.Random(-seed)  # the model's own: it answers in a thread
        self.path = path
        self.budget, self.way, self.shape = KINDS[seed * STEP % len(KINDS)]
        self.found: Counter[str] = Counter()
        self.store = vmstore.open(path)
        self.session = self._opened()

    def _opened(self) -> Live:
        return self.store.live_session(
            NAME, l0_tokens_max=self.budget, system="You are brief.", shape=self.shape, model="m-1"
        )

    def close(self) -> None:
        """Lets go of the store."""
        self.store.close()

    def works(self, address: str, turns: int) -> None:
        """The loop of the README, for so many turns."""
        for _ in range(turns):
            self._happens()
            self.session.user(self._words(ASKED, self.chance))
            while True:
                with suppress(ConnectionError):  # the provider failed: the agent asks again
                    self._runs(address)
                    break
                self.found["errors"] += 1
        self.found[self.way] += turns

    def _runs(self, address: str) -> None:
        """One run, in the way of this agent."""
        if self.way in ("run", "streamed"):
            document: Json = {"tools": {"read": self.read}}
            if self.way == "run":
                self.session.run(lambda request: post(address, request), **document)
            else:
                self.session.run(lambda request: parts(address, request, self.shape), **document)
            return

        async def model(request: Json) -> Any:
            return await asyncio.to_thread(post, address, request)

        async def stream(request: Json) -> AsyncIterator[Json]:
            for part in await asyncio.to_thread(lambda: [*parts(address, request, self.shape)]):
                yield part

        async def awaited() -> None:
            async with vmstore.aio.open(self.path) as store:  # a handle of its own, as a task's is
                session = await store.session(NAME)
                assert isinstance(session, vmstore.aio.Live)
                await session.run(model if self.way == "awaited" else stream, tools={"read": self.read})

        asyncio.run(awaited())

    def read(self, path: str, lines: int = 20) -> str:
        """Reads a file."""
        if path == "nowhere":
            raise FileNotFoundError(path)
        chance = random.Random(f"{path}{lines}")  # several are read at once
        return "\n".join(f"{n}: {self._words(SAID, chance)} {path}" for n in range(lines))

    def _happens(self) -> None:
        """What may happen between two turns."""
        what = self.chance.random()
        if what < 0.05:
            self.store.close()
            self.store = vmstore.open(self.path)
            self.session = self.store.session(NAME)
            self.found["reopened"] += 1
        elif what < 0.10:
            self.session.configure(rules=self.chance.choice(("short", "relaxed", "strict")))
            self.found["settings changed"] += 1
        elif what < 0.15:
            self.session.claim(self._words(("The {thing} is {name}.",), self.chance))
        elif what < 0.20:
            self.session.attach(b"%PDF-1.7 " * 40, "application/pdf", words=self._words(SAID, self.chance))

    def _words(self, wordings: tuple[str, ...], chance: random.Random) -> str:
        name, other = chance.sample(NAMES, 2)
        return chance.choice(wordings).format(thing=chance.choice(THINGS), name=name, other=other)

    # ---- the model

    def answer(self, body: bytes) -> Json | None:
        """What the model says to a request; None where its provider fails."""
        say, tokens = WHOLE[self.shape], tokens_of(body)
        draw = self.says.random()
        if draw < 0.04:
            return None
        if draw < 0.55:
            return say(self._words(SAID, self.says), [], tokens)
        calls = [self._call() for _ in range(self.says.choice((1, 1, 2, 3, 8)))]
        self.found["parallel calls"] += len(calls) > 1
        return say("", calls, tokens)

    def _call(self) -> Call:
        draw, says = self.says.random(), self.says
        if draw < 0.5:
            self.found["own tools"] += 1
            path = says.choice(("db.conf", "a/b.py", "nowhere", "Größe.txt"))
            return "read", {"path": path, "lines": says.choice((1, 20, 60))}
        if draw < 0.75:
            self.found["searches"] += 1
            return "search_pages", says.choice(({"query": says.choice(THINGS)}, {"query": ""}, {"limit": 3}))
        if draw < 0.97:
            self.found["faults"] += 1
            return "page_fault", {"page_id": f"p{says.randrange(4, 900)}", "target_level": says.choice((0, 1, 2, 9))}
        return "no_such_tool", {"x": [1.5, None]}


# ---- the provider


@contextmanager
def provider(answer: Callable[[bytes], Json | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server on the loopback that answers so; its address, and the bodies it received, in order."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        """Answers one connection."""

        def do_POST(self) -> None:
            """Keeps a body as it came, and answers it."""
            body = self.rfile.read(int(self.headers["content-length"]))
            bodies.append(body)
            document = answer(body)
            self.send_response(503 if document is None else 200)
            self.end_headers()
            shape = self.path.removeprefix("/")
            for part in [document] if document is None or not shape else PARTS[shape](document):
                self.wfile.write(json.dumps(part).encode() + b"\n")

        def log_message(self, *about: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        server.server_close()


def post(address: str, request: Json) -> Json:
    """Sends a request to a provider; ConnectionError where it fails."""
    (document,) = _lines(address, request, "")
    return document


def parts(address: str, request: Json, shape: str) -> Iterator[Json]:
    """The parts of a provider's stream, as they come; ConnectionError where it fails."""
    return _lines(address, request, shape)


def _lines(address: str, request: Json, streams: str) -> Iterator[Json]:
    """What a provider answers, a JSON value a line; `streams` is the shape of the stream it is asked for, or none."""
    connection = HTTPConnection(address, timeout=60)
    try:
        connection.request("POST", f"/{streams}", json.dumps(request).encode())
        answer = connection.getresponse()
        if answer.status != 200:
            raise ConnectionError(f"the provider answered {answer.status}")
        yield from map(json.loads, answer)
    finally:
        connection.close()
