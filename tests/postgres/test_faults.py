"""What goes wrong between a log and its PostgreSQL server loses nothing, doubles nothing, and is named."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

from tests.postgres.cutting import LosingSocket  # noqa: E402
from tests.postgres.logs import NAMESPACE, database, log_in, schema_of  # noqa: E402
from tests.postgres.server import own_server, server  # noqa: E402
from tests.refusals import refused  # noqa: E402
from vmstore.errors import ConflictError, LockedError, OvertakenError, StoreError  # noqa: E402
from vmstore.log.commit import Commit, genesis  # noqa: E402
from vmstore.log.postgres.connection import Connection  # noqa: E402
from vmstore.log.postgres.create import make  # noqa: E402
from vmstore.log.postgres.log import PostgresLog  # noqa: E402
from vmstore.log.postgres.tables import statements  # noqa: E402
from vmstore.testing.chains import CommitSpec, chain  # noqa: E402
from vmstore.testing.log_contract import run_together  # noqa: E402

FORBIDDEN = re.compile(
    r"nextval|currval|serial|sequence|generated|advisory|extension|trigger|\blisten\b|\bnotify\b|savepoint|temp", re.I
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PostgresLog]:
    """An empty log."""
    log = log_in(tmp_path)
    yield log
    log.close()


# ---- order


def test_a_sequence_hides_what_commits_late() -> None:
    """Who follows a sequence misses a row that was numbered before and committed after: the control of what follows."""
    address = server().database()
    with psycopg.connect(address) as slow, psycopg.connect(address, autocommit=True) as fast:
        fast.execute("CREATE TABLE naive(at bigserial PRIMARY KEY, who text)")
        slow.execute("INSERT INTO naive(who) VALUES ('slow')")
        fast.execute("INSERT INTO naive(who) VALUES ('fast')")
        seen = [row[0] for row in fast.execute("SELECT at FROM naive ORDER BY at").fetchall()]
        slow.commit()
        later = fast.execute("SELECT who FROM naive WHERE at > %s", (seen[-1],)).fetchall()
        assert (seen, later, fast.execute("SELECT count(*) FROM naive").fetchone()) == ([2], [], (2,))


def test_who_follows_misses_nothing_of_many_writers(log: PostgresLog, tmp_path: Path) -> None:
    """Handles that write at once give dense ordinals, and who follows them by position meets every commit once."""
    done, seen = threading.Event(), list[Commit]()
    reader = log_in(tmp_path, readonly=True)

    def follow() -> None:
        while not done.is_set() or reader.ordinal > len(seen):
            seen.extend(reader.tail(len(seen), 7))

    def write(number: int) -> None:
        mine = log_in(tmp_path)
        _write_session(mine, bytes([number]), 15)
        mine.close()

    following = threading.Thread(target=follow)
    following.start()
    run_together([partial(write, number) for number in range(5)])
    done.set()
    following.join()
    assert [commit.ordinal for commit in seen] == list(range(1, 76)) == [c.ordinal for c in log.tail(0, 99)]
    reader.close()


def test_a_slow_writer_does_not_starve(log: PostgresLog, tmp_path: Path) -> None:
    """A handle that is overtaken again and again waits for the row, and gets its turn among those that never pause."""
    over, other = threading.Event(), log_in(tmp_path)
    others = [log_in(tmp_path) for _ in range(2)]
    busy = [
        threading.Thread(target=_write_session, args=(handle, bytes([n]), 10**6, over))
        for n, handle in enumerate(others)
    ]
    for thread in busy:
        thread.start()
    right, rounds = other._lay, list[int]()
    other._lay = lambda pending: (time.sleep(0.05), rounds.append(1), right(pending))[2]  # type: ignore[method-assign]
    try:
        assert len(_write_session(other, b"slow", 3)) == 3
    finally:
        over.set()
        for thread in busy:
            thread.join()
        for handle in (other, *others):
            handle.close()
    assert len(rounds) <= 3 * 7


def test_what_is_decided_is_not_overtaken(log: PostgresLog, tmp_path: Path) -> None:
    """While a handle decides, another handle's append waits, and goes on as soon as that has appended."""
    other, order = log_in(tmp_path), list[str]()

    def write() -> None:
        other.append(chain([CommitSpec()], genesis(b"other")), 0, 0)
        order.append("other")

    waiting = threading.Thread(target=write)
    with log.deciding():
        waiting.start()
        waiting.join(0.3)
        assert order == []
        log.append(chain([CommitSpec()]), 0, 0)
        waiting.join(10)
        assert order == ["other"]
        assert log.append(chain([CommitSpec()], genesis(b"third")), 0, 0)[0].ordinal == 3
    other.close()


