"""Tells who listens that a session grew, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from vmstore.store.store import Store

LOOK_S = 0.5  # between two looks at the log's end
SILENCE_S = 15.0  # after which a line says that the server is there


async def grown(
    store: Store, stopped: Callable[[], bool], shown: Callable[[Any], Any] = lambda event: event
) -> AsyncIterator[bytes]:
    """An event for each session that grew since the last look, until stopped; the first look tells of none.

    `shown` turns the description of a session into what is sent.
    """
    ordinal, known = await run_in_threadpool(_stands, store)
    yield b"retry: 2000\n\n"
    silent = 0.0
    while not stopped():
        await asyncio.sleep(LOOK_S)
        silent += LOOK_S
        if await run_in_threadpool(lambda: store.admin.log.ordinal) != ordinal:
            ordinal, now = await run_in_threadpool(_stands, store)
            for name, (position, calls) in now.items():
                if known.get(name) != (position, calls):
                    event = {"session": name, "position": position, "calls": calls}
                    yield f"data: {json.dumps(await run_in_threadpool(shown, event))}\n\n".encode()
                    silent = 0.0
            known = now
        if silent >= SILENCE_S:
            yield b": here\n\n"
            silent = 0.0


def _stands(store: Store) -> tuple[int, dict[str, tuple[int, int]]]:
    """The log's end, and position and calls of every session; what is written meanwhile is seen next time."""
    ordinal = store.admin.log.ordinal
    return ordinal, {info.session: (info.position, info.calls) for info in store.sessions()}
