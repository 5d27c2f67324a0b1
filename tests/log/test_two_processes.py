"""Two processes write one log file at the same time."""

from __future__ import annotations

import os
from pathlib import Path

from tests.disasters.child import joined, start
from vmstore.errors import ConflictError
from vmstore.log.commit import genesis, relink
from vmstore.log.sqlite import SqliteLog
from vmstore.testing.log_contract import CommitSpec, chain

EACH = 25


def own(path: Path, uid: bytes) -> None:
    """Appends to a session of its own."""
    log = SqliteLog(path)
    key, previous, position = 0, genesis(uid), 0
    for number in range(EACH):
        commit = log.append(chain([CommitSpec(2, at=number, contents=(uid,))], previous, position), key, position)[0]
        key, previous, position = commit.session, commit.hash, commit.last
    log.close()


def shared(path: Path, other_number: int, ready: int, other: int) -> None:
    """Appends to session 1, reading it again whenever the other process was first; tells of conflicts.

    Both have read the same head before either appends for the first time, so that one is second.
    """
    log = SqliteLog(path)
    for number in range(EACH):
        for attempt in range(1_000):
            head = log.head(1)
            assert head is not None
            if not number and not attempt:
                os.write(ready, b"r")
                assert os.read(other, 1) == b"r"
            try:
                log.append(
                    chain([CommitSpec(1, at=number, contents=(b"x",))], head.hash, head.position), 1, head.position
                )
                break
            except ConflictError:
                os.write(other_number, b"c")
        else:
            raise AssertionError("a thousand times in vain")
    log.close()


def both(first: object, second: object) -> None:
    """Runs two pieces of work at the same time; both must end well."""
    pids = [start(first), start(second)]  # type: ignore[arg-type]
    assert [joined(pid) for pid in pids] == [0, 0]


def linked(path: Path) -> dict[int, int]:
    """Asserts that ordinals, cells and every session's chain are right; commits of each session."""
    log = SqliteLog(path)
    commits = log.tail(0, 999)
    assert [c.ordinal for c in commits] == list(range(1, len(commits) + 1))
    cells = log.cells(range(1, 999))
    assert sorted(cells) == list(range(1, len(cells) + 1))
    ends: dict[int, tuple[int, bytes]] = {}
    counts: dict[int, int] = {}
    for commit in commits:
        number, content = commit.cell, cells[commit.cell].content
        assert cells[number].commitment == commit.commitment(0)
        position, previous = ends.get(commit.session, (0, genesis(content)))
        assert (commit.first, commit.hash) == (position + 1, relink(previous, commit))
        ends[commit.session] = (commit.last, commit.hash)
        counts[commit.session] = counts.get(commit.session, 0) + 1
    log.close()
    return counts


def test_two_processes_write_sessions_of_their_own(tmp_path: Path) -> None:
    """Each process's commits are all there, in order and linked, whatever came between."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)
    both(lambda: own(path, b"one"), lambda: own(path, b"two"))
    assert sorted(linked(path).values()) == [EACH, EACH]


def test_two_processes_write_one_session(tmp_path: Path) -> None:
    """A process that was second conflicts, reads what was added, and goes on; nothing is lost or doubled."""
    path = tmp_path / "log.sqlite"
    SqliteLog.create(path)
    log = SqliteLog(path)
    log.append(chain([CommitSpec(contents=(b"one",))], genesis(b"one")), 0, 0)
    log.close()
    reader, writer = os.pipe()
    first, first_ready = os.pipe()
    second, second_ready = os.pipe()
    both(lambda: shared(path, writer, first_ready, second), lambda: shared(path, writer, second_ready, first))
    os.close(writer)
    assert linked(path) == {1: 1 + 2 * EACH}
    assert os.read(reader, 9_999), "one of them was second"
    for end in (reader, first, first_ready, second, second_ready):
        os.close(end)
