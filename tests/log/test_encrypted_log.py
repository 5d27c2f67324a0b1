"""A log under keys keeps the contract; what it holds of contents is read under its subject's key and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.log.test_sqlite_log import STORY
from tests.refusals import refused
from vmstore.cells.cell import ERASED
from vmstore.cells.key_rows import DROPPED
from vmstore.cells.storekey import KeyAtHand
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import SystemIds
from vmstore.errors import CorruptError, StoreError
from vmstore.log.commit import Commit, genesis
from vmstore.log.frame import FILES, RAW, ZSTD, raw
from vmstore.log.frame_encryption import ENCRYPTED, FrameEncryption
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, LogContract, chain

KEY = KeyAtHand(bytes(range(32)), SystemIds())


def whose(first: Commit) -> bytes:
    """The data subject of a session here: the first content of it."""
    return first.cells[0].content if first.cells else b""


def keyring(folder: Path, key: KeyAtHand = KEY) -> Keyring:
    """The keys of a folder."""
    path = folder / "keys.sqlite"
    if not path.exists():
        Keyring.create(path, key, SystemIds())
    return Keyring(path, key, SystemIds())


def opened(folder: Path) -> SqliteLog:
    """The encrypted log of a folder, made where there is none."""
    path = folder / "log.sqlite"
    if not path.exists():
        SqliteLog.create(path, encrypted=True)
    return SqliteLog(path, vault=FrameEncryption(keyring(folder), SystemIds(), whose))


def wrote(log: SqliteLog, subject: bytes, *contents: bytes) -> Commit:
    """A new session of a subject."""
    return log.append(chain([CommitSpec(contents=(subject, *contents))], genesis(subject + b"".join(contents))), 0, 0)[
        0
    ]


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """What the file of the log holds."""
    db = apsw.Connection(str(folder / "log.sqlite"))
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def everything(folder: Path) -> bytes:
    """The bytes of every file under a folder."""
    return b"\n".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


class TestEncryptedLog(LogContract):
    def make_log(self, folder: Path) -> Log:
        """The log in a folder's file, its keys beside it."""
        return opened(folder)


# ---- what lies there


def test_nothing_of_a_content_lies_in_a_file(tmp_path: Path) -> None:
    """Contents, long and short, raw and packed, and their salts are in no file, and are in those of a plain log."""
    commits = chain([CommitSpec(contents=(b"ann", b"a word that stands out", b"long and plain " * 9000))])
    salt = commits[0].cells[1].salt
    plain, secret = tmp_path / "plain", tmp_path / "secret"
    for folder in (plain, secret):
        folder.mkdir()
    SqliteLog.create(plain / "log.sqlite")
    for folder, log in ((plain, SqliteLog(plain / "log.sqlite")), (secret, opened(secret))):
        log.append(commits, 0, 0)
        for word in (b"a word that stands out", b"long and plain", salt):
            assert (word in everything(folder)) == (folder == plain)
        log.compact()
        log.close()
        for word in (b"long and plain", salt):
            assert (word in everything(folder)) == (folder == plain)


def test_each_form_is_encrypted(tmp_path: Path) -> None:
    """Raw, packed and long cells lie in frames of their forms plus 16, sizes and commitments in the clear."""
    log = opened(tmp_path)
    first = log.append(chain([CommitSpec(contents=(b"ann", b"raw", b"x" * 70_000))]), 0, 0)[0]
    log.append(chain([CommitSpec(contents=(b"bob", b"word " * 99))], genesis(b"2")), 0, 0, dense=True)
    forms = rows(tmp_path, "SELECT form, count, length(salts) FROM frames")
    assert forms == [(RAW + ENCRYPTED, 2, 28), (FILES + ENCRYPTED, 1, 28), (ZSTD + ENCRYPTED, 2, 28)]
    content = rows(tmp_path, "SELECT content FROM frames WHERE first = 3")[0][0]
    assert isinstance(content, bytes) and content[:32] == first.commitment(2) and len(content) == 32 + 16 + 16
    assert [file.suffix for file in (tmp_path / "blobs").glob("*/*")] == [".aes"]
    log.close()


