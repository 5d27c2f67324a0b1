"""For tests of agents: `agent_memory`, a fixture that opens what an agent's memory did and lets a test claim things.

pytest finds it by itself where vmstore is installed; what it stands on is loaded when a test asks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vmstore.store.store import Store
    from vmstore.testing.assertions import Memory

AgentMemory = Callable[..., "Memory"]
"""Opens a memory: `agent_memory(source=None, session=None, **live)`."""


@pytest.fixture
def agent_memory() -> Iterator[AgentMemory]:
    """Opens a session for a test: of a store, of a file that an agent wrote, or a new one in memory.

    `agent_memory("agent.vms", "planning")` reads a store and never writes to it; `agent_memory("run.jsonl")`
    takes a session file in, in memory; `agent_memory(store)` is of an open one. Without a source it
    is a new session in memory, which has a budget where `l0_tokens_max` and other settings are given.
    The session may be left out where there is one.
    """
    opened: list[Store] = []

    def open_memory(source: Any = None, session: str | None = None, **live: Any) -> Memory:
        from vmstore.testing.assertions import Memory

        store = _store(source, opened)
        if source is None:
            name = session or "test"
            opened_here = store.live_session if "l0_tokens_max" in live else partial(store.session, create=True)
            return Memory(store, opened_here(name, **live))
        names = [info.session for info in store.sessions()]
        if session is None and len(names) != 1:
            raise pytest.UsageError(f"{source} holds {len(names)} sessions; name one: {', '.join(names[:5])}")
        return Memory(store, store.session(session or names[0]))

    yield open_memory
    for store in opened:
        store.close()


def _store(source: Any, opened: list[Store]) -> Store:
    """The store to ask; those that are opened here are closed after the test."""
    from vmstore.errors import InputError
    from vmstore.store.store import Store, memory_store, open_store

    if isinstance(source, Store):
        return source
    if source is None:
        store = memory_store()
    elif isinstance(source, str | os.PathLike) and Path(source).is_dir():
        store = open_store(source, "r")
    elif isinstance(source, str | os.PathLike):
        store = memory_store()
        store.import_file(source)
    else:
        raise InputError(f"{source!r} is no store and no path; open one, or name a file or a folder")
    opened.append(store)
    return store