@pytest.mark.parametrize("door", ["alone", "destroying"])
def test_who_is_alone_stays_so_for_many_appends(log: PostgresLog, tmp_path: Path, door: str) -> None:
    """A lease keeps another handle out between appends, and names its holder to who waited too long."""
    other = log_in(tmp_path, wait_s=0.2)
    with getattr(log, door)():
        for name in (b"one", b"two"):
            log.append(chain([CommitSpec()], genesis(name)), 0, 0)
            with refused("locked", LockedError, log._me):
                other.append(chain([CommitSpec()], genesis(b"other")), 0, 0)
    assert other.append(chain([CommitSpec()], genesis(b"other")), 0, 0)[0].ordinal == 3
    other.close()


def test_a_lease_that_ran_out_lets_nobody_write_what_was_overtaken(log: PostgresLog, tmp_path: Path) -> None:
    """A holder that was stopped for too long is refused where another wrote meanwhile."""
    other = log_in(tmp_path)
    with log.alone():
        _execute(tmp_path, "UPDATE {head} SET held_until = now() - interval '1 second'")
        other.append(chain([CommitSpec()], genesis(b"other")), 0, 0)
        with pytest.raises(OvertakenError):
            log.append(chain([CommitSpec()]), 0, 0)
    assert log.append(chain([CommitSpec()]), 0, 0)[0].ordinal == 2
    other.close()


# ---- the server goes away


def test_an_answer_that_is_lost_doubles_nothing(tmp_path: Path) -> None:
    """A commit whose answer never came is found by its hash, and is acknowledged once."""
    with tempfile.TemporaryDirectory() as folder:
        passing = LosingSocket(Path(folder), Path(server().uri.split("host=")[1]))
        address = database().split("?")[0] + f"?host={folder}"
        log_in(tmp_path).close()
        log = PostgresLog(address, "db", NAMESPACE, schema_of(tmp_path), me="me", wait_s=10)
        first = log.append(chain([CommitSpec(contents=(b"a",))]), 0, 0)[0]
        passing.lose(b"INSERT INTO")
        second = log.append(chain([CommitSpec(contents=(b"b",))], first.hash, 1), 1, 1)[0]
        with log.deciding():
            passing.lose(b"INSERT INTO")
            third = log.append(chain([CommitSpec(contents=(b"c",))], second.hash, 2), 1, 2)[0]
        assert (passing.lost, log.tail(0, 9), log.last_cell) == (2, [first, second, third], 3)
        log.close()
        passing.close()


def test_a_connection_that_is_ended_costs_nothing(log: PostgresLog, tmp_path: Path) -> None:
    """An append that waits while its connection is ended is tried again, and stored once."""
    first = log.append(chain([CommitSpec()]), 0, 0)[0]
    with psycopg.connect(database()) as holder:
        holder.execute(f"SELECT 1 FROM {_head(tmp_path)} FOR UPDATE")
        writing = threading.Thread(target=log.append, args=(chain([CommitSpec()], first.hash, 1), 1, 1))
        writing.start()
        blocked = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while not (rows := server().execute(blocked, database().split("?")[0].rsplit("/", 1)[1])):
            time.sleep(0.01)
        server().execute(f"SELECT pg_terminate_backend({rows[0][0]})")
        time.sleep(0.1)
    writing.join(10)
    assert [commit.first for commit in log.tail(0, 9)] == [1, 2]


def test_a_server_that_is_killed_loses_and_doubles_nothing() -> None:
    """Writers whose server is killed three times get every answer, and the log holds each commit once, in order."""
    mine = own_server()
    address, sql = mine.database(), statements("")
    connection = Connection(address, "db", 30.0)
    make(connection, sql, NAMESPACE, bytes(16))
    connection.close()
    acknowledged, over = list[Commit](), threading.Event()

    def write(number: int) -> None:
        log = PostgresLog(address, "db", NAMESPACE, sql, me=f"w{number}", wait_s=60)
        acknowledged.extend(_write_session(log, bytes([number]), 10_000, over))
        log.close()

    def kill() -> None:
        for _ in range(3):
            time.sleep(0.4)
            mine.kill_and_start()
        time.sleep(0.3)
        over.set()

    run_together([*(partial(write, number) for number in range(4)), kill])
    log = PostgresLog(address, "db", NAMESPACE, sql, me="reader", wait_s=30)
    stored = log.tail(0, 1 << 20)
    assert len(stored) > 20 and sorted(acknowledged, key=lambda commit: commit.ordinal) == stored
    for commit in stored:
        assert log.cells([commit.cell])[commit.cell].content
    log.close()
    mine.stop()


