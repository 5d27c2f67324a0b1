"""A store that was migrated is the same store: commit by commit, cell by cell, with its erasures and documents."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.refusals import refused
from tests.shell import conftest
from tests.shell.conftest import Run
from tests.transfer.migrations import SECRET, content_of, rich_store
from vmstore.cells.subject_keys import ID_BYTES
from vmstore.engine.engine import Engine
from vmstore.errors import ConflictError, CorruptError, InputError, StoreError
from vmstore.namespace.results import to_json
from vmstore.namespace.storekey import new_store_key

run = conftest.run


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The store that is migrated."""
    return rich_store(tmp_path / "there.vms")


def test_all_of_a_store_comes(there: Path, tmp_path: Path) -> None:
    """Every namespace comes with the very commits, cells and answers, its certificates, and no erased word."""
    here = tmp_path / "home" / "b.vms"
    here.parent.mkdir()
    report = vmstore.migrate(there, here)
    assert [(part.namespace, part.behind) for part in report.namespaces] == [("default", 0), ("team-a", 0)]
    for name, part in zip(("default", "team-a"), report.namespaces, strict=True):
        before = content_of(there, name)
        assert content_of(here, name) == before and part.upto == part.commits == len(before)
    with vmstore.open(there, "r") as a, vmstore.open(here) as b:
        assert [to_json(info) for info in a.sessions()] == [to_json(info) for info in b.sessions()]
        assert [to_json(p) for p in a.session("plan").pages()] == [to_json(p) for p in b.session("plan").pages()]
        ordinal = b.admin.log.ordinal
        assert b.record("plan", chat("Where to?"), answer("North."), request_id="late").call == 4
        assert b.admin.log.ordinal == ordinal
        assert [grant.to for region in b.sharing.regions() for grant in region.grants] == ["sandbox:other"]
    assert report.namespaces[0].documents == 2
    assert len(list((tmp_path / "home" / "b.vms.erasures").iterdir())) == 2
    assert found_in(tmp_path / "home", [SECRET.encode()]) == {}


def test_it_catches_up_and_tells_nothing_twice(there: Path, tmp_path: Path) -> None:
    """Run again it brings what is new alone, an erasure of what came before among it, which is destroyed there."""
    here = tmp_path / "b.vms"
    first = vmstore.migrate(there, here).namespaces[0]
    assert vmstore.migrate(there, here).namespaces[0].commits == 0
    with vmstore.open(there) as store:
        store.record("later", chat("later"), answer("Yes."))
        store.trust.erase(session="s3")
    again = vmstore.migrate(there, here).namespaces[0]
    assert again.upto == first.upto + again.commits and again.commits >= 2 and again.documents == 1
    assert content_of(here) == content_of(there)


@pytest.mark.parametrize("flushes", [1, 2])
def test_a_migration_that_was_killed_goes_on(there: Path, tmp_path: Path, flushes: int) -> None:
    """After a kill the rest comes, whatever had been written, and nothing that had come is written again."""
    here = tmp_path / "b.vms"

    def killed() -> None:
        right, left = Engine._mirrored, [flushes]

        def mirrored(engine: Engine, appends: object, seen: int) -> int:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return right(engine, appends, seen)  # type: ignore[arg-type]

        Engine._mirrored = mirrored  # type: ignore[method-assign, assignment]
        vmstore.migrate(there, here)

    assert joined(start(killed)) == -signal.SIGKILL
    report = vmstore.migrate(there, here)
    assert 0 < report.namespaces[0].commits < report.namespaces[0].upto
    for name in ("default", "team-a"):
        assert content_of(here, name) == content_of(there, name)


