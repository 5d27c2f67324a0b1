"""Stores on disk with column segments, and what must hold of them whatever happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from tests.engine.stories import answer, chat, tell
from vmstore.columns.segment import found_in
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.reads.page_table import page_table


def segments(path: Path) -> list[Path]:
    """The folders of a store's segments."""
    return [item.path for item in found_in(path / "default" / "columns")]


def cut(path: Path) -> None:
    """Tells a store a story and cuts it into two segments."""
    tell(path)
    with vmstore.open(path) as store:
        store.admin.column_segments()


def grow(path: Path, calls: int = 3) -> None:
    """Records some more."""
    with vmstore.open(path) as store:
        for n in range(calls):
            store.record("more", chat(f"question {n} of {calls}"), answer(f"answer {n}"))


def right(store: Store) -> list[tuple[Any, ...]]:
    """The page tables of all sessions as the views tell them."""
    rows = []
    for info in store.sessions():
        session = store.session(info.session)
        rows += [(info.session, *row) for row in page_table(Branch(store.admin.views, session._key), info.position)]
    return rows


def sound(path: Path, mode: str = "rw") -> list[tuple[Any, ...]]:
    """Asserts that a store's columns tell what its views tell; the page table."""
    with vmstore.open(path, mode) as store:
        table = list(store.admin.page_table().rows())
        assert sorted(table) == sorted(right(store)) and table
        return table
