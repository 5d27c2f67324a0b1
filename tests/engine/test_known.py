"""Contents sealed before are named again, by later processes and forks too; what remembers them is a hint only."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.core.mutation import Create, Message, decode
from vmstore.engine import dedup as known_module
from vmstore.engine.batch import Batch
from vmstore.engine.dedup import DIGEST_BYTES, KnownContents, SealedContent
from vmstore.engine.engine import Engine
from vmstore.engine.head import NewSession
from vmstore.namespace.namespace import KNOWN
from vmstore.views.branch import Branch

LONG = "a long message, " * 200


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store whose session holds a long message and its answer, closed."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat(LONG), answer("Quite so."))
    return path


def engine_of(store: vmstore.Store) -> Engine:
    """The gate of a store."""
    return store._ns.engine


def batch_of(store: vmstore.Store, name: str = "s") -> Batch:
    """A batch of a session."""
    store.admin.follow()
    key = store._ns.key(name)
    assert key is not None
    return engine_of(store).batch(key)


def file_of(path: Path) -> Path:
    """Where a store remembers contents."""
    return path / "default" / KNOWN


def test_a_later_process_names_what_an_earlier_one_sealed(path: Path) -> None:
    """A content sealed before the store was opened is named where it lies, and its cell holds it."""
    with vmstore.open(path) as store:
        batch = batch_of(store)
        ref = batch.cell(LONG.encode())
        assert isinstance(ref, tuple)
        assert isinstance(batch.cell(b"something new"), int)
        batch.add(Create(3, 0, 2, 0, 0, ref, len(LONG), 1))
        stored = batch.commit(0)[0]
        assert stored.cell_count == 1
        commit = next(c for c in store.admin.log.tail(0, 99) if c.first <= ref[0] <= c.last)
        assert store.admin.log.cells([commit.cell + ref[1]])[commit.cell + ref[1]].content == LONG.encode()
        assert store.verify().ok


def test_a_fork_names_what_its_parent_sealed_before(path: Path) -> None:
    """A fork names contents up to its fork point, and seals again what its parent wrote after it (law 7)."""
    with vmstore.open(path) as store:
        store.session("s").fork("f", call=1)
        batch = batch_of(store)
        batch.add(Message(0, 0, batch.cell(b"only the parent's")))
        batch.commit(0)
        fork = batch_of(store, "f")
        assert isinstance(fork.cell(LONG.encode()), tuple)
        assert isinstance(fork.cell(b"only the parent's"), int)
    with vmstore.open(path) as store:
        fork = batch_of(store, "f")
        assert isinstance(fork.cell(LONG.encode()), tuple)
        assert isinstance(fork.cell(b"only the parent's"), int)


def test_other_sessions_share_nothing(path: Path) -> None:
    """The same content in another session is sealed again, by a later process too (law 10)."""
    with vmstore.open(path) as store:
        store.record("other", chat("hello"))
    with vmstore.open(path) as store:
        assert isinstance(batch_of(store, "other").cell(LONG.encode()), int)


@pytest.mark.parametrize("harm", ["delete", "garbage", "folder", "keyless", "tableless"])
def test_without_its_file_contents_are_sealed_again(path: Path, harm: str) -> None:
    """Where the file is gone, damaged or cannot be made, the content is written once more and all else holds."""
    file = file_of(path)
    db = apsw.Connection(str(file))
    db.execute({"keyless": "UPDATE key SET key = 7", "tableless": "DROP TABLE commits"}.get(harm, "SELECT 1"))
    db.close()
    for suffix in ("", "-wal", "-shm") if harm in ("delete", "garbage", "folder") else ():
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    if harm == "garbage":
        file.write_bytes(b"no database " * 500)
    elif harm == "folder":
        file.mkdir()
    with vmstore.open(path) as store:
        batch = batch_of(store)
        assert isinstance(batch.cell(LONG.encode()), int)
        batch.add(Create(3, 0, 2, 0, 0, batch.cell(LONG.encode()), len(LONG), 1))
        batch.commit(0)
        assert isinstance(batch_of(store).cell(LONG.encode()), tuple)
        assert store.verify().ok
    with vmstore.open(path) as store:
        assert isinstance(batch_of(store).cell(LONG.encode()), int if harm == "folder" else tuple)


@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE commits SET position = position + 1000",
        "UPDATE commits SET digests = CAST(zeroblob(800) || digests AS BLOB)",
        "UPDATE commits SET digests = CAST(zeroblob(16) || digests AS BLOB)",
        "UPDATE OR IGNORE commits SET position = 1",
        "UPDATE commits SET digests = (SELECT digests FROM commits ORDER BY position DESC LIMIT 1)",
        "UPDATE commits SET digests = substr(digests, 2)",
        "UPDATE commits SET digests = 7",
    ],
)
def test_what_the_file_says_is_not_believed(path: Path, lie: str) -> None:
    """A row that points at another content, or at nothing, is passed over: no content is ever named wrongly."""
    db = apsw.Connection(str(file_of(path)))
    db.execute(lie)
    db.close()
    with vmstore.open(path) as store:
        batch = batch_of(store)
        for content in (LONG.encode(), b"Quite so.", b"s"):
            ref = batch.cell(content)
            if isinstance(ref, tuple):
                commit = next(c for c in store.admin.log.tail(0, 99) if c.first <= ref[0] <= c.last)
                number = commit.cell + ref[1]
                assert store.admin.log.cells([number])[number].content == content


def test_the_file_keeps_no_content(path: Path) -> None:
    """The file holds no content, and digests that cannot be made without its key."""
    assert LONG[:16].encode() not in file_of(path).read_bytes()
    db = apsw.Connection(str(file_of(path)))
    rows: list[bytes] = [row[0] for row in db.execute("SELECT digests FROM commits")]
    digests = {row[at : at + DIGEST_BYTES] for row in rows for at in range(0, len(row), DIGEST_BYTES)}
    key = db.execute("SELECT key FROM key").get
    db.close()
    other = KnownContents()
    assert len(digests) > 3 and other.digest(LONG.encode()) not in digests
    assert isinstance(key, bytes) and len(key) == 16


def test_everything_can_be_forgotten(path: Path) -> None:
    """What is forgotten is gone from memory and file, and so is the key, so that no guess can be tested; it goes on."""
    with vmstore.open(path) as store:
        engine = engine_of(store)
        assert isinstance(batch_of(store).cell(LONG.encode()), tuple)
        before, short = engine.known.digest(LONG.encode()), engine.known.digest(b"short")
        engine.known.renew()
        assert before != engine.known.digest(LONG.encode()) and before not in file_of(path).read_bytes()
        assert short != engine.known.digest(b"short")
        assert isinstance(batch_of(store).cell(LONG.encode()), int)
    with vmstore.open(path) as store:
        assert isinstance(batch_of(store).cell(LONG.encode()), int)


def test_contents_can_be_forgotten(path: Path) -> None:
    """What is forgotten is gone from memory and file, row by row, and the rest stays."""
    with vmstore.open(path) as store:
        engine, key = engine_of(store), store._ns.key("s")
        assert key is not None
        ref = batch_of(store).cell(LONG.encode())
        assert isinstance(ref, tuple)
        engine.known.forget(key, [ref[0]])
        assert isinstance(batch_of(store).cell(LONG.encode()), int)
        assert isinstance(batch_of(store).cell(b"Quite so."), tuple)
    with vmstore.open(path) as store:
        assert isinstance(batch_of(store).cell(LONG.encode()), int)
        assert isinstance(batch_of(store).cell(b"Quite so."), tuple)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond its bound the oldest are forgotten, and what was noted is written in time."""
    monkeypatch.setattr(known_module, "CONTENTS_MAX", 10)
    monkeypatch.setattr(known_module, "NOTED_MAX", 4)
    known = KnownContents()
    digests = [known.digest(b"%d" % n) for n in range(20)]
    for n, digest in enumerate(digests):
        known.note(1, n + 1, [digest], [b"c"])
    assert [known.find(1, digest) is not None for digest in digests] == [False] * 10 + [True] * 10
    assert known.find(2, digests[-1]) is None
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE sessions(session, origin, parent, fork_position, turn_before, call_before)")
    known.load(Branch(db, 1))
    assert known.find(1, digests[0]) == SealedContent(1, 0, None)
    known.close()