def test_a_frame_holds_one_subject(tmp_path: Path) -> None:
    """Packing lays neighbours together where they are of one subject, and keeps all they hold."""
    log = opened(tmp_path)
    for subject in (b"ann", b"ann", b"bob", b"bob", b"ann"):
        wrote(log, subject, b"%s writes %d" % (subject, log.ordinal))
    cells = log.cells(range(99))
    log.compact()
    assert rows(tmp_path, "SELECT first, count FROM frames") == [(1, 4), (5, 4), (9, 2)]
    assert log.cells(range(99)) == cells
    before = rows(tmp_path, "SELECT * FROM frames")
    log.compact()
    assert rows(tmp_path, "SELECT * FROM frames") == before, "what stays is not encrypted again"
    log.close()


def test_sessions_of_one_user_share_a_key_and_others_have_their_own(tmp_path: Path) -> None:
    """A session goes on under the key it began with, also through another handle."""
    log = opened(tmp_path)
    ann, _, more = wrote(log, b"ann", b"1"), wrote(log, b"bob", b"1"), wrote(log, b"ann", b"2")
    log.close()
    log = opened(tmp_path)
    log.append(chain([CommitSpec(contents=(b"later",))], ann.hash, 1), ann.session, 1)
    names = [name for (name,) in rows(tmp_path, "SELECT substr(salts, 1, 16) FROM frames")]
    assert names[0] == names[2] == names[3] != names[1] and more.cell == 5
    log.close()


# ---- dropping


def test_a_dropped_key_destroys_its_cells_alone(tmp_path: Path) -> None:
    """What lay under a dropped key reads as destroyed, in every handle, and other subjects' is as it was."""
    log, other = opened(tmp_path), opened(tmp_path)
    for subject in (b"ann", b"bob"):
        wrote(log, subject, b"short", subject * 30_000)
    cells = other.cells(range(1, 7))
    assert log.vault.keyring.drop(log.vault.keyring.name(b"ann"))  # type: ignore[attr-defined]
    for case in (log, other):
        assert case.cells(range(1, 7)) == {**cells, 1: ERASED, 2: ERASED, 3: ERASED}
    assert log.cells([5])[5].content == b"short"
    log.compact()
    assert log.cells(range(1, 7)) == {**cells, 1: ERASED, 2: ERASED, 3: ERASED}
    for case in (log, other):
        case.close()


def test_nothing_is_written_under_a_key_that_another_handle_dropped(tmp_path: Path) -> None:
    """A session whose key was dropped goes on under the subject's next key, short cells and long."""
    log, other = opened(tmp_path), opened(tmp_path)
    ann = wrote(log, b"ann", b"before")
    other.vault.keyring.drop(other.vault.keyring.name(b"ann"))  # type: ignore[attr-defined]
    log.append(chain([CommitSpec(contents=(b"after", b"y" * 70_000))], ann.hash, 1), 1, 1)
    again = wrote(other, b"ann", b"back")
    for case in (log, other):
        assert {n: cell.content[:6] for n, cell in case.cells(range(9)).items()} == {
            1: b"", 2: b"", 3: b"after", 4: b"yyyyyy", 5: b"ann", 6: b"back",
        }  # fmt: skip
        case.close()
    assert again.cell == 5
    assert len({name for (name,) in rows(tmp_path, "SELECT substr(salts, 1, 16) FROM frames")}) == 2


def test_a_key_goes_with_the_last_cell_under_it(tmp_path: Path) -> None:
    """Where all cells under a key were destroyed it is dropped, where any is left it stays."""
    log = opened(tmp_path)
    for subject in (b"ann", b"bob", b"ann"):
        wrote(log, subject, b"%d" % log.ordinal)
    ring = log.vault.keyring  # type: ignore[attr-defined]
    ann, bob = ring.name(b"ann"), ring.name(b"bob")
    gone: list[tuple[bytes, int]] = []
    for first, dropped in ((1, 0), (3, 1), (5, 1)):
        with log.file as db:
            blank = log.vault.closed(raw(first, [ERASED, ERASED]), bob if first == 3 else ann)
            db.execute("UPDATE frames SET sizes = ?, salts = ?, content = ? WHERE first = ?", (*blank[3:], first))
            assert log.vault.drop_emptied(db) == dropped
            gone += [(name, first) for name in (ann, bob) if ring.key(name) == DROPPED]
    assert gone == [(bob, 3), (ann, 5), (bob, 5)]
    assert set(log.cells(range(1, 7)).values()) == {ERASED}
    log.close()


