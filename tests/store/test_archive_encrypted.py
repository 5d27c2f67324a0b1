"""Archives of an encrypted store: nothing readable in any file, the key carried in them goes with its subject."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.archives import everything
from vmstore.errors import CorruptError, ErasedError, StoreError
from vmstore.log.archive.file import ArchiveLog
from vmstore.maintenance.archive import archive, unarchive
from vmstore.namespace.storekey import new_store_key

NAMES = ["trip", "other", "trip-b", "bob"]
LONG = "4711 kept long " * 6_000
WORDS = (b"4711", b"Good day", b"trip", b"anna")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A store key, beside the folder of the store."""
    return new_store_key(tmp_path / "store.key")


@pytest.fixture
def path(tmp_path: Path, key: Path) -> Path:
    """An encrypted store: two sessions of one user, a fork, and a session of its own; one content is long."""
    path = tmp_path / "home" / "a.vms"
    path.parent.mkdir()
    with vmstore.open(path, key=key) as store:
        for name in ("trip", "other"):
            store.session(name, create=True, user="anna")
        store.record("trip", chat("My number is 4711.", "Fine.", "And?"), answer("Good day."))
        store.record("other", chat(LONG, "Fine.", "And?"), answer("Good day 4711."))
        store.record("bob", chat("4711 bob"), answer("Good day."))
        store.session("trip").fork("trip-b", call=1)
        more = chat("My number is 4711.", "Fine.", "And?", "Good day.", "More")
        store.record("trip-b", more, answer("Well."))
    return path


def readable(folder: Path) -> list[str]:
    """The files in which a planted word lies as it is."""
    return [file.name for file in folder.rglob("*") if file.is_file() and any(w in file.read_bytes() for w in WORDS)]


def archived(path: Path, key: Path) -> dict[str, Path]:
    """The archives of all sessions."""
    with vmstore.open(path, key=key) as store:
        return {session.session: Path(session.file) for session in archive(store, NAMES, grace_s=0).sessions}


def keys(file: Path) -> list[Any]:
    """The keys an archive carries."""
    db = apsw.Connection(str(file))
    try:
        return db.execute("SELECT id, wrapped FROM keys").fetchall()
    finally:
        db.close()


def test_every_answer_stays_and_nothing_is_readable(path: Path, key: Path) -> None:
    """Archived, answers are what they were, through backups too, and no file holds a word; brought back as before."""
    with vmstore.open(path, key=key) as store:
        before, cells = everything(store), store.admin.log.cells(range(999))
        done = archive(store, NAMES, grace_s=0)
        assert sum(session.bytes for session in done.sessions) > len(LONG) and not list(path.glob("default/blobs/*/*"))
        assert (everything(store), store.admin.log.cells(range(999))) == (before, cells) and store.verify().ok
        assert archive(store, NAMES, grace_s=0).sessions == [] and readable(path.parent) == []
        store.admin.compact()
        store.backup(path.parent / "b")
    vmstore.restore(path.parent / "b", path.parent / "r.vms", key=key)
    for case in (path, path.parent / "r.vms"):
        with vmstore.open(case, "r", key=key) as store:
            assert everything(store) == before and store.verify().ok
    assert vmstore.doctor(path, full=True, key=key).symptoms == [] and readable(path.parent) == []
    with vmstore.open(path, key=key) as store:
        assert len(unarchive(store, NAMES).sessions) == 4 and store.verify().ok
        assert (everything(store), store.admin.log.cells(range(999))) == (before, cells)
        assert len(list(path.glob("default/blobs/*/*.aes"))) == 1 and not list(path.glob("default/archive/*"))
    assert readable(path.parent) == []


def test_alone_the_store_key_opens_it(path: Path, key: Path, tmp_path: Path) -> None:
    """An archive alone answers as in its store with the store's key, and says what is missing with none or another."""
    with vmstore.open(path, key=key) as store:
        before = everything(store)
    file = archived(path, key)["trip-b"].rename(tmp_path / "elsewhere.archive")
    with vmstore.open(file, "r", key=key) as alone:
        assert alone.verify().ok and everything(alone)["trip-b"] == before["trip-b"]
    with refused("not-encrypted", StoreError):
        vmstore.open(file, "r")
    with refused("other-store-key", StoreError):
        vmstore.open(file, "r", key=new_store_key(tmp_path / "other.key"))
    with vmstore.open(tmp_path / "plain.vms") as plain:
        plain.record("s", chat("Hello"), None)
        other_file = archive(plain, "s", grace_s=0).sessions[0].file
    with refused("not-encrypted", StoreError):
        vmstore.open(other_file, "r", key=key)