def test_a_reader_makes_no_file(tmp_path: Path, path: Path) -> None:
    """A store opened for reading neither makes the file nor changes it."""
    file_of(path).unlink()
    with vmstore.open(path, "r") as store:
        assert store.session("s").calls()
    assert not file_of(path).exists()


def test_no_earlier_body_is_changed(path: Path) -> None:
    """Naming again changes only what is written now: the earlier commits are as they were."""
    with vmstore.open(path) as store:
        before = [(c.hash, decode(c.body)) for c in store.admin.log.tail(0, 99)]
        store.record("s", chat(LONG, "Quite so.", LONG))
        assert [(c.hash, decode(c.body)) for c in store.admin.log.tail(0, 99)][: len(before)] == before
        assert store.verify().ok


def test_a_file_that_leads_nowhere_costs_a_copy(path: Path) -> None:
    """Where the file names a cell its commit does not have, the content is written again."""
    db = apsw.Connection(str(file_of(path)))
    db.execute("UPDATE commits SET digests = CAST(zeroblob(1600) || digests AS BLOB)")
    db.close()
    with vmstore.open(path) as store:
        assert isinstance(batch_of(store).cell(LONG.encode()), int)


def test_a_file_that_is_no_use_is_no_hindrance(path: Path) -> None:
    """Where the file's table is gone the session goes on, and what was said before is written again."""
    db = apsw.Connection(str(file_of(path)))
    db.execute("DROP TABLE commits")
    db.close()
    with vmstore.open(path) as store:
        assert isinstance(batch_of(store).cell(LONG.encode()), int)
        assert store.record("s", chat(LONG, "Quite so.", "More.")).call == 2


def test_a_new_session_names_no_cell_it_lacks() -> None:
    """The first commit of a session cannot name a cell by a position that no commit holds."""
    with vmstore.memory_store() as store:
        batch = engine_of(store).begin(NewSession("new"), 0)
        with refused("cells_exist"):
            batch.add(Message(0, 0, (1, 0)))
