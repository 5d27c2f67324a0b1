"""Opens a namespace: its log, its views, and what says the time and draws the ids."""

from __future__ import annotations

from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.file_descriptors import enough
from vmstore.core.system.waits import WAIT_S, WAIT_S_MAX
from vmstore.errors import InputError
from vmstore.namespace.backends.address import Address, backend_of
from vmstore.namespace.backends.folder import in_memory
from vmstore.namespace.backends.port import Backend, Opening
from vmstore.namespace.encryption import Key, store_key_of
from vmstore.namespace.namespace import Namespace


def attach(
    address: Address | Backend, mode: str, name: str, clock: Clock, ids: IdSource, key: Key | None = None,
    wait_s: float | None = WAIT_S, *, believed: bool = True,
) -> Namespace:  # fmt: skip
    """Opens the log and the views of a namespace of a store, and resumes nothing.

    In mode 'rw' the namespace is made where there is none, encrypted with a key.

    What other processes hold is waited for `wait_s` seconds, with None for as long as they hold it. Where
    its views are not `believed`, because others made the store, they are folded again in memory.
    """
    if wait_s is not None and (not isinstance(wait_s, int | float) or not 0 <= wait_s <= WAIT_S_MAX):
        raise InputError(
            f"wait_s {wait_s!r:.40} is no number of seconds from 0 to {WAIT_S_MAX:,}; None waits on", code="not-a-limit"
        )
    if mode not in ("r", "rw"):
        raise InputError(f"mode {mode!r} is none of 'r' (read) and 'rw' (read and write)", code="no-mode")
    enough()
    opening = Opening(mode == "r", clock, ids, store_key_of(key, ids), wait_s, believed)
    found = backend_of(address).attach(name, opening)
    namespace = Namespace(
        *found.opened(), place=found.place, readonly=opening.readonly, clock=clock, ids=ids,
        store_key=None if found.place is None else opening.store_key, opened=found.again,
    )  # fmt: skip
    namespace.wait_s = wait_s
    return namespace


def memory_namespace(clock: Clock, ids: IdSource) -> Namespace:
    """A namespace that lives in memory and ends with the process."""
    from vmstore.log.memory import MemoryLog

    log = MemoryLog()
    return Namespace(log, in_memory(log), place=None, readonly=False, clock=clock, ids=ids)