def test_a_dropped_key_is_in_no_file(tmp_path: Path) -> None:
    """The file of keys keeps nothing of the wrapped key that was dropped."""
    ring = keyring(tmp_path)
    names = [ring.in_use(ring.name(subject)) for subject in (b"ann", b"bob", b"cid", b"dan")]
    name = sorted(names)[1]
    db = apsw.Connection(str(tmp_path / "keys.sqlite"))
    wrapped = db.execute("SELECT wrapped FROM keys WHERE id = ?", (name,)).get
    db.close()
    assert wrapped in everything(tmp_path)
    assert ring.drop(name) and not ring.drop(name)
    content = everything(tmp_path)
    assert ring.key(name) == DROPPED and not any(wrapped[at : at + 12] in content for at in range(len(wrapped) - 12))
    ring.close()


# ---- two at once, and damage


def together(*works: Callable[[], object]) -> list[object]:
    """What pieces of work give that begin at the same moment."""
    ready, actual_works = threading.Barrier(len(works)), list[object]()

    def start(work: Callable[[], object]) -> None:
        ready.wait()
        actual_works.append(work())

    threads = [threading.Thread(target=start, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return actual_works


def first_key(ring: Keyring, subject: bytes) -> bytes | None:
    """The key of a subject, made where there is none."""
    return ring.key(ring.in_use(ring.name(subject)))


def test_two_writers_make_one_key_of_a_subject(tmp_path: Path) -> None:
    """Of two handles that need a subject's first key at once both have the same, no matter which made it."""
    rings = [keyring(tmp_path), keyring(tmp_path)]
    for nth in range(20):
        subject = b"subject %d" % nth
        keys = together(*(partial(first_key, ring, subject) for ring in rings))
        assert len(keys) == 2 and keys[0] == keys[1]
    for ring in rings:
        ring.close()


class Interrupted(KeyAtHand):
    """A store key that lets another writer go first, the first time it wraps."""

    first: Callable[[], object] | None = None

    def wrap(self, key: bytes) -> bytes:
        """The key wrapped, after the other one."""
        first, self.first = self.first, None
        if first is not None:
            first()
        return super().wrap(key)


def test_of_two_new_keys_the_first_one_stays(tmp_path: Path) -> None:
    """A writer that was overtaken while it made a key takes the one that is there."""
    other = keyring(tmp_path)
    key = Interrupted(bytes(range(32)), SystemIds())
    ring = keyring(tmp_path, key)
    name = ring.name(b"ann")
    key.first = lambda: other.in_use(name)
    assert ring.in_use(name) == name and ring.key(name) == other.key(name) != None  # noqa: E711
    for case in (ring, other):
        case.close()


def flip(sound: bytes, at: int) -> bytes:
    """Bytes with one bit of one of them turned."""
    return sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :]


@pytest.mark.parametrize("column", ["form", "count", "sizes", "salts", "content"])
def test_no_damage_of_a_frame_gives_another_content(tmp_path: Path, column: str) -> None:
    """Each byte of a row flipped, its cells are no more what was sealed, and nothing is raised."""
    log = opened(tmp_path)
    first = log.append(chain([CommitSpec(contents=(b"ann", b"word " * 9, b"z" * 70_000))]), 0, 0)[0]
    for row in (1, 3):
        db = apsw.Connection(str(tmp_path / "log.sqlite"))
        db.execute("PRAGMA synchronous = OFF").fetchall()
        sound = db.execute(f"SELECT {column} FROM frames WHERE first = ?", (row,)).get
        flips = range(6) if isinstance(sound, int) else range(len(sound))
        for at in flips:
            flipped = sound ^ 1 << at if isinstance(sound, int) else flip(sound, at)
            db.execute(f"UPDATE frames SET {column} = ? WHERE first = ?", (flipped, row))
            cells = log.cells([row])
            assert row not in cells or not cells[row].keeps(first.commitment(row - 1)), (row, at)
        db.execute(f"UPDATE frames SET {column} = ? WHERE first = ?", (sound, row))
        db.close()
    assert all(cell.keeps(first.commitment(n - 1)) for n, cell in log.cells([1, 2, 3]).items())
    log.close()


def test_a_damaged_file_gives_no_content(tmp_path: Path) -> None:
    """A byte flipped in the file of a long cell, or a file cut short, leaves nothing that was sealed."""
    log = opened(tmp_path)
    first = log.append(chain([CommitSpec(contents=(b"z" * 70_000,))]), 0, 0)[0]
    file = log.files.path(first.commitment(0))
    sound = file.read_bytes()
    for case in (*(flip(sound, at) for at in (0, 20, 40, 70_000)), sound[:30], b""):
        file.write_bytes(case)
        assert not log.cells([1])[1].keeps(first.commitment(0))
    log.close()


def test_a_plain_frame_is_no_frame_of_an_encrypted_log(tmp_path: Path) -> None:
    """A row that somebody put there unencrypted gives damaged cells, so nothing plain goes unnoticed."""
    log = opened(tmp_path)
    commits = chain([CommitSpec(contents=(b"ann",))])
    log.append(commits, 0, 0)
    log.close()
    db = apsw.Connection(str(tmp_path / "log.sqlite"))
    cell = commits[0].cells[0]
    db.execute("UPDATE frames SET form = 0, salts = ?, content = ?", (cell.salt, cell.content))
    db.close()
    log = opened(tmp_path)
    assert not log.cells([1])[1].keeps(cell.commitment)
    log.close()


# ---- keys that do not fit


def test_a_log_says_what_it_takes(tmp_path: Path) -> None:
    """An encrypted log opened without keys, and a plain one with them, are refused with the remedy."""
    opened(tmp_path).close()
    with refused("encrypted", StoreError):
        SqliteLog(tmp_path / "log.sqlite")
    plain = tmp_path / "plain.sqlite"
    SqliteLog.create(plain)
    with refused("encrypted", StoreError):
        SqliteLog(plain, vault=FrameEncryption(keyring(tmp_path), SystemIds(), whose))


def test_another_key_is_refused(tmp_path: Path) -> None:
    """Keys wrapped by another store key are not opened, and the file stays as it was."""
    keyring(tmp_path).close()
    before = everything(tmp_path)
    with refused("other-store-key", StoreError):
        keyring(tmp_path, KeyAtHand(bytes(32), SystemIds()))
    assert everything(tmp_path) == before


def test_a_missing_or_damaged_file_of_keys_is_named(tmp_path: Path) -> None:
    """Without its file of keys, or with another file in its place, nothing is opened or rebuilt."""
    log = opened(tmp_path)
    log.append(chain(STORY), 0, 0)
    log.close()
    path = tmp_path / "keys.sqlite"
    kept = path.read_bytes()
    path.unlink()
    with refused("keys-missing", StoreError):
        Keyring(path, KEY, SystemIds())
    for damage in (b"no file of keys", kept[:4096], bytes(100) + kept[100:]):
        path.write_bytes(damage)
        with pytest.raises((CorruptError, StoreError), match="backup"):
            Keyring(path, KEY, SystemIds())


def test_keys_that_changed_places_are_noticed(tmp_path: Path) -> None:
    """A wrapped key under another's id is damage."""
    ring = keyring(tmp_path)
    ann, bob = (ring.in_use(ring.name(subject)) for subject in (b"ann", b"bob"))
    ring.close()
    db = apsw.Connection(str(tmp_path / "keys.sqlite"))
    db.execute("UPDATE keys SET wrapped = (SELECT wrapped FROM keys WHERE id = ?) WHERE id = ?", (ann, bob))
    db.close()
    ring = keyring(tmp_path)
    assert ring.key(ann)
    with refused("keys-damaged", CorruptError):
        ring.key(bob)
    ring.close()


def test_a_new_store_key_opens_what_the_old_one_did(tmp_path: Path) -> None:
    """Wrapped again the keys are the same, dropped ones stay dropped, and the old store key opens nothing."""
    ring = keyring(tmp_path)
    ann, bob = (ring.in_use(ring.name(subject)) for subject in (b"ann", b"bob"))
    key = ring.key(ann)
    ring.drop(bob)
    new = KeyAtHand(b"n" * 32, SystemIds())
    assert ring.rewrap(new) == 1
    ring.close()
    ring = keyring(tmp_path, new)
    assert (ring.key(ann), ring.key(bob)) == (key, DROPPED) and ring.name(b"ann") == ann
    ring.close()
    with refused("other-store-key", StoreError):
        keyring(tmp_path)