def test_an_archive_carries_only_keys_of_its_subjects(path: Path, key: Path) -> None:
    """A file carries the keys of whose cells it holds, never that of another, and each as it lies in `keys.sqlite`."""
    there = dict(apsw.Connection(str(path / "default" / "keys.sqlite")).execute("SELECT id, wrapped FROM keys"))
    files = archived(path, key)
    carried = {name: dict(keys(file)) for name, file in files.items()}
    assert carried["trip"] == carried["other"] and not carried["trip"].keys() & carried["bob"].keys()
    for value in carried.values():
        assert value and bytes(16) not in value and value.items() <= there.items()


def test_a_changed_key_in_a_file_is_named(path: Path, key: Path) -> None:
    """A key in an archive that the store key does not open is told by `verify` of the store, and the store goes on."""
    file = archived(path, key)["bob"]
    db = apsw.Connection(str(file))
    db.execute("UPDATE keys SET wrapped = CAST(substr(wrapped, 2) || x'00' AS BLOB)")
    db.close()
    with vmstore.open(path, "r", key=key) as store:
        assert ["carries a key" in problem.what for problem in store.verify().problems] == [True]
        assert store.session("bob").context(call=1).messages()
    with refused("other-store-key", StoreError):
        vmstore.open(file, "r", key=key)


def test_a_cell_taken_from_a_file_is_damage(path: Path, key: Path) -> None:
    """A frame emptied by hand is told as damage, by the archive alone and by its store, where no record names it."""
    file = archived(path, key)["bob"]
    db = apsw.Connection(str(file))
    db.execute("UPDATE frames SET sizes = CAST(replace(hex(zeroblob(4 * count)), '00', x'ff') AS BLOB)")
    db.close()
    with refused("archive-damaged", CorruptError):
        vmstore.open(file, "r", key=key)
    with vmstore.open(path, "r", key=key) as store:
        value = {problem.kind: problem.what for problem in store.verify(views=False).problems}
        assert "no erasure is recorded" in value["cell"] and "damaged" in value["archive"]


def test_every_flip_is_named_or_changes_nothing(path: Path, key: Path) -> None:
    """A byte changed in an encrypted archive is named by `verify`, alone too, or is one that nothing is read from."""
    file = archived(path, key)["trip-b"]
    with vmstore.open(path, "r", key=key) as store:
        cells = store.admin.log.cells(range(999))
    sound, rng, named = file.read_bytes(), random.Random(7), 0
    for at in rng.sample([at for at, byte in enumerate(sound) if byte], 60):
        file.write_bytes(sound[:at] + bytes((sound[at] ^ (1 << rng.randrange(8)),)) + sound[at + 1 :])
        with vmstore.open(path, "r", key=key) as store:
            ok = store.verify(views=False).ok
            assert not ok or store.admin.log.cells(range(999)) == cells
        try:
            with vmstore.open(file, "r", key=key) as alone:
                assert alone.verify(views=False).ok and ok
        except (CorruptError, StoreError):
            assert not ok
        named += not ok
    assert named > 30


def test_another_store_key(path: Path, key: Path, tmp_path: Path) -> None:
    """Rekeyed, archives open with the new key alone, the old wraps lie in no file, and a stopped try is made good."""
    files = archived(path, key)
    with vmstore.open(path, key=key) as store:
        before = everything(store)
    old = {wrapped for file in files.values() for _, wrapped in keys(file)}
    new = new_store_key(tmp_path / "new.key")
    keyring = path / "default" / "keys.sqlite"
    kept = keyring.read_bytes()
    vmstore.rekey(path, key, new)
    keyring.write_bytes(kept)  # as a kill between the archives and the ring leaves it
    with vmstore.open(path, "r", key=key) as store:
        assert everything(store) == before and {problem.kind for problem in store.verify().problems} == {"archive"}
    vmstore.rekey(path, key, new)
    with vmstore.open(path, "r", key=new) as store:
        assert everything(store) == before and store.verify().ok
    for file in path.rglob("*"):
        assert not file.is_file() or not any(wrapped in file.read_bytes() for wrapped in old), file
    with vmstore.open(files["trip"], "r", key=new) as alone:
        assert everything(alone)["trip"] == before["trip"]
    with refused("other-store-key", StoreError):
        vmstore.open(files["trip"], "r", key=key)


