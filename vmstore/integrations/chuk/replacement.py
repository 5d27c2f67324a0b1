"""The place of the package that this one replaces: where memories are kept, and what its import gives."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from vmstore.errors import InputError
from vmstore.store.store import Store

THEIRS = "chuk_ai_session_manager.memory"
OURS = "vmstore.integrations.chuk"
MODULES = (
    "models", "models.abi", "models.content", "models.enums", "models.fault", "models.page", "models.stats",
    "artifacts_bridge", "compressor", "context_packer", "demand_paging", "eviction_policy", "fault_handler",
    "manager", "manifest", "mutation_log", "pack_cache", "page_table", "prefetcher", "tlb", "vm_prompts",
    "working_set",
)  # fmt: skip
_stores: list[Store] = []


def use(store: Store) -> None:
    """Has memories that are given no store keep their pages in this one, from here on."""
    if not isinstance(store, Store):
        raise InputError(f"{store!r:.60} is no store; give what vmstore.open gives")
    _stores.append(store)


@contextmanager
def using(store: Store) -> Iterator[Store]:
    """The same within a block."""
    use(store)
    try:
        yield store
    finally:
        _stores.remove(store)


def default_store() -> Store | None:
    """The store of memories that are given none; None where nobody said."""
    return _stores[-1] if _stores else None


def replace_package(store: Store | None = None) -> None:
    """Has `import chuk_ai_session_manager.memory` give this package, so that its SessionManager works over a store.

    It comes before the first import of that package; InputError after it.
    """
    mine = sys.modules.get(THEIRS)
    if mine is not None and mine is not sys.modules.get(OURS):
        raise InputError(f"{THEIRS} is imported already; call replace_package before anything imports it")
    if store is not None:
        use(store)
    sys.modules[THEIRS] = importlib.import_module(OURS)
    for name in MODULES:
        sys.modules[f"{THEIRS}.{name}"] = importlib.import_module(f"{OURS}.{name}")