def test_what_is_written_meanwhile_comes_with_the_next(
    there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace that is written and erased from while it is copied comes as it was, and says how far it is behind."""
    right = Engine._mirrored
    with vmstore.open(there) as store:

        def mirrored(engine: Engine, appends: object, seen: int) -> int:
            if not seen:
                store.record("meanwhile", chat("written while it is copied"), answer("Yes."))
            return right(engine, appends, seen)  # type: ignore[arg-type]

        monkeypatch.setattr(Engine, "_mirrored", mirrored)
        here = tmp_path / "b.vms"
        part = vmstore.migrate(there, here, namespaces=["default"]).namespaces[0]
        assert part.behind >= 1 and part.upto == store.admin.log.ordinal - part.behind
        with vmstore.open(here, "r") as copy:
            assert "meanwhile" not in [info.session for info in copy.sessions()]
    assert vmstore.migrate(there, here, namespaces=["default"]).namespaces[0].behind == 0
    assert content_of(here) == content_of(there)


def test_what_went_on_by_itself_is_refused(there: Path, tmp_path: Path) -> None:
    """A target that holds another log, or wrote something itself, is refused with the ordinal up to which it agrees."""
    here = tmp_path / "b.vms"
    upto = vmstore.migrate(there, here).namespaces[0].upto
    with vmstore.open(here) as store:
        store.record("mine", chat("mine"), answer("Yes."))
    with refused("not-a-beginning", ConflictError, f"ordinal {upto}"):
        vmstore.migrate(there, here)
    with vmstore.open(tmp_path / "c.vms") as store:
        store.record("mine", chat("mine"), answer("Yes."))
    with refused("not-a-beginning", ConflictError, "ordinal 0"):
        vmstore.migrate(there, tmp_path / "c.vms")


def test_who_writes_into_the_copy_meanwhile_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer in the target between two flushes is met by a refusal, and the copy has no commit after theirs."""
    there, here, right = tmp_path / "a.vms", tmp_path / "b.vms", Engine._mirrored
    with vmstore.open(there) as store:
        for number in range(4):
            store.record(f"s{number % 2}", chat(f"text {number}"), answer("Yes."))

    def mirrored(engine: Engine, appends: object, seen: int) -> int:
        if seen:
            monkeypatch.setattr(Engine, "_mirrored", right)
            with vmstore.open(here) as store:
                store.record("mine", chat("mine"), answer("Yes."))
        return right(engine, appends, seen)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "_mirrored", mirrored)
    with refused("written-meanwhile", ConflictError, "b.vms"):
        vmstore.migrate(there, here)
    with refused("not-a-beginning", ConflictError):
        vmstore.migrate(there, here)


def test_a_damaged_cell_is_not_taken(there: Path, tmp_path: Path) -> None:
    """A source whose cells do not match their commitments is refused by name, and what came before it stays sound."""
    blob = next(path for path in (there / "default" / "blobs").rglob("*") if path.is_file())
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.write_bytes(bytes(content))
    with refused("not-sound", CorruptError, "there.vms"):
        vmstore.migrate(there, tmp_path / "b.vms")


def test_an_encrypted_store_stays_encrypted(tmp_path: Path) -> None:
    """An encrypted store comes under its key into one of the same key, erased users too, and into no plain one."""
    pytest.importorskip("cryptography")
    key, a, b = new_store_key(tmp_path / "key"), tmp_path / "a.vms", tmp_path / "b.vms"
    with vmstore.open(a, key=key) as store:
        for name in ("anna", "bert"):
            store.session(name, create=True, user=name)
        for number in range(3):
            for name in ("anna", "bert", "alone"):
                store.record(name, chat(f"{SECRET} {number}"), answer("Yes."))
        store.trust.erase(user="bert")
    vmstore.migrate(a, b, key=key)
    assert content_of(b, key=key) == content_of(a, key=key)
    assert found_in(b, [SECRET.encode(), b"anna"]) == {}
    subjects = [{row[0] for row in frame_keys(path)} for path in (a, b)]
    assert len(subjects[0]) == len(subjects[1]) == 3, "each under a key of its own, in the copy too"
    with vmstore.open(b, key=key) as store:
        store.trust.erase(user="anna")
        assert store.verify().ok
    with refused("encrypted", StoreError):
        vmstore.migrate(a, tmp_path / "c.vms")
    with vmstore.open(tmp_path / "plain.vms"):
        pass
    with refused("not-encrypted-here", StoreError, "plain.vms"):
        vmstore.migrate(a, tmp_path / "plain.vms", key=key)


def frame_keys(path: Path) -> list[tuple[bytes]]:
    """The ids of the keys that the frames of an encrypted log lie under."""
    log = apsw.Connection(str(path / "default" / "log.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    return log.execute("SELECT substr(salts, 1, ?) FROM frames", (ID_BYTES,)).fetchall()


def test_one_store_is_not_two(there: Path) -> None:
    """A store is not migrated into itself, however it is named."""
    with refused("same-store", InputError):
        vmstore.migrate(there, there.parent / "." / there.name)


def test_the_command_prints_where_both_stand(there: Path, tmp_path: Path, run: Run) -> None:
    """`migrate` prints each session with its position and hash, and with --json the same in full."""
    printed = run("migrate", there, tmp_path / "b.vms", "--namespace", "team-a")
    with vmstore.open(there, "r", namespace="team-a") as store:
        position, digest = store.admin.views.execute("SELECT position, hex(hash) FROM sessions").fetchall()[0]
    assert (
        printed.code == 0 and f"{position}  {digest.lower()[:16]}" in printed.out and "migrated: team-a:" in printed.out
    )
    report = run("migrate", there, tmp_path / "b.vms", "--namespace", "team-a", "--namespace", "default", "--json").json
    assert [part["commits"] > 0 for part in report["namespaces"]] == [False, True]
    assert report["namespaces"][0]["heads"][0]["hash"] == digest.lower()
