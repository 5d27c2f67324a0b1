"""A store goes from a folder into a database and back, and is the same store in every place."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests import recordings
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.postgres.server import server
from tests.prose import CHECKOUT
from tests.refusals import refused
from tests.transfer.migrations import SECRET, content_of, rich_store
from vmstore.engine.engine import Engine
from vmstore.errors import StoreError
from vmstore.namespace.storekey import new_store_key

DEMO = CHECKOUT / "vmstore" / "shell" / "demo.jsonl"
DATA = CHECKOUT.parent / "shared" / "data"


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The address of an empty database, with a cache of this test."""
    return f"{server().database()}&cache={tmp_path / 'cache'}"


def imported(path: Path, file: Path) -> Path:
    """A store of one imported session."""
    with vmstore.open(path) as store:
        store.import_file(file)
    return path


def pi_session(path: Path) -> Path:
    """A store of a recorded session, or of a stand-in for it where there is none."""
    data = DATA
    if not data.is_dir():
        data = path.parent / "recordings"
        data.mkdir()
        recordings.make(data)
    return imported(path, data / "pi" / "before-compaction.jsonl")


STORES: dict[str, Callable[[Path], Path]] = {
    "the demo session": lambda path: imported(path, DEMO),
    "a session of pi": pi_session,
    "erasures, forks, namespaces, long contents": rich_store,
}


@pytest.mark.parametrize("kind", STORES)
def test_there_and_back(kind: str, base: str, tmp_path: Path) -> None:
    """Into a database and back each namespace has the same commits, cells and heads, and the command says so."""
    a, b = STORES[kind](tmp_path / "a.vms"), tmp_path / "b.vms"
    there, back = vmstore.migrate(a, base), vmstore.migrate(base, b)
    assert [part.heads for part in there.namespaces] == [part.heads for part in back.namespaces]
    assert vmstore.migrate(a, base).namespaces[0].commits == 0
    for part in there.namespaces:
        before = content_of(a, part.namespace)
        assert content_of(base, part.namespace) == before == content_of(b, part.namespace)
        assert part.heads and part.upto == part.commits == len(before)
    assert vmstore.migrate(b, a).namespaces[0].commits == 0
    mine, everywhere = ([path.name for path in tmp_path.rglob(of)] for of in ("a.vms.erasures/*", "*.erasures/*"))
    assert sorted(everywhere) == sorted(3 * mine)


def test_an_erasure_that_comes_later_is_done_in_the_database(base: str, tmp_path: Path) -> None:
    """What was erased after it had come is destroyed there by the next run, and no cell of the table has its words."""
    a = rich_store(tmp_path / "a.vms")
    with vmstore.open(a) as store:
        store.record("late", chat(f"late {SECRET} of mine"), answer("Yes."))
    vmstore.migrate(a, base)
    with vmstore.open(base, "r") as store:
        assert store.search(SECRET)
    with vmstore.open(a) as store:
        store.trust.erase(session="late")
    assert vmstore.migrate(a, base).namespaces[0].documents == 1
    assert content_of(base) == content_of(a)
    assert all(SECRET.encode() not in cell.content for _, cells in content_of(base) for cell in cells)


@pytest.mark.parametrize("back", [False, True])
def test_a_migration_that_was_killed_goes_on(back: bool, base: str, tmp_path: Path) -> None:
    """Killed between two flushes, into a database and out of one, it goes on where it stopped."""
    a, b = rich_store(tmp_path / "a.vms"), tmp_path / "b.vms"
    if back:
        vmstore.migrate(a, base)
    source, target = (base, b) if back else (a, base)

    def killed() -> None:
        right, left = Engine._mirrored, [2]

        def mirrored(engine: Engine, appends: object, seen: int) -> int:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return right(engine, appends, seen)  # type: ignore[arg-type]

        Engine._mirrored = mirrored  # type: ignore[method-assign, assignment]
        vmstore.migrate(source, target)

    assert joined(start(killed)) == -signal.SIGKILL
    if not back:  # the lease of who was killed amid an erasure ends by itself, later
        name = base.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
        server().execute("UPDATE vmstore_head SET held_until = now(), destroys_until = now()", name)
    report = vmstore.migrate(source, target, namespaces=["default"]).namespaces[0]
    assert 0 < report.commits < report.upto and content_of(target) == content_of(a)


def test_a_database_that_is_written_meanwhile(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace of a database that is written while it is copied comes as it was when it was begun."""
    with vmstore.open(base) as store:
        for number in range(3):
            store.record("s", chat(f"text {number}"), answer("Yes."))
        right = Engine._mirrored

        def mirrored(engine: Engine, appends: object, seen: int) -> int:
            monkeypatch.setattr(Engine, "_mirrored", right)
            store.record("s", chat("meanwhile"), answer("Yes."))
            return right(engine, appends, seen)  # type: ignore[arg-type]

        monkeypatch.setattr(Engine, "_mirrored", mirrored)
        assert vmstore.migrate(base, tmp_path / "b.vms").namespaces[0].behind == 2
    assert vmstore.migrate(base, tmp_path / "b.vms").namespaces[0].commits == 2
    assert content_of(tmp_path / "b.vms") == content_of(base)


def test_a_folder_becomes_a_namespace_of_a_name(base: str, tmp_path: Path) -> None:
    """An address that names a namespace takes one, under that name, and the one that it names comes out of it."""
    a = imported(tmp_path / "a.vms", DEMO)
    assert [part.into for part in vmstore.migrate(a, f"{base}&namespace=team-a").namespaces] == ["team-a"]
    report = vmstore.migrate(f"{base}&namespace=team-a", tmp_path / "b.vms")
    assert [part.namespace for part in report.namespaces] == ["team-a"]
    assert content_of(tmp_path / "b.vms", "team-a") == content_of(a)


def test_what_is_encrypted_is_encrypted_in_a_database(base: str, tmp_path: Path) -> None:
    """A namespace that is encrypted in a folder is so in a database, and is not written into one that is plain."""
    pytest.importorskip("cryptography")
    key = new_store_key(tmp_path / "key")
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        store.record("s", chat(SECRET), answer("Yes."))
    vmstore.migrate(tmp_path / "a.vms", base, key=key)
    with refused("encrypted", StoreError):
        vmstore.open(base, "r")
    with vmstore.open(base, "r", key=key) as copy, vmstore.open(tmp_path / "a.vms", "r", key=key) as store:
        assert [commit.hash for commit in copy.admin.log.tail(0, 99)] == [c.hash for c in store.admin.log.tail(0, 99)]
        assert copy.verify().ok and copy.search(SECRET)
    other = f"{server().database()}&cache={tmp_path / 'other'}"
    with vmstore.open(other) as plain:
        plain.record("s", chat("text"), answer("Yes."))
    with refused("not-encrypted-here", StoreError, "'default'"):
        vmstore.migrate(tmp_path / "a.vms", other, key=key)
