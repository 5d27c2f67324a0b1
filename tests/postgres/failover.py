"""Writers and a follower over a pair of servers whose primary ends amid their work: what is lost, and what doubled."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import NamedTuple

from tests.postgres.logs import NAMESPACE
from tests.postgres.standby import pair
from vmstore.log.commit import Commit, genesis
from vmstore.log.postgres.connection import Connection
from vmstore.log.postgres.create import make
from vmstore.log.postgres.log import PostgresLog
from vmstore.log.postgres.tables import statements
from vmstore.testing.chains import CommitSpec, chain
from vmstore.testing.log_contract import run_together


class Outcome(NamedTuple):
    """Counts of a failover: acknowledged, of those lost, twice there or never acknowledged, missed by the follower."""

    acknowledged: int
    lost: int
    doubled: int
    missed: int


def fail_over(writers: int = 3, before_s: float = 0.5, after_s: float = 0.5, wait_s: float = 60.0) -> Outcome:
    """Kills the primary of a synchronous pair under writers and a follower, promotes the standby, and counts."""
    sql = statements("")
    with pair(synchronous=True) as servers:
        address = servers.database()
        connection = Connection(address, "pair", wait_s)
        make(connection, sql, NAMESPACE, bytes(16))
        connection.close()
        acknowledged, seen, over = list[Commit](), list[Commit](), threading.Event()
        done = threading.Event()

        def log_of(me: str, *, readonly: bool = False) -> PostgresLog:
            return PostgresLog(address, "pair", NAMESPACE, sql, me=me, readonly=readonly, wait_s=wait_s)

        def write(number: int) -> None:
            log, last = log_of(f"w{number}"), None
            while not over.is_set():
                previous, position = (last.hash, last.last) if last else (genesis(bytes([number])), 0)
                made = chain([CommitSpec(2, at=position, contents=(bytes([number]) * 50,))], previous, position)
                (last,) = log.append(made, last.session if last else 0, position)
                acknowledged.append(last)
            log.close()

        def follow() -> None:
            reader = log_of("reader", readonly=True)
            while not done.is_set() or reader.ordinal > len(seen):
                seen.extend(reader.tail(len(seen), 7))
            reader.close()

        def end() -> None:
            time.sleep(before_s)
            servers.fail_over()
            time.sleep(after_s)
            over.set()

        following = threading.Thread(target=follow)
        following.start()
        run_together([*(partial(write, number) for number in range(writers)), end])
        done.set()
        following.join()
        log = log_of("last", readonly=True)
        stored = log.tail(0, 1 << 20)
        log.close()
    return counted(acknowledged, stored, seen)


def counted(acknowledged: list[Commit], stored: list[Commit], seen: list[Commit]) -> Outcome:
    """What became of acknowledged commits, given what is stored and what a follower has seen."""
    there = [commit.hash for commit in stored]
    asked = {commit.hash for commit in acknowledged}
    lost = sum(commit not in stored for commit in acknowledged)
    doubled = len(there) - len(set(there)) + sum(each not in asked for each in there)
    return Outcome(len(acknowledged), lost, doubled, sum(commit not in seen for commit in stored))
