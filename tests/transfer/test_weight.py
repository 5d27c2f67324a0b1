"""Where the bytes are: what is told adds up to what lies on disk, and to what was accepted."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.transfer.moved import filled, filled_in_memory
from vmstore.store.store import Store
from vmstore.transfer.disk_usage import DBSTAT


def on_disk(folder: Path) -> int:
    """The bytes of a namespace's files; the shared index is memory."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.name.endswith("-shm"))


def cells(store: Store) -> dict[str, int]:
    """The bytes of all cells by the name of their session."""
    store.admin.follow()
    names: dict[int, str] = dict(store.admin.views.execute("SELECT session, name FROM sessions"))
    fromkeys = dict.fromkeys(names.values(), 0)
    for commit in store.admin.log.tail(0, 1 << 30):
        some = store.admin.log.cells(range(commit.cell, commit.cell + commit.cell_count)).values()
        fromkeys[names[commit.session]] += sum(len(cell.content) for cell in some)
    return fromkeys


@pytest.mark.parametrize("dbstat", [True, False])
def test_every_byte_on_disk_is_told_once(store_path: Path, monkeypatch: pytest.MonkeyPatch, dbstat: bool) -> None:
    """Open with a write-ahead log or closed, with an SQLite that knows its tables or not, the sum is what is there."""
    if not dbstat:
        monkeypatch.setattr(apsw, "compile_options", tuple(o for o in apsw.compile_options if o != DBSTAT))
    with vmstore.open(store_path) as store:
        filled(store)
        for name in range(30):
            store.record(f"more{name}", chat("x" * 9_000, seed=name), answer("y"))
        (store_path / "default" / "blobs").mkdir(exist_ok=True)
        (store_path / "default" / "blobs" / "ab").write_bytes(b"z" * 70_000)
        usage = store.admin.usage()
        assert usage.bytes == on_disk(store_path / "default") == sum(file.bytes for file in usage.files)
        contents = {(file.part, file.what): file.bytes for file in usage.files}
        assert contents["blobs", "files"] >= 70_000
        assert (("log", "commits") in contents) == dbstat and (("log", "the file") in contents) != dbstat
    with vmstore.open(store_path, "r") as store:
        assert store.admin.usage().bytes == on_disk(store_path / "default")


def test_free_pages_are_told(store_path: Path) -> None:
    """Pages that a database freed and keeps are named as free."""
    with vmstore.open(store_path) as store:
        filled(store)
        views = next((store_path / "default").glob("views-*.sqlite"))
        db = apsw.Connection(str(views))
        db.execute("CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob(200000)); DROP TABLE t").fetchall()
        db.close()
        usage = store.admin.usage()
        contents = {(file.part, file.what): file.bytes for file in usage.files}
        assert contents["views", "free pages"] >= 200_000
        assert usage.bytes == on_disk(store_path / "default")


def test_contents_are_those_of_the_log() -> None:
    """Contents by session are the cells each session brought, and by kind they are the same bytes."""
    store = filled_in_memory()
    usage = store.admin.usage()
    assert {session.what: session.bytes for session in usage.sessions} == cells(store)
    for listed in (usage.sessions, usage.kinds, usage.files):
        assert [entry.bytes for entry in listed] == sorted((entry.bytes for entry in listed), reverse=True)
    kinds = {kind.what: kind for kind in usage.kinds}
    assert sum(kind.bytes for kind in usage.kinds) == sum(session.bytes for session in usage.sessions)
    assert sum(kind.cells for kind in usage.kinds) == store.admin.log.last_cell
    assert kinds["request ids"].cells == 1 and "other" not in kinds
    assert {"transcript", "envelopes", "requests", "names"} <= kinds.keys()
    assert (usage.bytes, usage.files) == (0, [])
