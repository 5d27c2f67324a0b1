"""The async twin: `Store`, `Session`, `Live` and `Context` with every question and every write awaited.

    async with vmstore.aio.open("agent.vms") as store:
        await store.record("trip", request, response)
        async for entry in store.tail():
            ...

Methods have the names, arguments and answers of `vmstore.Store` and `vmstore.Session`, whose words
say what they do. The work is done in one thread a store, in the order it was asked for. A task that
is cancelled stops waiting: work not begun is dropped, work begun is finished, so the log is whole;
a `request_id` tells afterwards which. Progress is reported in that thread.
"""

from typing import TYPE_CHECKING, Any

from vmstore.aio.context import Context
from vmstore.aio.session import Session
from vmstore.aio.store import Store, memory_store, open

if TYPE_CHECKING:
    from vmstore.aio.live import Live

__all__ = ["open", "memory_store", "Store", "Session", "Live", "Context"]


def __getattr__(name: str) -> Any:
    """Loads what decides when it is first used."""
    if name != "Live":
        raise AttributeError(f"vmstore.aio has no {name!r}")
    from vmstore.aio.live import Live

    return Live
