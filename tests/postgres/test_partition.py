"""A network that holds or drops what is sent, clocks that differ, and a full disk lose and double nothing."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore  # noqa: E402
from tests.engine.stories import answer, chat  # noqa: E402
from tests.postgres.cutting import HoldingSocket  # noqa: E402
from tests.postgres.logs import NAMESPACE, database, log_in, schema_of  # noqa: E402
from tests.postgres.server import server  # noqa: E402
from tests.refusals import refused  # noqa: E402
from vmstore.core.clock import SystemClock  # noqa: E402
from vmstore.errors import LockedError, OvertakenError, StoreError  # noqa: E402
from vmstore.log.commit import genesis  # noqa: E402
from vmstore.log.postgres.connection import Connection  # noqa: E402
from vmstore.log.postgres.log import PostgresLog  # noqa: E402
from vmstore.testing.chains import CommitSpec, chain  # noqa: E402

HOUR_US = 3_600_000_000


@pytest.mark.parametrize("ends", ["heals", "breaks"])
@pytest.mark.parametrize("way", ["to the server", "to the client"])
def test_a_partition_amid_an_append(tmp_path: Path, way: str, ends: str) -> None:
    """What is held amid an append, on its way there or back, is stored once and acknowledged once, healed or broken."""
    with tempfile.TemporaryDirectory() as folder:
        network = HoldingSocket(Path(folder), Path(server().uri.split("host=")[1]))
        address = database().split("?")[0] + f"?host={folder}"
        log_in(tmp_path).close()
        log = PostgresLog(address, "db", NAMESPACE, schema_of(tmp_path), me="me", wait_s=30)
        first = log.append(chain([CommitSpec(contents=(b"a",))]), 0, 0)[0]
        network.hold(b"INSERT INTO", answers=way == "to the client")
        threading.Timer(0.4, network.heal if ends == "heals" else network.cut).start()
        second = log.append(chain([CommitSpec(contents=(b"b",))], first.hash, 1), 1, 1)[0]
        assert network.held and log.tail(0, 9) == [first, second] and log.last_cell == 2
        log.close()
        network.close()


def test_a_network_that_is_silent_is_given_up() -> None:
    """A connection asks the system to give up a peer that acknowledges nothing, which it would else not do for long."""
    with psycopg.connect(database(), autocommit=True) as db:
        connection = Connection(database(), "db", 1.0)
        with connection.used() as mine:
            limits = mine.info.get_parameters(), db.info.get_parameters()
        connection.close()
    assert int(limits[0]["tcp_user_timeout"]) <= 60_000 and "tcp_user_timeout" not in limits[1]


class OffClock(SystemClock):
    """A clock that is off by some microseconds."""

    def __init__(self, off_us: int) -> None:
        self._off_us = off_us

    def now(self) -> int:
        """The time, as far as this clock knows."""
        return super().now() + self._off_us


def test_hosts_whose_clocks_differ(tmp_path: Path) -> None:
    """Hosts an hour apart write one session in turns: order is the log's, and neither ends the other's lease."""
    base = f"{server().database()}&cache={tmp_path}"
    with (
        vmstore.open(f"{base}/a", clock=OffClock(0)) as a,
        vmstore.open(f"{base}/b", clock=OffClock(HOUR_US), wait_s=0.3) as b,
    ):
        texts = list[str]()
        for number in range(6):
            texts += [f"text {number}", "Yes."]
            (a, b)[number % 2].record("s", chat(*texts[:-1]), answer("Yes."))
        for host in (a, b):
            assert [turn.turn for turn in host.session("s").turns()] == [1, 2, 3, 4, 5, 6] and host.verify().ok
        with a.admin.log.alone(), refused("locked", LockedError):
            b.record("s", chat(*texts, "while it is held"), answer("Yes."))
        a.trust.erase(session="s")
        assert a.verify().ok and b.verify().ok


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a database that lies on a disk of 24 MB of its own; skipped where none may be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="vmstore-disk-"))
    mounted = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "tmpfs", str(folder)]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False)
    if done.returncode or server().handle is None:
        folder.rmdir()
        pytest.skip(f"no small disk may be mounted here: {done.stderr.strip()}")
    name = f"disk_{os.getpid()}"
    place = folder / "place"
    place.mkdir(mode=0o777)
    try:
        import shutil

        shutil.chown(place, server().handle.system_user or "root")
        server().execute(f"CREATE TABLESPACE {name} LOCATION '{place}'")
        server().execute(f"CREATE DATABASE {name} TABLESPACE {name}")
        yield f"{server().address(name)}&cache={tmp_path / 'cache'}", folder
    finally:
        server().execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server().execute(f"DROP TABLESPACE IF EXISTS {name}")
        subprocess.run(["umount", str(folder)], check=False)
        folder.rmdir()


def test_a_disk_that_is_full(small_disk: tuple[str, Path]) -> None:
    """A commit that finds the server's disk full is refused by name and not there, and what follows room is."""
    address, folder = small_disk
    noise = os.urandom(1_000_000).hex()
    with vmstore.open(address) as store:
        with refused("full", StoreError, "disk"):
            for number in range(100):
                store.record("s", chat(f"{number} {noise}"), answer("Yes."))
        kept = store.session("s").info().calls
        assert 0 < kept < 100
        subprocess.run(["mount", "-o", "remount,size=200m", str(folder)], check=True)
        store.record("s", chat("there is room"), answer("Yes."))
        assert store.session("s").info().calls == kept + 1 and store.verify().ok


def test_a_row_that_is_held_and_never_given_back(tmp_path: Path) -> None:
    """A writer that stops amid a decision is ended by the server, and the next goes on with nothing of it."""
    log, other = log_in(tmp_path), log_in(tmp_path)
    with pytest.raises(OvertakenError), log.deciding():
        with log._writing.held() as db:
            db.execute("SET LOCAL idle_in_transaction_session_timeout = '200ms'")
        time.sleep(0.5)
        assert other.append(chain([CommitSpec()], genesis(b"other")), 0, 0)[0].ordinal == 1
        log.append(chain([CommitSpec()]), 0, 0)
    assert [commit.ordinal for commit in other.tail(0, 9)] == [1]
    log.close()
    other.close()
