"""vmstore remembers everything an AI agent's memory ever did, and answers any question about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vmstore import aio
    from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Position, Time, Turn
    from vmstore.erasure.erase import erase, plan_erasure
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
    from vmstore.maintenance.archive import archive, unarchive
    from vmstore.maintenance.backup import backup, restore
    from vmstore.maintenance.doctor import doctor
    from vmstore.namespace.signing_keys import new_key
    from vmstore.namespace.storekey import new_store_key
    from vmstore.retraction.retract import retract
    from vmstore.seals.seals import read_seal, seal
    from vmstore.shares.regions import grants, regions, revoke, share
    from vmstore.store.approvals import approvals, approve
    from vmstore.store.encrypt import encrypt, rekey
    from vmstore.store.live.copy_page import bring, origin
    from vmstore.store.live.live_session import Live
    from vmstore.store.reads.context import Context
    from vmstore.store.session import Session
    from vmstore.store.store import Store, memory_store
    from vmstore.store.store import open_store as open
    from vmstore.transfer.merge import merge

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
    "backup": ("vmstore.maintenance.backup", "backup"),
    "restore": ("vmstore.maintenance.backup", "restore"),
    "new_store_key": ("vmstore.namespace.storekey", "new_store_key"),
    "encrypt": ("vmstore.store.encrypt", "encrypt"),
    "rekey": ("vmstore.store.encrypt", "rekey"),
    "archive": ("vmstore.maintenance.archive", "archive"),
    "unarchive": ("vmstore.maintenance.archive", "unarchive"),
    "merge": ("vmstore.transfer.merge", "merge"),
    "doctor": ("vmstore.maintenance.doctor", "doctor"),
    "erase": ("vmstore.erasure.erase", "erase"),
    "plan_erasure": ("vmstore.erasure.erase", "plan_erasure"),
    "new_key": ("vmstore.namespace.signing_keys", "new_key"),
    "approve": ("vmstore.store.approvals", "approve"),
    "approvals": ("vmstore.store.approvals", "approvals"),
    "seal": ("vmstore.seals.seals", "seal"),
    "retract": ("vmstore.retraction.retract", "retract"),
    "read_seal": ("vmstore.seals.seals", "read_seal"),
    "share": ("vmstore.shares.regions", "share"),
    "revoke": ("vmstore.shares.regions", "revoke"),
    "grants": ("vmstore.shares.regions", "grants"),
    "regions": ("vmstore.shares.regions", "regions"),
    "bring": ("vmstore.store.live.copy_page", "bring"),
    "origin": ("vmstore.store.live.copy_page", "origin"),
    "Store": ("vmstore.store.store", "Store"),
    "Session": ("vmstore.store.session", "Session"),
    "Live": ("vmstore.store.live.live_session", "Live"),
    "Context": ("vmstore.store.reads.context", "Context"),
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
