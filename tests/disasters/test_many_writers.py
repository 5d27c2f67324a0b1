"""Several processes write one store at once: nothing is lost, doubled or seen by half."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import apsw

import vmstore
from tests.capture.imports import write
from tests.disasters.child import joined, kill, start
from tests.engine.stories import answer, chat
from vmstore.errors import ConflictError
from vmstore.log.commit import genesis
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, chain

EACH = 12


def recorder(path: Path, number: int) -> None:
    """Records calls into a session of its own and, with a request id, into one that all share."""
    with vmstore.open(path) as store:
        for call in range(EACH):
            store.record(f"own-{number}", chat(f"{number}: question {call}"), answer("yes"))
            store.record("shared", chat(f"{number} asks {call}"), request_id=f"{number}/{call}")
            store.record("shared", chat(f"{number} asks {call}"), request_id=f"{number}/{call}")


def test_a_tail_has_no_gap_while_others_write(tmp_path: Path) -> None:
    """A tail read in steps while three processes write has every mutation once, in the order of the log."""
    path = tmp_path / "a.vms"
    vmstore.open(path).close()
    children = [start(lambda n=number: recorder(path, n)) for number in range(3)]  # type: ignore[misc]
    seen, cursor = [], None
    with vmstore.open(path) as store:
        while children:
            for entry in store.tail(cursor, limit=7):
                seen.append(entry)
                cursor = entry.cursor
            for child in sorted(children):
                waited = os.waitpid(child, os.WNOHANG)
                if waited[0]:
                    assert os.waitstatus_to_exitcode(waited[1]) == 0
                    children.remove(child)
        seen += store.tail(cursor)
        assert seen == list(store.tail())
        positions: dict[str, list[int]] = {}
        for entry in seen:
            positions.setdefault(entry.session, []).append(entry.position)
        assert all(position == list(range(1, len(position) + 1)) for position in positions.values())
        assert store.session("shared").info().calls == 3 * EACH
        assert [store.session(f"own-{n}").info().calls for n in range(3)] == [EACH] * 3
        assert store.verify().ok


def test_two_processes_import_one_file(tmp_path: Path) -> None:
    """Two processes that import the same file at the same time leave one copy of it."""
    path, file = tmp_path / "a.vms", write(tmp_path / "talk.jsonl", "chat lines", 20)
    vmstore.open(path).close()

    def take_in() -> None:
        with vmstore.open(path) as store:
            store.import_file(file)

    children = [start(take_in) for _ in range(2)]
    assert [joined(child) for child in children] == [0, 0]
    with vmstore.open(path) as store, vmstore.memory_store() as alone:
        alone.import_file(file)
        assert len(store.sessions()) == 1
        kept, right = store.sessions()[0], alone.sessions()[0]
        assert (kept.calls, kept.messages, kept.pages) == (right.calls, right.messages, right.pages)
        assert store.verify().ok


def test_a_reader_waits_for_nobody_and_sees_no_half(tmp_path: Path) -> None:
    """While a writer is in the middle of a transaction a reader answers at once, with what was committed before."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)
    log, reader = SqliteLog(path), SqliteLog(path, readonly=True)
    first = log.append(chain([CommitSpec(2, contents=(b"a",))]), 0, 0)
    log.close()
    writer = apsw.Connection(str(path))
    writer.execute("BEGIN IMMEDIATE; UPDATE commits SET body = x'00'; DELETE FROM frames").fetchall()
    with reader.file as db:
        db.setbusytimeout(0)
    assert reader.tail(0, 9) == first
    assert reader.cells([1])[1].content == b"a"
    assert reader.ordinal == 1
    writer.execute("ROLLBACK")
    writer.close()
    reader.close()


def test_appends_are_seen_whole(tmp_path: Path) -> None:
    """A reader that looks again and again while appends of three commits come sees a multiple of three each time."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)

    def write_on() -> None:
        log = SqliteLog(path)
        for number in range(150):
            try:
                log.append(chain([CommitSpec(contents=(b"x",)) for _ in range(3)], genesis(b"%d" % number)), 0, 0)
            except ConflictError:
                os._exit(3)
        log.close()

    reader, child, counts = SqliteLog(path, readonly=True), start(write_on), set()
    while not os.waitpid(child, os.WNOHANG)[0]:
        entries = reader.tail(0, 9_999)
        counts.add(len(entries))
        assert len(reader.cells(c.cell for c in entries)) == len(entries)
    assert len(reader.tail(0, 9_999)) == 450
    assert {count % 3 for count in counts} == {0} and len(counts) > 2
    reader.close()


def test_a_writer_that_lost_a_race_is_next(tmp_path: Path) -> None:
    """Beside a process that records into a session without a pause another's calls get in, one after few of its."""
    path, texts = tmp_path / "a.vms", [f"line {n}" for n in range(150)]

    def record_on() -> None:
        with vmstore.open(path) as store:
            while True:
                store.record("shared", chat(*texts, "mine"))

    busy = start(record_on)
    try:
        with vmstore.open(path) as store:
            while not store.sessions() or store.session("shared").info().calls < 5:
                assert not os.waitpid(busy, os.WNOHANG)[0], "who records without a pause ended"
                time.sleep(0.001)
            calls = [store.record("shared", chat(*texts, "theirs")).call for _ in range(12)]
    finally:
        kill(busy)
    between = [later - earlier - 1 for earlier, later in pairwise(calls)]
    assert max(between) < 30, "how many of the other's calls came between two of ours"
    with vmstore.open(path) as store:
        assert store.verify().ok