def test_a_server_that_stays_away_is_named() -> None:
    """Where no server answers, opening and writing say so, and that nothing is known of the commit."""
    mine = own_server()
    address, sql = mine.database(), statements("")
    connection = Connection(address, "db", 0.0)
    make(connection, sql, NAMESPACE, bytes(16))
    log = PostgresLog(address, "db", NAMESPACE, sql, me="w", wait_s=0.3)
    mine.stop()
    with refused("unknown-outcome", StoreError, "request id"):
        log.append(chain([CommitSpec()]), 0, 0)
    with refused("unreachable", StoreError, "db"):
        log.tail(0, 1)


# ---- what it stands on


def test_only_portable_sql_is_sent(tmp_path: Path, log: PostgresLog) -> None:
    """No sequence, advisory lock, extension or trigger is used, neither in a statement nor in the database."""
    sql = schema_of(tmp_path)
    sent = [statement for field in sql for statement in ([field] if isinstance(field, str) else field)]
    assert len(sent) > 20 and [text for text in sent if FORBIDDEN.search(text)] == []
    assert FORBIDDEN.search("SELECT pg_advisory_xact_lock(1)")
    log.append(chain([CommitSpec()]), 0, 0)
    name = database().split("?")[0].rsplit("/", 1)[1]
    counts = (
        "SELECT (SELECT count(*) FROM pg_sequences), (SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql')"
    )
    assert server().execute(counts, name) == [(0, 0)]


def test_tables_of_another_version_are_named(tmp_path: Path, log: PostgresLog) -> None:
    """Tables that a later vmstore made are refused with both versions."""
    _execute(tmp_path, "UPDATE {format} SET version = 99")
    with refused("newer-format", StoreError, "99"):
        log_in(tmp_path)


def test_a_server_that_flushes_nothing_is_refused(tmp_path: Path) -> None:
    """A database with asynchronous commits cannot keep the promise of an acknowledgement, so none is made in it."""
    address = server().database()
    name = address.split("?")[0].rsplit("/", 1)[1]
    server().execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with refused("not-durable", StoreError, "synchronous_commit"):
        make(Connection(address, "db", 1.0), statements(""), NAMESPACE, bytes(16))


def test_positions_are_unique_in_the_database(tmp_path: Path, log: PostgresLog) -> None:
    """Rows that another program doubles are refused by the keys, whatever it knows of positions."""
    log.append(chain([CommitSpec()]), 0, 0)
    columns = "namespace, {0}, session, first, count, at, lag, cell, commitments, body, hash"
    again = columns.format("ordinal + 1")
    with pytest.raises(psycopg.errors.UniqueViolation):
        _execute(tmp_path, f"INSERT INTO {{commit}}({columns.format('ordinal')}) SELECT {again} FROM {{commit}}")


def test_one_of_two_handles_wins(log: PostgresLog, tmp_path: Path) -> None:
    """A handle that knows an old position is refused, though it read nothing since."""
    other = log_in(tmp_path)
    first = log.append(chain([CommitSpec()]), 0, 0)[0]
    assert other.append(chain([CommitSpec()], first.hash, 1), 1, 1)[0].ordinal == 2
    with pytest.raises(ConflictError, match="position 2, not 1"):
        log.append(chain([CommitSpec(at=9)], first.hash, 1), 1, 1)
    other.close()


def _write_session(log: PostgresLog, uid: bytes, count: int, over: threading.Event | None = None) -> list[Commit]:
    """Commits of one session, each appended when the one before was acknowledged."""
    written = list[Commit]()
    while len(written) < count and not (over is not None and over.is_set()):
        before = written[-1] if written else None
        previous, position = (before.hash, before.last) if before else (genesis(uid), 0)
        made = chain([CommitSpec(2, at=len(written), contents=(uid * 50,))], previous, position)
        written += log.append(made, before.session if before else 0, position)
    return written


def _head(folder: Path) -> str:
    match = re.search(r"FROM (\S+)vmstore_head", schema_of(folder).standing)
    assert match is not None
    return f"{match[1]}vmstore_head"


def _execute(folder: Path, sql: str) -> None:
    at = _head(folder).removesuffix("vmstore_head")
    tables = {name: f"{at}vmstore_{name}" for name in ("head", "commit", "format")}
    with psycopg.connect(database(), autocommit=True) as db:
        db.execute(sql.format(**tables))
