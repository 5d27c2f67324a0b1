"""A follower is told of commits by their positions, sooner where a writer notifies, and misses none where none does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore  # noqa: E402
from tests.engine.stories import answer, chat  # noqa: E402
from tests.postgres.server import server  # noqa: E402
from tests.refusals import refused  # noqa: E402
from vmstore.errors import InputError  # noqa: E402
from vmstore.log import port  # noqa: E402
from vmstore.log.postgres import notify  # noqa: E402
from vmstore.log.postgres.log import PostgresLog  # noqa: E402
from vmstore.testing.log_contract import run_together  # noqa: E402


@pytest.fixture
def base(tmp_path: Path) -> str:
    """The address of an empty database, with a cache of this test."""
    return f"{server().database()}&cache={tmp_path / 'cache'}"


def call(store: vmstore.Store, number: int, session: str = "s") -> None:
    """Records a call."""
    store.record(session, chat(f"text {number}"), answer("Yes."))


def log_of(store: vmstore.Store) -> PostgresLog:
    """The log of a store."""
    log = store.admin.log
    assert isinstance(log, PostgresLog)
    return log


def listening(store: vmstore.Store) -> None:
    """Has a store's log listen: the first time it only begins to."""
    log_of(store).doze(0.0)


@pytest.mark.parametrize("how", ["notify=1", "notify=0"])
def test_a_follower_misses_nothing(base: str, how: str) -> None:
    """Two writers and a follower that waits: it is given each mutation once, in order, woken or not."""
    with vmstore.open(f"{base}&{how}") as store, vmstore.open(f"{base}&{how}") as other:
        call(store, 0)
        cursors = list[str]()
        over = threading.Event()

        def follow() -> None:
            with vmstore.open(f"{base}&{how}", "r") as reader:
                while not over.is_set() or reader.admin.log.ordinal > int(cursors[-1].split(".")[0]):
                    cursors.extend(e.cursor for e in reader.tail(cursors[-1] if cursors else None, wait_s=0.5))

        following = threading.Thread(target=follow)
        following.start()
        run_together(
            [partial(lambda s, n: [call(s, i, n) for i in range(10)], s, n) for s, n in ((store, "a"), (other, "b"))]
        )
        over.set()
        following.join()
        assert cursors == [entry.cursor for entry in store.tail()]


def test_a_notification_wakes(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that would sleep for a minute is woken by a commit of another handle that notifies."""
    monkeypatch.setattr(notify, "LOOK_S", 60.0)
    with vmstore.open(f"{base}&notify=1") as store, vmstore.open(f"{base}&notify=1", "r") as reader:
        call(store, 0)
        listening(reader)
        end = reader.admin.log.ordinal
        started = time.monotonic()
        threading.Timer(0.2, call, (store, 1)).start()
        assert port.wait_beyond(reader.admin.log, end, 60.0) and time.monotonic() - started < 30
        time.sleep(0.1)


def test_who_is_told_nothing_looks(base: str) -> None:
    """A follower that listens is given what a writer commits that notifies nobody."""
    with vmstore.open(base) as store, vmstore.open(f"{base}&notify=1", "r") as reader:
        call(store, 0)
        listening(reader)
        end = reader.admin.log.ordinal
        threading.Timer(0.05, call, (store, 1)).start()
        assert port.wait_beyond(reader.admin.log, end, 60.0)
        time.sleep(0.1)


def test_a_server_that_takes_no_listener_is_looked_at(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no connection to listen by can be had, the position is looked at, and nobody hears of the failure."""

    def failing(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("too many connections")

    with vmstore.open(f"{base}&notify=1") as store, vmstore.open(f"{base}&notify=1", "r") as reader:
        call(store, 0)
        end = reader.admin.log.ordinal
        monkeypatch.setattr(notify.psycopg, "connect", failing)
        call(store, 1)
        assert port.wait_beyond(reader.admin.log, end, 60.0)


def test_no_append_notifies(base: str) -> None:
    """What is sent with a commit has no NOTIFY in it, and many commits in a moment are told by few."""
    sent = list[str]()
    with vmstore.open(f"{base}&notify=1") as store:
        log = log_of(store)
        assert not [
            sql for field in log._sql for sql in ([field] if isinstance(field, str) else field) if "notify" in sql
        ]
        notifier = log._notifier
        assert notifier is not None and notifier._connection is not log._writing
        with psycopg.connect(base.split("&cache", maxsplit=1)[0], autocommit=True) as db:
            db.execute(f'LISTEN "{notifier._channel}"')
            for _ in range(200):
                notifier.tell()
            sent += [message.payload for message in db.notifies(timeout=0.5)]
        assert 1 <= len(sent) < 100


def test_the_command_follows(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`tail --follow` prints what comes after its cursor, as it comes, an object a line."""
    from vmstore.shell.main import main

    with vmstore.open(base) as store:
        call(store, 0)
        cursor = list(store.tail())[-1].cursor
        threading.Timer(0.3, call, (store, 1)).start()
        assert main(["tail", base, "--after", cursor, "--follow", "--limit", "2", "--json"]) == 0
        time.sleep(0.1)
    assert capsys.readouterr().out.count('"cursor"') == 2


def test_what_is_no_switch_is_refused(base: str) -> None:
    """A value of notify= that is neither on nor off is refused."""
    with refused("not-an-address", InputError, "notify="):
        vmstore.open(f"{base}&notify=perhaps")


@pytest.fixture(autouse=True)
def threads_end() -> Iterator[None]:
    """No thread that notifies is left when its store is closed."""
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "vmstore-notify"]
