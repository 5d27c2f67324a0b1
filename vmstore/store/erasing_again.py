"""Erases again what a backup brought back: certificates say which cells must not be there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.core.erasure import Erase, ErasureReason
from vmstore.store.encryption import encrypted
from vmstore.store.erasing import erase_cells
from vmstore.store.ledger import Certificate, cells_of
from vmstore.store.namespace import Namespace
from vmstore.store.opening import open_namespace


def erased_again(
    store: Path, namespace: str, ledger: Iterable[Certificate], certificates: Path, key: StoreKey | None
) -> int:
    """Erases what certificates name and a store still holds, where it is the very same; how many cells.

    A certificate of its own goes to the folder of `certificates`.
    """
    told = cells_of(ledger)
    if not told:
        return 0
    told_key = key if encrypted(store / namespace) else None
    ns = open_namespace(store, "rw", namespace, SystemClock(), SystemIds(), told_key)
    try:
        ns.follow()
        named = {key: found for key, uid in _sessions(ns) if (found := _there(ns, key, told.get(uid.hex(), {})))}
        erases = {key: Erase(ErasureReason.RESTORED, tuple(sorted(found))) for key, found in sorted(named.items())}
        if erases:
            erase_cells(ns, erases, sum(sum(found.values()) for found in named.values()), certificates)
        return sum(map(len, named.values()))
    finally:
        ns.close()


def _sessions(ns: Namespace) -> list[tuple[int, bytes]]:
    return [(key, bytes(uid)) for key, uid in ns.views.execute("SELECT session, uid FROM sessions")]


def _there(ns: Namespace, session: int, named: dict[tuple[int, int], str]) -> dict[tuple[int, int], int]:
    """Those cells of a session that are there as they were sealed, and how long each is."""
    found = {}
    wanted = {position for position, _ in named}
    rows: Any = ns.views.execute("SELECT ordinal, first FROM commits WHERE session = ? AND cells > 0", (session,))
    for ordinal, first in rows.fetchall() if wanted else ():
        if first not in wanted:
            continue
        (commit,) = ns.log.tail(ordinal - 1, 1)
        cells = ns.log.cells(range(commit.cell, commit.cell + commit.cell_count))
        for index in range(commit.cell_count):
            same = named.get((first, index)) == commit.commitment(index).hex()
            if same and not cells[commit.cell + index].erased:
                found[first, index] = len(cells[commit.cell + index].content)
    return found
