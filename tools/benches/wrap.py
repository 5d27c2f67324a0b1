"""Wrapping: what recording adds to the calls of many conversations through one client."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

import vmstore
from benches.parts import answers
from benches.parts.rounds import LOWER, Bench, Goal, Row, cpu, row, wall

GAPS = Goal("calls of 30 conversations through one client, 100 a second, that became gaps", 0, LOWER)
CPU = Goal("CPU that recording adds to each of them, ms", 4, LOWER)
WAIT = Goal("what it adds to the wait for an answer: p50, ms", 4, LOWER)
BEHIND = Goal("how long after the last call all are in the store, s", "", LOWER)
GOALS = (GAPS, CPU, WAIT, BEHIND)

CONVERSATIONS = 30
MESSAGES = 99  # of each at its beginning
RATE = 100  # calls a second
SECONDS = (20, 1)
ROUNDS = (3, 2)
FLUSH_S = 300
WORDS = "words of a session " * 15


def measure(bench: Bench) -> Iterator[Row]:
    """The same load with the client as it is and wrapped, in turns."""
    gaps: list[float] = []
    added: list[float] = []
    waited: list[float] = []
    behind: list[float] = []
    calls = int(RATE * bench.size(*SECONDS))
    limits = httpx2.Limits(max_connections=2 * CONVERSATIONS, max_keepalive_connections=2 * CONVERSATIONS)
    with answers.answering() as url, httpx2.Client(base_url=url, timeout=60, limits=limits) as client:
        load(client, calls // 10, 0.0)  # connections are made, modules loaded
        for number in range(bench.size(*ROUNDS)):
            began = cpu()
            plain = load(client, calls, 0.0)
            between = cpu()
            path = bench.folder / f"{number}.vms"
            wrapped = vmstore.wrap(client, path)
            recorded = load(wrapped, calls, bench.burden("vmstore"))
            ended = wall()
            assert wrapped.vmstore.flush(FLUSH_S), wrapped.vmstore.problems
            behind.append(wall() - ended)
            wrapped.vmstore.close()
            added.append(1e3 * ((cpu() - between) - (between - began)) / calls)
            waited.append(1e3 * (statistics.median(recorded) - statistics.median(plain)))
            gaps.append(float(gaps_in(path, calls)))
            bench.say(
                f"  plain {1e3 * statistics.median(plain):.2f} ms, wrapped {1e3 * statistics.median(recorded):.2f}"
            )
    yield row(GAPS, gaps)
    yield row(CPU, added)
    yield row(WAIT, waited)
    yield row(BEHIND, behind)


def load(client: Any, calls: int, burden: float) -> list[float]:
    """Makes calls at the rate, each conversation on a thread of its own; how long each waited, in seconds."""
    waits: list[float] = []
    begun = wall()

    def talk(conversation: int) -> None:
        messages = [message(f"{conversation}, message {n}", n) for n in range(MESSAGES)]
        for call in range(conversation, calls, CONVERSATIONS):
            if (early := begun + call / RATE - wall()) > 0:
                time.sleep(early)
            asked = wall()
            answer = client.post("/v1/chat/completions", json={"model": "m-1", "messages": messages}).json()
            if burden:
                time.sleep(burden)
            waits.append(wall() - asked)
            messages += [answer["choices"][0]["message"], message(f"{conversation}, call {call}", 0)]

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(CONVERSATIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(waits) == calls, "a call failed"
    return waits


def message(about: str, number: int) -> dict[str, str]:
    """A message of some 300 bytes."""
    return {"role": ("user", "assistant")[number % 2], "content": f"{about}: {WORDS}"}


def gaps_in(path: Path, calls: int) -> int:
    """How many calls a store holds as gaps; each conversation has a session, and each call is there."""
    with vmstore.open(path) as store:
        actual_calls = [store.session(info.session).calls() for info in store.sessions()]
    assert len(actual_calls) == CONVERSATIONS, f"{len(actual_calls)} sessions"
    assert sum(map(len, actual_calls)) == calls, "a call is missing"
    return sum(call.status == "gap" for session in actual_calls for call in session)
