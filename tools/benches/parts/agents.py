"""Synthetic agents: sessions as agents have them, written to any address through the public methods alone.

Each agent is one session, made of its number and nothing else: recorded calls or a memory of its own, tools
that fail and succeed, faults, pins and forks. Most are short and few are long, as sessions are.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import vmstore

MODELS = ("m-small", "m-large", "m-fast")
TOOLS = ("read_file", "run_tests", "search", "edit_file", "fetch")
WORDS = (
    *("postgres", "sqlite", "redis", "kafka", "cache", "queue", "deploy", "index", "shard", "tenant", "backup"),
    *("invoice", "parser", "schema", "retry", "session", "vector", "budget", "policy", "cursor", "ledger"),
    *("replica", "snapshot", "token", "branch", "merge", "rollback", "window", "prompt"),
)
USERS = 40  # agents of one user in a fleet of a thousand: some twenty-five
AT_US = 1_760_000_000_000_000
TURNS_MAX = 120


def turns_of(number: int, longest: int = TURNS_MAX) -> int:
    """How many turns an agent has: two or three as a rule, and of a few many."""
    return min(longest, round(2 * random.Random(f"length {number}").paretovariate(1.2)))


def write(store: vmstore.Store, numbers: range, *, longest: int = TURNS_MAX) -> Iterator[str]:
    """Writes the agents of these numbers into a store, and gives the name of each session as it is there."""
    for number in numbers:
        chance = random.Random(number)
        name, owner = f"agent-{number:05}", {"user": f"user-{number % USERS}", "agent": f"kind-{number % 5}"}
        if number % 4 == 3:
            _recorded(store, name, chance, turns_of(number, longest), owner)
        else:
            _live(store, name, chance, turns_of(number, longest), owner)
        if number % 25 == 24:
            store.session(name).fork(f"{name}-fork", turn=1)
        yield name


def _speech(chance: random.Random, words: int) -> str:
    return " ".join(f"{chance.choice(WORDS)}{chance.choice(('', '', chance.randint(0, 99)))}" for _ in range(words))


def _recorded(store: vmstore.Store, name: str, chance: random.Random, turns: int, owner: dict[str, Any]) -> None:
    """An agent whose requests are recorded as they are sent."""
    store.session(name, create=True, **owner)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are brief."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": _speech(chance, chance.randint(4, 40))})
        answer = {"role": "assistant", "content": _speech(chance, chance.randint(3, 60))}
        usage = {"prompt_tokens": 20 * len(messages), "completion_tokens": chance.randint(5, 90)}
        response = {"choices": [{"message": answer, "finish_reason": "stop"}], "usage": usage}
        store.record(
            name,
            {"model": chance.choice(MODELS), "messages": messages},
            response,
            at_us=AT_US + turn * 60_000_000,
            latency_us=chance.randint(200_000, 9_000_000),
            cost=chance.randint(1, 900) / 100_000,
        )
        messages.append(answer)


def _live(store: vmstore.Store, name: str, chance: random.Random, turns: int, owner: dict[str, Any]) -> None:
    """An agent whose memory the store manages."""
    session = store.live_session(
        name,
        l0_tokens_max=chance.choice((3_000, 6_000, 12_000)),
        system="Be brief.",
        model=chance.choice(MODELS),
        **owner,
    )
    pages: list[str] = []
    for turn in range(turns):
        pages += session.user(_speech(chance, chance.randint(5, 60)))
        session.pack()
        for nth in range(chance.randint(0, 2)):
            call = f"c{turn}_{nth}"
            function = {"name": chance.choice(TOOLS), "arguments": f'{{"path": "{chance.choice(WORDS)}"}}'}
            tool = {"id": call, "type": "function", "function": function}
            pages += session.assistant({"role": "assistant", "content": None, "tool_calls": [tool]})
            failed = chance.random() < 0.2
            pages += session.tool(call, f"Error: no {chance.choice(WORDS)}" if failed else _speech(chance, 60))
            if chance.random() < 0.4:
                session.page_fault(chance.choice(pages), chance.randint(0, 2), by_model=True)
            session.pack()
        pages += session.assistant(
            _speech(chance, 30), tokens_in=chance.randint(500, 4_000), cost=chance.random() / 100
        )
        if turn % 5 == 4:
            session.annotate(chance.choice(pages), importance=0.8, tags=[chance.choice(WORDS)])
