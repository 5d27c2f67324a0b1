"""The proxy: what recording adds to a call that is forwarded, beside a bare forward of the same request."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from benches.parts import answers, bare_forward
from benches.parts.rounds import HIGHER, LOWER, Bench, Goal, Row, percentile, row, wall

P50 = Goal("what the proxy adds to a call, above a bare forward of the same request: p50, ms", 3, LOWER)
P99 = Goal("the same: p99, ms", 10, LOWER)
FIRST = Goal("what it adds until the first streamed byte: p50, ms", 1, LOWER)
RATE = Goal("calls a second of 32 clients, each recorded when the clock stops, against the bare forward", 0.5, HIGHER)
GAPS = Goal("of those, calls that became gaps", 0, LOWER)
CALLS_S = Goal("the same calls a second", "", HIGHER)
MANAGED = Goal(
    "what a managed window of 8,000 tokens adds to a request of 400 messages (36,000 tokens): p50, ms", "", LOWER
)
GOALS = (P50, P99, FIRST, RATE, GAPS, CALLS_S, MANAGED)

CLIENTS = 32
MESSAGES = 20  # of each conversation at its beginning
CALLS = (30, 3)  # of each client
PAIRS = (600, 20)
STREAMS = (150, 5)
ROUNDS = (5, 2)
LONG, WINDOW, MANAGED_CALLS = 400, 8_000, (20, 3)  # messages, tokens, calls
POLL_S = 0.02
WORDS = "words of a session " * 15
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n"


class Waited(NamedTuple):
    """Seconds until the first byte of an answer's body, and until its end."""

    first: float
    whole: float


