"""Sessions that live in a store, told everything a session can be told."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from vmstore.core.mutation import Update
from vmstore.errors import InputError, RefusedError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

WORDS = ("postgres", "sqlite", "redis", "kafka", "cache", "queue", "deploy", "index", "shard", "tenant", "backup")
TOOL = {"type": "function", "function": {"name": "read", "parameters": {}}}


def text(chance: random.Random, words: int) -> str:
    """A sentence."""
    return " ".join(f"{chance.choice(WORDS)}{chance.randint(0, 99)}" for _ in range(words)) + "."


def live(store: Store, name: str = "s", *, seed: int = 1, turns: int = 12, budget: int = 6_000, **fields: Any) -> Live:
    """A session of some turns with tools, faults, pins, segments, marks and all."""
    chance = random.Random(seed)
    session = store.live_session(
        name, l0_tokens_max=budget, system=f"You are helpful. {text(chance, 40)}", tools=[TOOL], **fields
    )
    pages: list[str] = []
    for turn in range(turns):
        asked = f" As we decided earlier, what about {chance.choice(WORDS)}?" if turn % 2 else " Let's use postgres."
        pages += session.user(text(chance, chance.randint(5, 60)) + asked)
        session.pack()
        for nth in range(chance.randint(0, 3)):
            _call(session, chance, pages, f"c{turn}_{nth}")
        pages += session.assistant(f"{text(chance, 30)} [ref: {chance.choice(pages)}]")
        with contextlib.suppress(InputError, RefusedError):  # what cannot be done is not logged
            _manage(session, chance, chance.choice(pages), turn)
    return session


def _call(session: Live, chance: random.Random, pages: list[str], number: str) -> None:
    """The model calls a tool, may ask for a page, and is called again."""
    call = {"id": number, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    pages += session.assistant(message, tokens_in=chance.randint(2_000, 6_000))
    pages += session.tool(number, " ".join(text(chance, chance.randint(3, 30)) for _ in range(chance.randint(1, 60))))
    if chance.random() < 0.5:
        session.page_fault(chance.choice(pages), chance.randint(0, 3), by_model=chance.random() < 0.6)
    session.pack()


def _manage(session: Live, chance: random.Random, page: str, turn: int) -> None:
    """One of the things a program does with a session's memory."""
    what = turn % 9
    if what == 0:
        session.pin(page)
    elif what == 1:
        session.compress(page, 2)
    elif what == 2:
        session.segment("a part of it")
    elif what == 3:
        session.mark(f"m{turn}")
        session.user(text(chance, 200))
        session.restore(f"m{turn}")
    elif what == 4:
        session.claim(f"we use {text(chance, 3)}", name=f"claim{turn}")
    elif what == 5:
        session.recall(page, corrected=chance.random() < 0.5)
        session.search(f"{chance.choice(WORDS)}{chance.randint(0, 99)} decided")
        session.annotate(page, importance=0.9, tags=["kept"])
    elif what == 6:
        session.attach(text(chance, 500).encode(), "text/plain", name=f"file{turn}")
    elif what == 7:
        session.configure(l0_tokens_max=chance.choice((5_500, 7_000)))
    else:
        session.evict(page)
        session.cite(page)
        with session.batch() as batch:
            content = text(chance, 80).encode()
            number, version = session.lineage.position_of(page), len(session.lineage.versions(page, delta=False))
            batch.add(Update(number, version + 1, batch.cell(content), len(content), len(content) // 4))
