"""A namespace in PostgreSQL under keys: no row, object or cache holds a word, and what is forgotten is forgotten."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")
pytest.importorskip("cryptography")

import vmstore  # noqa: E402
from tests.postgres.logs import NAMESPACE, database, schema_of  # noqa: E402
from tests.postgres.server import server  # noqa: E402
from tests.refusals import refused  # noqa: E402
from vmstore.cells.cell import ERASED  # noqa: E402
from vmstore.cells.key_rows import DROPPED  # noqa: E402
from vmstore.cells.storekey import KeyAtHand  # noqa: E402
from vmstore.cells.subject_keys import Keyring, root_key  # noqa: E402
from vmstore.core.clock import SystemIds  # noqa: E402
from vmstore.errors import StoreError, UnknownError  # noqa: E402
from vmstore.log.commit import Commit, genesis  # noqa: E402
from vmstore.log.frame_encryption import ENCRYPTED, FrameEncryption  # noqa: E402
from vmstore.log.port import Log  # noqa: E402
from vmstore.log.postgres.cell_objects import CellObjects  # noqa: E402
from vmstore.log.postgres.connection import Connection  # noqa: E402
from vmstore.log.postgres.create import make  # noqa: E402
from vmstore.log.postgres.key_table import KeyTable  # noqa: E402
from vmstore.log.postgres.log import PostgresLog  # noqa: E402
from vmstore.objects.address import objects_at  # noqa: E402
from vmstore.testing.chains import CommitSpec, chain  # noqa: E402
from vmstore.testing.log_contract import LogContract, run_together  # noqa: E402

KEY = KeyAtHand(bytes(range(32)), SystemIds())
LONG = b"long and plain " * 20_000
SECRET = "zebrafinch"


def whose(first: Commit) -> bytes:
    """The data subject of a session here: the first content of it."""
    return first.cells[0].content if first.cells else b""


def opened(folder: Path) -> PostgresLog:
    """A handle on the encrypted log of a folder, which is made where it is not there."""
    sql, address = schema_of(folder), database()
    connection = Connection(address, address, 10.0)
    make(connection, sql, NAMESPACE, bytes(16), root_key(KEY, SystemIds()))
    vault = FrameEncryption(Keyring(KeyTable(connection, sql, NAMESPACE), KEY, SystemIds()), SystemIds(), whose)
    objects = CellObjects(objects_at(folder / "objects"), bytes(16), vault)
    objects.claim()
    me = secrets.token_hex(4)
    return PostgresLog(address, address, NAMESPACE, sql, me=me, wait_s=10.0, objects=objects, vault=vault)


def wrote(log: Log, subject: bytes, *contents: bytes) -> Commit:
    """A new session of a subject."""
    made = chain([CommitSpec(contents=(subject, *contents))], genesis(subject + b"".join(contents)))
    return log.append(made, 0, 0)[0]


def ring(log: PostgresLog) -> Keyring:
    """The keys of a log."""
    assert isinstance(log.vault, FrameEncryption)
    return log.vault.keyring


def rows(folder: Path, table: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """The rows of a table of a folder's log."""
    frame = schema_of(folder).vacuum.rpartition(" ")[2]
    with psycopg.connect(database()) as db:
        return db.execute(f"SELECT {columns} FROM {frame.removesuffix('frame')}{table} ORDER BY 1, 2").fetchall()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PostgresLog]:
    """An empty log under keys."""
    log = opened(tmp_path)
    yield log
    log.close()


