"""A small kept store to ask: one session with tools, a compression, an edit and a summary."""

from __future__ import annotations

from pathlib import Path

from tests.capture.words import LONG, NOTE, Item, answer, ask, model_text, request, result, system, user
from vmstore.core.clock import ManualClock
from vmstore.store.store import Store, memory_store, open_store

HEAD: list[Item] = [system("You look things up."), user("What is in the package?")]
FULL: list[Item] = [*HEAD, ask("c1"), result("c1", LONG)]
SHORT: list[Item] = [*HEAD, ask("c1"), result("c1", NOTE), model_text("Sixty lines."), user("And the tests?")]
SUMMED: list[Item] = [
    HEAD[0],
    user("Summary of the conversation so far: sixty lines."),
    user("And the tests?"),
]
CALLS: list[tuple[list[Item], Item]] = [
    (HEAD, ask("c1")),  # turn 1
    (FULL, model_text("Sixty lines.")),
    (SHORT, model_text("None.")),  # turn 2: the result is a note now
    (SUMMED, model_text("None at all.")),  # the first four messages gave way to a summary
]


def tell(store: Store, name: str = "s", calls: int = 4) -> None:
    """Records the calls of the story."""
    for number, (items, reply) in enumerate(CALLS[:calls], 1):
        store.record(name, request(items), answer(reply, tokens=100 * number), at_us=number * 1_000_000)


def told_in_memory() -> Store:
    """The story in a store that lives in memory; its clock counts microseconds."""
    store = memory_store(clock=ManualClock(5_000_000))
    tell(store)
    return store


def told_at(path: Path) -> Store:
    """The story in a store on disk, open for more."""
    store = open_store(path)
    tell(store)
    return store
