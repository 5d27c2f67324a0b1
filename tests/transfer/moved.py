"""A store that moves: something to export, and what must be the same where it arrives."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from tests.store.kept import tell
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.namespace.reports import ImportReport
from vmstore.store.store import Store, memory_store
from vmstore.views.projection import PROJECTORS

CELLS = {"cell", "rest", "aside", "note"}
SESSIONS = {"session", "parent"}


def filled(store: Store) -> Store:
    """A session with tools, a compression, an edit and notes, one with a retry and odd letters, and forks of forks."""
    tell(store)
    odd = {"model": "m", "messages": [{"role": "user", "content": "é☃ \ud800 \u2028 \0"}], "temperature": 0.5}
    store.record("odd one", odd, None, at_us=9_000_000, request_id="r 1")
    child = store.session("s").fork("s.child", call=2)
    store.record("s.child", odd, None, at_us=10_000_000)
    grandchild = child.fork("s.grandchild")
    store.record("s.child", odd, None, at_us=10_500_000)
    store.record(grandchild, {**odd, "seed": 7}, None, at_us=10_700_000)
    store.record("s", odd, ValueError("gone"), at_us=11_000_000)
    store.session("s.child").annotate("p4", tags=["kept"], importance=0.25, at_us=14_000_000)
    store.session("s").annotate(
        "p4", importance=0.9, tags=["é", "kept"], anchors={"user.name": "Ada"}, at_us=12_000_000
    )
    store.session("s").annotate("p4", untags=["kept"], status="completed", valid_to_us=1_000_000, at_us=13_000_000)
    return store


def filled_in_memory() -> Store:
    """The same in a store that lives in memory, its clock and salts as in every run."""
    return filled(memory_store(clock=ManualClock(5_000_000), ids=SeededIds(11)))


def bundle(store: Store, *names: str, **moment: Any) -> bytes:
    """The bundle of some sessions, or all."""
    out = io.BytesIO()
    store.export(out, names or None, exact=True, **moment)
    return out.getvalue()


def taken(folder: Path, content: bytes, **fields: Any) -> Store:
    """A fresh store in memory that imported a bundle."""
    store = memory_store()
    take(store, folder, content, **fields)
    return store


def take(store: Store, folder: Path, content: bytes, **fields: Any) -> ImportReport:
    """Imports a bundle into a store."""
    file = folder / "bundle.jsonl"
    file.write_bytes(content)
    return store.import_file(file, **fields)


def chains(store: Store) -> dict[bytes, list[Any]]:
    """Each session's commits by its uid, as they are hashed, with the salts and contents of their cells."""
    store.admin.follow()
    uids: dict[int, bytes] = dict(store.admin.views.execute("SELECT session, uid FROM sessions"))
    fields: dict[bytes, list[Any]] = {uid: [] for uid in uids.values()}
    for c in store.admin.log.tail(0, 1 << 30):
        cells = store.admin.log.cells(range(c.cell, c.cell + c.cell_count))
        sealed = tuple(cells[number] for number in sorted(cells))
        hashed = (c.first, c.count, c.at, c.lag, c.request, c.body, c.commitments, c.hash)
        fields[uids[c.session]].append((hashed, sealed))
    return fields


def views(store: Store) -> dict[str, list[str]]:
    """Every row of every view, what a log numbers for itself (sessions, commits, cells) named by its hash."""
    store.admin.follow()
    uids: dict[int, bytes] = dict(store.admin.views.execute("SELECT session, uid FROM sessions"))
    seals = {
        number: cell.commitment
        for number, cell in store.admin.log.cells(range(1, store.admin.log.last_cell + 1)).items()
    }

    def portable(column: str, value: Any) -> Any:
        if column in SESSIONS:
            return uids.get(value)
        if column in CELLS:
            return seals.get(value)
        return None if column == "ordinal" else value

    rows: dict[str, list[str]] = {}
    for table in (table for projector in PROJECTORS for table in projector.schema):
        cursor = store.admin.views.execute(f"SELECT * FROM {table}")
        actual_rows = cursor.fetchall()
        names = [row[1] for row in store.admin.views.execute(f"PRAGMA table_info({table})")]
        rows[table] = sorted(
            repr([portable(name, v) for name, v in zip(names, row, strict=True)]) for row in actual_rows
        )
    return rows
