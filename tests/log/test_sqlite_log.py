"""The SQLite log keeps the contract, marks its file as ours, and is durable as it says."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.refusals import refused
from vmstore.errors import ConflictError, CorruptError, ReadOnlyError, StoreError
from vmstore.log.commit import genesis
from vmstore.log.file import APPLICATION_ID, CHECKPOINT_PAGES, FORMAT, WAL_BYTES, write_again
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, LogContract, chain

FULL = 2
STORY = [CommitSpec(2, contents=(b"a", b"b")), CommitSpec(1, contents=(b"c",)), CommitSpec(4)]


class TestSqliteLog(LogContract):
    def make_log(self, folder: Path) -> Log:
        """The log in a folder's file."""
        path = folder / "log.sqlite"
        if not path.exists():
            SqliteLog.create(path)
        return SqliteLog(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a log that holds a story, closed."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)
    log = SqliteLog(path)
    log.append(chain(STORY), 0, 0)
    log.close()
    return path


@pytest.fixture
def log(path: Path) -> Iterator[SqliteLog]:
    """That log, open."""
    log = SqliteLog(path)
    yield log
    log.close()


def files(path: Path) -> dict[str, bytes]:
    """Every file beside a log, with its bytes."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


# ---- what the file says


def test_the_file_is_marked_as_ours(path: Path) -> None:
    """Application id, format and WAL mode stand in the header of the file, where SQLite's format puts them."""
    header = path.read_bytes()[:100]
    assert header[68:72] == APPLICATION_ID.to_bytes(4, "big") == b"vmst"
    assert int.from_bytes(header[60:64], "big") == FORMAT
    assert header[18:20] == b"\x02\x02"


@pytest.mark.parametrize("readonly", [False, True])
def test_another_application_is_refused(path: Path, readonly: bool) -> None:
    """A SQLite file of somebody else is refused with the reason and left as it was."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA application_id = 7")
    db.close()
    before = files(path)
    with refused("not-a-log", StoreError):
        SqliteLog(path, readonly=readonly)
    assert files(path) == before


@pytest.mark.parametrize("readonly", [False, True])
def test_another_format_is_refused_with_the_remedy(path: Path, readonly: bool) -> None:
    """A log of another format is refused, says which it is and what to do, and is left as it was."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA user_version = 9")
    db.close()
    before = files(path)
    with pytest.raises(StoreError, match=f"has format 9.* reads format {FORMAT}: install the version"):
        SqliteLog(path, readonly=readonly)
    assert files(path) == before