def test_erasing_a_subject_drops_the_key_in_the_files(path: Path, key: Path) -> None:
    """Erased, a user's key is in no archive any more, the file it was in is overwritten, and others keep theirs."""
    files = archived(path, key)
    ((_, wrapped),) = keys(files["trip"])
    actual_file = files["trip"].open("rb")  # the very file of before, whatever has its name
    with vmstore.open(path, key=key) as store:
        vmstore.erase(store, page="p6", in_session="trip")
        assert store.verify().ok and keys(files["trip"]) and set(actual_file.read()) == {0}
        with pytest.raises(ErasedError):
            store.session("trip-b").content("p6")
        vmstore.erase(store, user="anna")
        assert store.verify().ok
        assert [session.session for session in store.sessions() if not session.session.startswith("erased-")] == ["bob"]
        assert store.session("bob").context(call=1).messages()[1]["content"] == "4711 bob"
    actual_file.close()
    assert [len(keys(files[each_name])) for each_name in NAMES] == [0, 0, 0, 1]
    for file in path.rglob("*"):
        assert not file.is_file() or wrapped not in file.read_bytes(), file
    for name in NAMES:
        with vmstore.open(files[name], "r", key=key) as alone:
            assert alone.verify().ok
    assert not list(path.glob("default/archive/.*"))


def test_an_erased_session_goes_on_under_another_key(path: Path, key: Path) -> None:
    """Archived, erased, brought back, archived again and written to, a session stays under keys of its own."""
    with vmstore.open(path, key=key) as store:
        archive(store, NAMES, grace_s=0)
        vmstore.erase(store, user="anna")
        (gone,) = [
            session.session
            for session in store.sessions()
            if session.user is None and session.session.endswith(_uid(store))
        ]
        for _ in range(2):
            unarchive(store, gone)
            assert archive(store, gone, grace_s=0).sessions and store.verify().ok
        store.record(gone, chat("Back again, 4711"), None)
        archive(store, gone, grace_s=0)
        store.admin.compact()
        assert store.verify().ok and "Back again, 4711" in str(store.session(gone).context().messages())
        frames = store.admin.log.file  # type: ignore[attr-defined]
        with frames as db:
            ids = [salts[:16] for (salts,) in db.execute("SELECT CAST(salts AS BLOB) FROM frames ORDER BY first")]
        ring = store.admin.log.vault.keyring  # type: ignore[attr-defined]
        assert ring.in_use(ids[0]) == ids[-1] != ids[0] and ring.key(ids[0]) == b""


def _uid(store: vmstore.Store) -> str:
    """How the first session, which was erased, ends its name."""
    uid: Any = store.admin.views.execute("SELECT hex(uid) FROM sessions WHERE session = 1").get
    return str(uid).lower()[:12]


def test_what_a_kill_left_goes_with_an_erasure(path: Path, key: Path) -> None:
    """Halves of archives, and former ones, that a kill left are overwritten and removed by the next erasure."""
    files = archived(path, key)
    folder = files["trip"].parent
    for left in (f".{files['trip'].name}.abc.new", f".{files['trip'].name}.abc.former"):
        (folder / left).write_bytes(files["trip"].read_bytes())
    with vmstore.open(path, key=key) as store:
        vmstore.erase(store, page="p6", in_session="trip")
    assert sorted(folder.iterdir()) == sorted(files.values())


def test_an_archive_is_merged_with_its_key(path: Path, key: Path, tmp_path: Path) -> None:
    """An encrypted archive is merged into an encrypted store of the same key, and lies under a key there."""
    files = archived(path, key)
    with vmstore.open(tmp_path / "home" / "b.vms", key=key) as store:
        store.record("mine", chat("Hello"), None)
    assert [
        session.outcome for session in vmstore.merge(tmp_path / "home" / "b.vms", files["bob"], key=key).sessions
    ] == ["new"]
    with vmstore.open(tmp_path / "home" / "b.vms", key=key) as store:
        assert store.verify().ok and "4711 bob" in str(store.session("bob").context().messages())
    assert readable(tmp_path / "home") == []


def test_the_cells_of_a_file_lie_under_keys(path: Path, key: Path) -> None:
    """Every frame of an archive that holds anything is encrypted, and opens in its store by its ring alone."""
    files = archived(path, key)
    for file in files.values():
        db = apsw.Connection(str(file))
        assert {form for (form,) in db.execute("SELECT form FROM frames")} <= {16, 17} and db.execute(
            "PRAGMA user_version"
        ).get == 1003
        db.execute("DELETE FROM keys")
        db.close()
    with vmstore.open(path, "r", key=key) as store:
        assert store.verify().ok
        log: Any = store.admin.log
        ArchiveLog(files["trip"], vault=log.vault).close()
    with refused("archive-damaged", CorruptError):
        vmstore.open(files["trip"], "r", key=key)
