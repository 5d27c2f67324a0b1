"""vmstore remembers everything an AI agent's memory ever did, and answers any question about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vmstore import aio
    from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Position, Time, Turn
    from vmstore.errors import (
        ConflictError,
        CorruptError,
        ErasedError,
        InputError,
        InternalError,
        LockedError,
        OvertakenError,
        ReadOnlyError,
        RefusedError,
        StoreError,
        UnknownError,
        VmstoreError,
    )
    from vmstore.store.approving import approvals, approve
    from vmstore.store.archiving import archive, unarchive
    from vmstore.store.backup import backup, restore
    from vmstore.store.bringing import bring, origin
    from vmstore.store.context import Context
    from vmstore.store.doctor import doctor
    from vmstore.store.encrypting import encrypt, rekey
    from vmstore.store.erasing import erase, plan_erasure
    from vmstore.store.keys import new_key
    from vmstore.store.live import Live
    from vmstore.store.merging import merge
    from vmstore.store.regions import grants, regions, revoke, share
    from vmstore.store.retracting import retract
    from vmstore.store.seals import read_seal, seal
    from vmstore.store.session import Session
    from vmstore.store.store import Store, memory_store
    from vmstore.store.store import open_store as open
    from vmstore.store.storekey import new_store_key

__version__ = "0.1.0"

__all__ = [
    "open",
    "memory_store",
    "wrap",
    "aio",
    "backup",
    "restore",
    "new_store_key",
    "encrypt",
    "rekey",
    "archive",
    "unarchive",
    "merge",
    "doctor",
    "erase",
    "plan_erasure",
    "new_key",
    "approve",
    "approvals",
    "seal",
    "read_seal",
    "retract",
    "share",
    "revoke",
    "grants",
    "regions",
    "bring",
    "origin",
    "Store",
    "Session",
    "Live",
    "Context",
    "AsOf",
    "Head",
    "Turn",
    "Call",
    "Position",
    "Time",
    "LoggedTime",
    "VmstoreError",
    "StoreError",
    "LockedError",
    "InternalError",
    "UnknownError",
    "ErasedError",
    "InputError",
    "RefusedError",
    "ConflictError",
    "OvertakenError",
    "ReadOnlyError",
    "CorruptError",
    "__version__",
]

# Loaded when first used, so that the command's help need not load the store.
_HOMES = {
    "open": ("vmstore.store.store", "open_store"),
    "memory_store": ("vmstore.store.store", "memory_store"),
    "backup": ("vmstore.store.backup", "backup"),
    "restore": ("vmstore.store.backup", "restore"),
    "new_store_key": ("vmstore.store.storekey", "new_store_key"),
    "encrypt": ("vmstore.store.encrypting", "encrypt"),
    "rekey": ("vmstore.store.encrypting", "rekey"),
    "archive": ("vmstore.store.archiving", "archive"),
    "unarchive": ("vmstore.store.archiving", "unarchive"),
    "merge": ("vmstore.store.merging", "merge"),
    "doctor": ("vmstore.store.doctor", "doctor"),
    "erase": ("vmstore.store.erasing", "erase"),
    "plan_erasure": ("vmstore.store.erasing", "plan_erasure"),
    "new_key": ("vmstore.store.keys", "new_key"),
    "approve": ("vmstore.store.approving", "approve"),
    "approvals": ("vmstore.store.approving", "approvals"),
    "seal": ("vmstore.store.seals", "seal"),
    "retract": ("vmstore.store.retracting", "retract"),
    "read_seal": ("vmstore.store.seals", "read_seal"),
    "share": ("vmstore.store.regions", "share"),
    "revoke": ("vmstore.store.regions", "revoke"),
    "grants": ("vmstore.store.regions", "grants"),
    "regions": ("vmstore.store.regions", "regions"),
    "bring": ("vmstore.store.bringing", "bring"),
    "origin": ("vmstore.store.bringing", "origin"),
    "Store": ("vmstore.store.store", "Store"),
    "Session": ("vmstore.store.session", "Session"),
    "Live": ("vmstore.store.live", "Live"),
    "Context": ("vmstore.store.context", "Context"),
}
_ROOMS = ("vmstore.core.asof", "vmstore.errors")

Client = TypeVar("Client")


def __getattr__(name: str) -> Any:
    """Finds a public name in the room it lives in."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "aio":
        return import_module("vmstore.aio")
    homes = [_HOMES[name]] if name in _HOMES else [(room, name) for room in _ROOMS]
    for module, attribute in homes:
        found = getattr(import_module(module), attribute, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def wrap(
    client: Client,
    store: str | os.PathLike[str] | Store = "agent.vms",
    session: str | Callable[[dict[str, Any]], str | None] | None = None,
    *,
    redaction: str | None = None,
) -> Client:
    """The client again, recording every request it sends to a model; the one given goes on unrecorded.

    An OpenAI, Anthropic or google-genai client, sync or async, or an httpx client that one uses.
    `store` is a path, opened when the first call ends, or an open store. `session` is a name, or a
    function of a request's body that gives one; without it each conversation gets its own, named
    after the provider and the time. With `redaction` mask or refuse no secret enters the store; the
    model is sent what it is sent. The client's `vmstore` has `problems`, `conversation(name)`,
    `flush()` and `close()`.
    """
    from vmstore.capture.client.wrap import wrap as wrapped
    from vmstore.store.store import open_store

    return wrapped(client, store, session, open_store=open_store, redaction=redaction)