class TestEncryptedLog(LogContract):
    """The contract of every log, under keys and with whatever is longer than 64 KiB in an object store."""

    @pytest.fixture(autouse=True)
    def all_that_is_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts there what a log in a folder keeps in files."""
        monkeypatch.setattr("vmstore.log.postgres.contents.OBJECT_BYTES_MIN", 65_537)

    def make_log(self, folder: Path) -> Log:
        """The log of a folder."""
        return opened(folder)


def test_no_row_or_object_holds_a_content(log: PostgresLog, tmp_path: Path) -> None:
    """Contents, short and long, and their salts lie in no row and no object, and another handle reads them."""
    commits = chain([CommitSpec(contents=(b"ann", b"a word that stands out", b"x" * 70_000, LONG))])
    log.append(commits, 0, 0)
    frames = rows(tmp_path, "frame", "first, form, salts, content")
    assert [form for _, form, _, _ in frames] == [ENCRYPTED, ENCRYPTED, ENCRYPTED + 2]
    kept = b"".join(salts + content for _, _, salts, content in frames)
    files = [file for file in (tmp_path / "objects").rglob("*") if file.is_file()]
    assert sorted(file.suffix for file in files) == ["", ".aes"]
    kept += b"".join(file.read_bytes() for file in files)
    words = [b"a word that stands out", b"x" * 64, LONG[:64], *(cell.salt for cell in commits[0].cells)]
    assert [word for word in words if word in kept] == []
    other = opened(tmp_path)
    assert list(other.cells(range(1, 5)).values()) == list(commits[0].cells)
    other.close()


def test_a_session_goes_on_under_the_key_it_began_with(log: PostgresLog, tmp_path: Path) -> None:
    """Sessions of a subject share a key, others have their own, on every host."""
    ann, _, _ = wrote(log, b"ann", b"1"), wrote(log, b"bob", b"1"), wrote(log, b"ann", b"2")
    other = opened(tmp_path)
    other.append(chain([CommitSpec(contents=(b"later",))], ann.hash, 1), ann.session, 1)
    names = [salts[:16] for _, salts in rows(tmp_path, "frame", "first, salts")]
    assert names[0] == names[2] == names[3] != names[1]
    assert len(rows(tmp_path, "key")) == 3
    other.close()


def test_a_key_goes_with_the_last_cell_under_it(log: PostgresLog, tmp_path: Path) -> None:
    """Destroying a subject's last cell empties its key's row, and one that comes back has another key."""
    wrote(log, b"ann", b"short", LONG)
    wrote(log, b"bob", b"short")
    cells = log.cells(range(1, 6))
    name = ring(log).name(b"ann")
    log.destroy({1: 9, 2: 9})
    assert ring(log).key(name) not in (None, DROPPED)
    log.destroy({1: 9, 2: 9, 3: 9})
    assert ring(log).key(name) == DROPPED
    assert [bytes(wrapped) for _, key, wrapped in rows(tmp_path, "key") if bytes(key) == name] == [b""]
    assert log.cells(range(1, 6)) == {1: ERASED, 2: ERASED, 3: ERASED, 4: cells[4], 5: cells[5]}
    wrote(log, b"ann", b"is back", LONG)
    assert log.cells([7, 8])[8].content == LONG
    assert len([1 for _, _, wrapped in rows(tmp_path, "key") if wrapped]) == 3


@pytest.mark.parametrize("content", [b"short", LONG])
def test_nothing_is_written_under_a_key_that_another_host_dropped(
    log: PostgresLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """An append whose key another host drops just before it is written chooses the next one, and is read."""
    first = wrote(log, b"ann", b"1")
    other, put, dropped = opened(tmp_path), PostgresLog._put, list[int]()

    def late(writer: PostgresLog, *arguments: Any) -> bool:
        if writer is log and not dropped:
            dropped.append(other.destroy({1: 9, 2: 9}).cells)
        return put(writer, *arguments)

    monkeypatch.setattr(PostgresLog, "_put", late)
    log.append(chain([CommitSpec(contents=(content,))], first.hash, 1), first.session, 1)
    assert dropped == [2] and ring(other).key(ring(other).name(b"ann")) == DROPPED
    for handle in (log, other, opened(tmp_path)):
        assert handle.cells([1, 3]) == {1: ERASED, 3: log.cells([3])[3]} and log.cells([3])[3].content == content
    other.close()


def test_two_hosts_make_one_key_of_a_subject(log: PostgresLog, tmp_path: Path) -> None:
    """Hosts that meet a subject at the same moment write under one key, and each reads what the other wrote."""
    other = opened(tmp_path)
    run_together([lambda: wrote(log, b"ann", b"1"), lambda: wrote(other, b"ann", b"2")])
    assert len({bytes(salts[:16]) for _, salts in rows(tmp_path, "frame", "first, salts")}) == 1
    assert log.cells(range(1, 5)) == other.cells(range(1, 5)) and len(log.cells(range(1, 5))) == 4
    other.close()


# ---- a store


@pytest.fixture
def host(tmp_path: Path) -> Callable[[str], str]:
    """The address as a host uses it, with a cache of its own and an object store."""
    address, blobs = server().database(), quote(str(tmp_path / "objects"), safe="")
    return lambda name: f"{address}&cache={tmp_path / name}&blobs={blobs}"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The file of a new store key."""
    vmstore.new_store_key(tmp_path / "store.key")
    return tmp_path / "store.key"


def recorded(store: vmstore.Store, text: str, session: str) -> None:
    """Records a call of one message."""
    store.record(session, {"messages": [{"role": "user", "content": text}]}, None)


