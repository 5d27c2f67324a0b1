"""Wraps a client so that every call it makes to a model is recorded, as its HTTP client sends it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar, cast

from vmstore.capture.client.recorder import Naming, Recorder, RecordingStore, RecordTogether
from vmstore.capture.client.twin import provider_of, twin_of_client
from vmstore.core.clock import Stopwatch, SystemClock
from vmstore.core.redaction import policy_of
from vmstore.errors import InputError

Client = TypeVar("Client")


def wrap(
    client: Client,
    store: str | os.PathLike[str] | RecordingStore = "agent.vms",
    session: str | Naming | None = None,
    *,
    open_store: Callable[[str], RecordingStore] | None = None,
    clock: Stopwatch | None = None,
    redaction: str | None = None,
    record_together: RecordTogether | None = None,
) -> Client:
    """A twin of the client that records its calls; its `vmstore` has `problems`, `flush` and `close`.

    `store` is a path, opened by `open_store` when the first call ends, or an open store;
    `session` is a name, or a function of a request's body that gives one; without it each
    conversation gets a session of its own.
    """
    provider = provider_of(client)
    if redaction is not None:
        policy_of(redaction)
    if session is not None and not isinstance(session, str) and not callable(session):
        raise InputError(
            f"session is a {type(session).__name__}; pass a name, or a function of a request that gives one",
            code="not-a-name",
        )
    clock = SystemClock() if clock is None else clock
    place = os.fspath(store) if isinstance(store, (str, os.PathLike)) else store
    base = f"{provider}-{stamp(clock.now())}"
    recorder = Recorder(place, base, session, open_store, clock, redaction, record_together=record_together)
    return cast(Client, twin_of_client(client, recorder))


def stamp(at: int) -> str:
    """A time as part of a name; microseconds, because clients are often made together."""
    seconds, rest = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y%m%d-%H%M%S}-{rest:06d}"