class Client:
    """A client as cheap as Python has one: a connection, requests written and answers read as bytes."""

    def __init__(self, url: str, name: str, messages: int = MESSAGES) -> None:
        self._host = urlsplit(url).netloc
        self._said = [message(f"{name}, message {n}", n) for n in range(messages - 1)]

    async def __aenter__(self) -> Client:
        host, _, port = self._host.partition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._writer.close()

    async def ask(self, about: str, *, streams: bool = False, grows: bool = True) -> Waited:
        """Asks once, with all that was said so far."""
        items = [*self._said, message(about, 0)]
        body = json.dumps({"model": "m-1", "messages": items, "stream": streams}).encode()
        began = wall()
        self._writer.write(HEAD.format(self._host, len(body)).encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in head[:16], head
        if streams:
            first = await self._chunk()
            at_first = wall()
            while await self._chunk():
                pass
            assert first, "a stream has a piece"
        else:
            size = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            await self._reader.readexactly(size)
            at_first = wall()
        if grows:
            self._said = [*items, answers.MESSAGE]
        return Waited(at_first - began, wall() - began)

    async def _chunk(self) -> bytes:
        size = int(await self._reader.readline(), 16)
        return (await self._reader.readexactly(size + 2))[:-2]


def message(about: str, number: int) -> dict[str, str]:
    """A message of some 300 bytes."""
    return {"role": ("user", "assistant")[number % 2], "content": f"{about}: {WORDS}"}


@contextmanager
def proxied(store: Path, upstream: str, port: str = "0") -> Iterator[str]:
    """The address of a proxy, as its command runs, until the end of the block."""
    command = [sys.executable, "-m", "vmstore", "proxy", str(store), "--upstream", upstream, "--port", port, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it was asked for"
        try:
            yield json.loads(process.stdout.readline())["ports"][0]["url"]
        finally:
            process.terminate()
            process.wait()


def figures(url: str) -> dict[str, int]:
    """What a proxy says it has done."""
    with urllib.request.urlopen(f"{url}/vmstore") as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


def _settled(url: str, calls: int) -> dict[str, int]:
    """The figures of a proxy once every call is in its store, and so many are."""
    while (now := figures(url))["waiting"] + now["open"] or now["recorded"] + now["gaps"] < calls:
        time.sleep(POLL_S)
    return now


def measure(bench: Bench) -> Iterator[Row]:
    """One client that asks the one and the other in turns, then 32 clients at each."""
    added: list[list[float]] = [[], [], []]
    rates: list[float] = []
    gaps: list[float] = []
    absolute: list[float] = []
    managed: list[float] = []
    with answers.answering() as far, bare_forward.forwarding(far) as bare:
        for number in range(bench.size(*ROUNDS)):
            with proxied(bench.folder / f"{number}.vms", far) as proxy:
                asyncio.run(_alternating(bench, bare, proxy, added))
                before = _settled(proxy, 0)["recorded"]  # what one client asked is written by then
                plain, _ = _rate(bench, bare, None, 0)
                recorded, missed = _rate(bench, proxy, proxy, before)
                rates.append(recorded / plain)
                absolute.append(recorded)
                gaps.append(float(missed))
                bench.say(f"  bare {plain:.0f} calls/s, recorded {recorded:.0f} calls/s")
            with proxied(bench.folder / f"{number}-window.vms", far, f"0,window={WINDOW},rounds=0") as proxy:
                managed.append(asyncio.run(_managed(bench, bare, proxy)))
                assert figures(proxy)["unmanaged"] == 0 < figures(proxy)["managed"], "the memory answered each time"
    for goal, measured in zip((P50, P99, FIRST), added, strict=True):
        yield row(goal, measured)
    yield row(RATE, rates)
    yield row(GAPS, gaps)
    yield row(CALLS_S, absolute)
    yield row(MANAGED, managed)


async def _alternating(bench: Bench, bare: str, proxy: str, added: list[list[float]]) -> None:
    """Adds this round's p50, p99 and first byte, each in ms above the bare forward."""
    burden = bench.burden("vmstore")
    async with Client(bare, "bare") as each_client, Client(proxy, "proxied") as other:
        waits: tuple[list[float], list[float]] = ([], [])
        firsts: tuple[list[float], list[float]] = ([], [])
        for n in range(bench.size(*PAIRS)):
            for client, wait in zip((each_client, other), waits, strict=True):
                wait.append((await client.ask(f"question {n}", grows=False)).whole)
        for n in range(bench.size(*STREAMS)):
            for client, first in zip((each_client, other), firsts, strict=True):
                first.append((await client.ask(f"stream {n}", streams=True, grows=False)).first)
    for share, (plain, ours) in ((0.5, waits), (0.99, waits), (0.5, firsts)):
        at = 2 if plain is firsts[0] else int(share > 0.5)
        added[at].append(1e3 * (percentile(ours, share) + burden - percentile(plain, share)))
    bench.say(f"  bare {1e3 * statistics.median(waits[0]):.2f} ms, proxied {1e3 * statistics.median(waits[1]):.2f} ms")


async def _managed(bench: Bench, bare: str, proxy: str) -> float:
    """What a window adds to a long request, in the median, once its history was taken in: ms."""
    waits: tuple[list[float], list[float]] = ([], [])
    async with Client(bare, "bare", LONG) as plain, Client(proxy, "managed", LONG) as managed:
        await managed.ask("the history")
        for n in range(bench.size(*MANAGED_CALLS)):
            for client, wait in zip((plain, managed), waits, strict=True):
                wait.append((await client.ask(f"question {n}")).whole)
    added = 1e3 * (percentile(waits[1], 0.5) + bench.burden("vmstore") - percentile(waits[0], 0.5))
    bench.say(f"  a managed window adds {added:.1f} ms")
    return added


def _rate(bench: Bench, url: str, proxy: str | None, before: int) -> tuple[float, int]:
    """Calls a second of 32 clients, until the last one is in the store where they go through a proxy; and its gaps."""
    calls = bench.size(*CALLS)

    async def talk(number: int) -> None:
        async with Client(url, f"client {number} of {url}") as client:
            for n in range(calls):
                await client.ask(f"question {n}")

    async def everybody() -> None:
        await asyncio.gather(*(talk(n) for n in range(CLIENTS)))

    began = wall()
    asyncio.run(everybody())
    missed = 0
    if proxy is not None:
        missed = _settled(proxy, before + CLIENTS * calls)["gaps"]
    return CLIENTS * calls / (wall() - began + bench.burden("vmstore")), missed