def test_no_host_keeps_a_word(host: Callable[[str], str], key: Path, tmp_path: Path) -> None:
    """Neither the database's files, nor the objects, nor a cache hold a word; hosts with the key answer as ever."""
    with vmstore.open(host("a"), key=key) as a, vmstore.open(host("b"), key=key) as b:
        recorded(a, f"a secret {SECRET}", f"of {SECRET}")
        recorded(b, f"{SECRET} " * 40_000, "long")
        assert {hit.session for hit in a.search(SECRET)} == {f"of {SECRET}", "long"}
        assert a.verify().ok and b.verify().ok
    server().execute("CHECKPOINT")
    for folder in (Path(server().uri.split("host=")[1]) / "base", tmp_path):
        files = (file for file in folder.rglob("*") if file.is_file())
        assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


def test_the_key_has_to_fit(host: Callable[[str], str], key: Path, tmp_path: Path) -> None:
    """Without its key, with another, or with one for a plain namespace a store is refused, by codes as in a folder."""
    vmstore.new_store_key(tmp_path / "other.key")
    with vmstore.open(host("a"), key=key) as store:
        recorded(store, "text", "chat")
    for mode in ("r", "rw"):
        with refused("encrypted", StoreError):
            vmstore.open(host("a"), mode=mode)
        with refused("other-store-key", StoreError):
            vmstore.open(host("a"), mode=mode, key=tmp_path / "other.key")
    with refused("plain-beside-encrypted", StoreError):
        vmstore.open(host("a"), namespace="plain")
    plain = server().database()
    with vmstore.open(f"{plain}&cache={tmp_path / 'p'}") as store:
        recorded(store, "text", "chat")
    with refused("not-encrypted", StoreError):
        vmstore.open(f"{plain}&cache={tmp_path / 'p'}", key=key)


def test_a_user_is_forgotten(host: Callable[[str], str], key: Path) -> None:
    """Erasing a user drops the key, and the others' contents stay, for every host."""
    with vmstore.open(host("a"), key=key) as a, vmstore.open(host("b"), key=key) as b:
        for user in ("ann", "bob"):
            a.session(f"of {user}", create=True, user=user)
            recorded(a, f"{user} says {SECRET}", f"of {user}")
        before = ring(a._ns.log).count()  # type: ignore[arg-type]
        a.trust.erase(user="ann")
        assert ring(a._ns.log).count() == before - 1  # type: ignore[arg-type]
        with pytest.raises(UnknownError):
            b.session("of ann")
        assert [hit.session for hit in b.search(SECRET)] == ["of bob"]
        assert a.verify().ok and b.verify().ok


def test_another_store_key_wraps_the_same_keys(host: Callable[[str], str], key: Path, tmp_path: Path) -> None:
    """After `rekey` the new store key opens what the old one did, and the old one nothing; contents are not moved."""
    vmstore.new_store_key(tmp_path / "new.key")
    with vmstore.open(host("a"), key=key) as store:
        recorded(store, "text", "chat")
        assert vmstore.rekey(host("a"), key, tmp_path / "new.key").subjects >= 1
        with refused("other-store-key", StoreError):
            recorded(store, "under the old key", "of a new subject")
    with refused("other-store-key", StoreError):
        vmstore.open(host("a"), key=key)
    with vmstore.open(host("a"), key=tmp_path / "new.key") as store:
        recorded(store, "more", "chat")
        assert store.verify().ok and store.search("text")


def test_sessions_move_in_from_a_folder(host: Callable[[str], str], key: Path, tmp_path: Path) -> None:
    """A plain folder is merged into an encrypted namespace with the same hashes, which is how one is encrypted."""
    with vmstore.open(tmp_path / "plain.vms") as plain:
        recorded(plain, "text", "chat")
        plain.export(tmp_path / "chat.jsonl", "chat", exact=True)
        heads = [commit.hash for commit in plain.admin.log.tail(0, 99)]
    with vmstore.open(host("a"), key=key) as store:
        store.import_file(tmp_path / "chat.jsonl", exact=True)
        assert set(heads) <= {commit.hash for commit in store.admin.log.tail(0, 99)}
        assert store.verify().ok


def test_views_of_what_is_encrypted_are_not_published(host: Callable[[str], str], key: Path) -> None:
    """A checkpoint of views would stand in the database to be read, so there is none."""
    with vmstore.open(host("a"), key=key) as store:
        recorded(store, "text", "chat")
        assert store._ns.place is not None
        with refused("encrypted", StoreError):
            store._ns.place.publish_views(store._ns.projection.db)
