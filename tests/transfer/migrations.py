"""A store with all that a migration has to bring, and what is compared afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from tests.engine.stories import answer, chat
from tests.store.archives import told_at
from vmstore.cells.cell import Cell
from vmstore.log.commit import Commit
from vmstore.namespace.namespace import Namespace

SECRET = "zebrafinch"
LONG = "a megabyte of text " * 70_000


def rich_store(path: Path) -> Path:
    """Two namespaces: forks, forks of forks, long contents, erased ones early and late, a grant, a request id."""
    told_at(path)
    with vmstore.open(path) as store:
        store.record("early", chat(f"the {SECRET} says"), answer("A name."))
        store.record("long-one", chat(LONG), answer("Long."))
        store.record("gone", chat(f"{SECRET} again"), answer("Yes."))
        store.session("early").fork("early-b", call=1)
        page = next(
            page.page for page in store.session("early").pages() if SECRET in page_text(store, "early", page.page)
        )
        store.trust.erase(page=page, in_session="early")
        store.trust.erase(session="gone")
        store.sharing.share("sandbox:other")
        store.record("plan", chat("Where to?"), answer("North."), request_id="late")
        for number in range(150):
            store.record(f"s{number % 7}", chat(f"text {number}"), answer("Quite."))
    with vmstore.open(path, namespace="team-a") as store:
        store.record("theirs", chat("of team a"), answer("Yes."))
    return path


def page_text(store: vmstore.Store, session: str, page: str) -> str:
    """What a page says."""
    return store.session(session).content(page).decode("utf-8", "replace")


def commits(ns: Namespace) -> list[tuple[Commit, list[Cell]]]:
    """Every commit of a namespace with its cells."""
    read: list[tuple[Commit, list[Cell]]] = []
    while batch := ns.log.tail(read[-1][0].ordinal if read else 0, 500):
        cells = ns.log.cells([n for commit in batch for n in numbers(commit)])
        read += [(commit, [cells[n] for n in numbers(commit)]) for commit in batch]
    return read


def numbers(commit: Commit) -> range:
    """The numbers of a commit's cells."""
    return range(commit.cell, commit.cell + commit.cell_count)


def content_of(address: str | Path, namespace: str = "default", **opening: Any) -> list[tuple[Commit, list[Cell]]]:
    """Every commit of a namespace at an address with its cells; the store is verified."""
    with vmstore.open(address, "r", namespace=namespace, **opening) as store:
        assert store.verify().ok
        return commits(store._ns)