@pytest.mark.parametrize("content", [b"", b"not a database" * 100, b"SQLite format 3\0" + bytes(4080)])
def test_what_is_no_database_is_refused(path: Path, content: bytes) -> None:
    """A file of something else, or an empty one, is an error of ours that names it, and is left as it was."""
    path.write_bytes(content)
    with pytest.raises((StoreError, CorruptError), match=r"log\.sqlite"):
        SqliteLog(path)
    assert path.read_bytes() == content


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    """Opening a log that is not there is an error of ours, and makes nothing."""
    with refused("not-read", StoreError):
        SqliteLog(tmp_path / "log.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["3.51.2", "3.7.0", "3.50.9"])
def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """A SQLite that can lose commits is refused before a file is touched, with the version to install."""
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    before = files(path)
    with pytest.raises(StoreError, match=rf"{version} can lose commits; install apsw 3\.51\.3"):
        SqliteLog(path)
    with refused("old-sqlite", StoreError):
        SqliteLog.create(path.with_name("other.sqlite"))
    assert files(path) == before


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "4.0.0"])
def test_a_new_sqlite_is_taken(path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The first version without the fault and every later one are taken."""
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    SqliteLog(path).close()


# ---- durability


def test_the_live_connection_flushes_every_commit(log: SqliteLog) -> None:
    """The connection that appends is in WAL mode with `synchronous` at FULL and a short WAL."""
    with log.file as db:
        assert db.execute("PRAGMA synchronous").get == FULL
        assert db.execute("PRAGMA journal_mode").get == "wal"
        assert db.execute("PRAGMA wal_autocheckpoint").get == CHECKPOINT_PAGES
        assert db.execute("PRAGMA fullfsync").get == db.execute("PRAGMA checkpoint_fullfsync").get == 1


def test_the_wal_is_gone_after_close(path: Path) -> None:
    """While a log is open its WAL lies beside it, and after the last handle closed only the log does."""
    first, second = SqliteLog(path), SqliteLog(path)
    first.append(chain([CommitSpec(contents=(b"x" * 9_000,))], genesis(b"two")), 0, 0)
    assert path.with_name("log.sqlite-wal").stat().st_size > 9_000
    first.close()
    assert path.with_name("log.sqlite-wal").exists()
    second.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["log.lock", "log.queue", "log.sqlite"]
    log = SqliteLog(path)
    assert log.ordinal == 4
    log.close()


def test_a_writer_that_stays_writes_over_its_wal(path: Path) -> None:
    """From its third append on a handle finds a WAL of full length, which does not grow, and recovery reads past."""
    log = SqliteLog(path)
    sizes = []
    for n in range(40):
        log.append(chain([CommitSpec(contents=(b"x" * 900,))], genesis(bytes([n]))), 0, 0)
        sizes.append(path.with_name("log.sqlite-wal").stat().st_size)
    assert sizes[0] < sizes[1] == sizes[-1] == WAL_BYTES
    left = path.parent / "left"
    left.mkdir()
    for name in ("log.sqlite", "log.sqlite-wal"):  # as a kill leaves them
        shutil.copy(path.with_name(name), left / name)
    killed = SqliteLog(left / "log.sqlite")
    assert killed.tail(0, 99) == log.tail(0, 99) and len(killed.tail(0, 99)) == 43
    killed.close()
    log.close()


def test_the_wal_stays_short(path: Path) -> None:
    """Many commits do not make the WAL grow: it is folded into the file as it goes."""
    log = SqliteLog(path)
    for n in range(60):
        log.append(chain([CommitSpec(contents=(b"x" * 40_000,))], genesis(bytes([n]))), 0, 0)
    assert path.with_name("log.sqlite-wal").stat().st_size < 3 * CHECKPOINT_PAGES * 4096
    log.close()


# ---- several handles


def test_two_handles_write_different_sessions(path: Path) -> None:
    """Two handles append in turn, and each reads what the other wrote."""
    first, two = SqliteLog(path), SqliteLog(path)
    mine = first.append(chain([CommitSpec(contents=(b"one",))], genesis(b"one")), 0, 0)[0]
    theirs = two.append(chain([CommitSpec(contents=(b"two",))], genesis(b"two")), 0, 0)[0]
    assert (mine.ordinal, theirs.ordinal, mine.cell, theirs.cell) == (4, 5, 4, 5)
    assert first.ordinal == two.ordinal == 5
    assert first.tail(0, 9) == two.tail(0, 9)
    assert first.cells([5])[5].content == b"two"
    assert first.head(5) == two.head(5) is not None
    first.close()
    two.close()


def test_a_session_another_handle_opened_is_found(path: Path) -> None:
    """A session that a shared view may name already has a head on every handle."""
    first, two = SqliteLog(path), SqliteLog(path)
    opened = first.append(chain([CommitSpec(2)], genesis(b"two")), 0, 0)[0]
    assert two.head(opened.session) == (2, opened.hash)
    first.close()
    two.close()


def test_two_handles_on_one_session_conflict_then_fit(path: Path) -> None:
    """The second of two handles that expect the same position conflicts, sees why, and then fits."""
    first, two = SqliteLog(path), SqliteLog(path)
    head = first.head(1)
    assert head is not None
    added = first.append(chain([CommitSpec(2)], head.hash, 7), 1, 7)[0]
    with refused("overtaken", ConflictError, "position 9"):
        two.append(chain([CommitSpec()], head.hash, 7), 1, 7)
    seen = two.head(1)
    assert seen == (9, added.hash)
    assert two.append(chain([CommitSpec()], seen.hash, 9), 1, 9)[0].first == 10
    first.close()
    two.close()


def test_a_writer_waits_for_another(path: Path) -> None:
    """While another handle holds the file an append waits for its end and then succeeds."""
    holder, log = apsw.Connection(str(path)), SqliteLog(path)
    holder.execute("BEGIN IMMEDIATE")
    texts: list[str] = []

    def let_go() -> None:
        time.sleep(0.2)
        texts.append("let go")
        holder.execute("ROLLBACK")

    thread = threading.Thread(target=let_go)
    thread.start()
    log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)
    assert texts == ["let go"]
    thread.join()
    log.close()
    holder.close()


def test_a_file_held_for_long_is_named(path: Path) -> None:
    """An append that waited in vain says who is in the way, and leaves nothing."""
    holder, log = apsw.Connection(str(path)), SqliteLog(path)
    with log.file as db:
        db.setbusytimeout(10)
    holder.execute("BEGIN IMMEDIATE")
    with refused("held", StoreError):
        log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)
    holder.execute("ROLLBACK")
    assert log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)[0].ordinal == 4
    log.close()
    holder.close()


def test_opening_waits_for_a_file_that_is_busy(path: Path) -> None:
    """A file locked for a moment, as when its last user closes it, is waited for at open."""
    holder = apsw.Connection(str(path))
    holder.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").fetchall()

    def let_go() -> None:
        time.sleep(0.2)
        holder.close()

    thread = threading.Thread(target=let_go)
    thread.start()
    try:
        for readonly in (False, True):
            log = SqliteLog(path, readonly=readonly)
            assert log.ordinal == 3
            log.close()
    finally:
        thread.join()


# ---- reading only


def test_a_reader_cannot_write(path: Path) -> None:
    """A handle for reading refuses an append and says how to open the log for writing."""
    log = SqliteLog(path, readonly=True)
    with refused("read-only", ReadOnlyError, "'rw'"):
        log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)
    assert log.ordinal == 3
    log.close()


def test_reading_leaves_the_file_as_it_is(path: Path) -> None:
    """Opening for reading, asking and closing change no byte of the log and put nothing into its WAL."""
    before = files(path)
    log = SqliteLog(path, readonly=True)
    assert len(log.tail(0, 9)) == 3 and len(log.cells([1, 2, 3])) == 3
    log.close()
    left = files(path)
    assert left.pop("log.sqlite-wal", b"") == b""
    left.pop("log.sqlite-shm", None)  # a reader may make the shared index, and cannot remove it
    assert left == before


def test_a_reader_follows_a_writer(path: Path) -> None:
    """A handle for reading sees what is appended while it is open."""
    reader, writer = SqliteLog(path, readonly=True), SqliteLog(path)
    writer.append(chain([CommitSpec(contents=(b"new",))], genesis(b"two")), 0, 0)
    assert (reader.ordinal, reader.cells([4])[4].content) == (4, b"new")
    writer.close()
    assert reader.ordinal == 4
    reader.close()


@pytest.mark.parametrize("name", ["a?b", "a%20b", "a#b", "ä b", "a;b'c"])
def test_any_folder_name_is_read(tmp_path: Path, path: Path, name: str) -> None:
    """A log whose path holds signs that mean something in a URI is opened for reading and writing."""
    folder = tmp_path / name
    folder.mkdir()
    moved = path.rename(folder / "log.sqlite")
    for readonly in (True, False):
        log = SqliteLog(moved, readonly=readonly)
        assert log.ordinal == 3
        log.close()


def test_pages_that_changed_places_are_named(path: Path) -> None:
    """Where the pages of the commits lie in another order, a tail names the file and gives none of them."""
    log = SqliteLog(path)
    log.append(chain([CommitSpec(contents=(b"x",)) for _ in range(400)], genesis(b"u")), 0, 0)
    log.close()
    db = apsw.Connection(str(path))
    size = db.pragma("page_size")
    leaves = [
        row[0]
        for row in db.execute("SELECT pageno FROM dbstat WHERE name = 'commits' AND pagetype = 'leaf' ORDER BY pageno")
    ]
    db.close()
    whole = bytearray(path.read_bytes())
    first, two = ((leaves[n] - 1) * size for n in (1, 3))
    whole[first : first + size], whole[two : two + size] = whole[two : two + size], whole[first : first + size]
    path.write_bytes(whole)
    log = SqliteLog(path, readonly=True)
    with refused("log-out-of-order", CorruptError):
        log.tail(0, 1_000)
    log.close()


def test_where_there_is_no_wal_nothing_is_written_again(tmp_path: Path) -> None:
    """A log without a WAL beside it has nothing in doubt: no file is made of it."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)
    before = sorted(tmp_path.iterdir())
    write_again(path, 0)
    assert sorted(tmp_path.iterdir()) == before
