"""The contract of every log: subclass `LogContract`, say how a log is made, run it with pytest.

    class TestMyLog(LogContract):
        def make_log(self, folder: Path) -> Log:
            return MyLog(folder / "log")

A log that does not outlive its handle sets `durable = False`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vmstore.cells.cell import ERASED, Cell
from vmstore.errors import ConflictError, VmstoreError
from vmstore.log.commit import Commit, genesis
from vmstore.log.port import ChainHead, Log
from vmstore.testing.chains import APPENDS, CommitSpec, chain

# One test is run by several subclasses, each for its own log.
drawn = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
)


class TornAppend(list[Commit]):
    """Commits that break off after the first: a writer failing half way."""

    def __iter__(self) -> Iterator[Commit]:
        yield self[0]
        raise InterruptedError("torn")


class LogContract(ABC):
    """The laws of the log port, as tests."""

    durable: ClassVar[bool] = True

    @abstractmethod
    def make_log(self, folder: Path) -> Log:
        """The log of a folder: a new one, or the one made there before."""

    @pytest.fixture
    def log(self, tmp_path: Path) -> Iterator[Log]:
        """An empty log."""
        log = self.make_log(tmp_path)
        yield log
        log.close()

    # ---- what is stored

    def test_an_empty_log_holds_nothing(self, log: Log) -> None:
        """An empty log finds nothing and its last ordinal is 0."""
        assert (log.ordinal, log.tail(0, 10), log.cells([1]), log.head(1)) == (0, [], {}, None)

    def test_append_returns_what_it_stored(self, log: Log) -> None:
        """Stored commits carry ordinal, session and first cell, lack their cells, and are else unchanged."""
        given_ = chain([CommitSpec(2, contents=(b"a", b"b")), CommitSpec(1, contents=(b"c",))])
        stored = log.append(given_, 0, 0)
        assert [(c.ordinal, c.session, c.cell, c.cells) for c in stored] == [(1, 1, 1, ()), (2, 1, 3, ())]
        for before, after in zip(given_, stored, strict=True):
            assert msgspec.structs.replace(after, ordinal=0, session=0, cell=0, cells=before.cells) == before

    def test_a_session_is_known_by_the_ordinal_of_its_first_commit(self, log: Log) -> None:
        """The key of a new session is the ordinal its first commit got, whatever came before."""
        log.append(chain([CommitSpec(), CommitSpec()]), 0, 0)
        second = log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)
        later = log.append(chain([CommitSpec()], second[-1].hash, 1), 3, 1)
        assert [(c.ordinal, c.session) for c in second + later] == [(3, 3), (4, 3)]

    def test_a_commit_without_cells_names_no_cell(self, log: Log) -> None:
        """A commit that brought no cell has 0 for its first, as returned and as read."""
        stored = log.append(chain([CommitSpec(contents=(b"a",)), CommitSpec()]), 0, 0)
        assert [c.cell for c in stored] == [1, 0]
        assert log.tail(0, 9) == stored

    @drawn
    @given(appends=APPENDS)
    def test_what_is_read_is_what_was_stored(self, appends: list[tuple[int, list[CommitSpec]]]) -> None:
        """A tail from the start is every commit as it was returned, ordinals dense, heads at the last."""
        with TemporaryDirectory() as folder:
            log = self.make_log(Path(folder))
            stored = _fill(log, appends)
            assert [c.ordinal for c in stored] == list(range(1, len(stored) + 1))
            assert log.tail(0, len(stored) + 1) == stored
            assert log.ordinal == len(stored)
            for commit in stored:
                last = [c for c in stored if c.session == commit.session][-1]
                assert log.head(commit.session) == ChainHead(last.last, last.hash)
            log.close()

    @pytest.mark.parametrize("content", [b"", b"\0", bytes(range(256)), b"\xff\xfe", b"'; --", b"x" * 2_000_000])
    def test_bytes_are_kept_as_they_are(self, log: Log, content: bytes) -> None:
        """Bodies and cells of any bytes and length come back equal."""
        commits = chain([CommitSpec(body=content, contents=(content, b"next"))])
        log.append(commits, 0, 0)
        assert log.tail(0, 1)[0].body == content
        assert log.cells([1, 2]) == {1: commits[0].cells[0], 2: commits[0].cells[1]}

    @pytest.mark.parametrize("at", [-(2**63), -1, 0, 2**63 - 1])
    def test_any_moment_is_kept(self, log: Log, at: int) -> None:
        """Times and lags of the whole 64 bits come back equal, before 1970 included."""
        log.append(chain([CommitSpec(at=at, lag=at)]), 0, 0)
        assert [(c.at, c.lag) for c in log.tail(0, 1)] == [(at, at)]

    # ---- positions and heads

    def test_a_head_is_the_last_position_and_hash(self, log: Log) -> None:
        """A session stands at the last position of its last commit."""
        stored = log.append(chain([CommitSpec(3), CommitSpec(2)]), 0, 0)
        assert log.head(1) == ChainHead(5, stored[-1].hash)

    def test_sessions_stand_apart(self, log: Log) -> None:
        """Appending to one session moves no other."""
        first = log.append(chain([CommitSpec(2)]), 0, 0)[0]
        log.append(chain([CommitSpec(4)], genesis(b"two")), 0, 0)
        log.append(chain([CommitSpec(1)], first.hash, 2), 1, 2)
        assert [log.head(key).position for key in (1, 2) if log.head(key)] == [3, 4]  # type: ignore[union-attr]

    def test_a_fork_begins_where_its_parent_stood(self, log: Log) -> None:
        """A new session's first position may be any, and the next commit is expected after it."""
        parent = log.append(chain([CommitSpec(10)]), 0, 0)[0]
        child = log.append(chain([CommitSpec(2)], parent.hash, 10), 0, 0)[0]
        assert (child.first, log.head(child.session)) == (11, ChainHead(12, child.hash))
        log.append(chain([CommitSpec()], child.hash, 12), child.session, 12)
        assert [c.first for c in log.tail(0, 9)] == [1, 11, 13]

    def test_a_head_is_asked_beyond_an_ordinal(self, log: Log) -> None:
        """A session stands nowhere beyond its last commit, and where that ended beyond any ordinal before it."""
        first = log.append(chain([CommitSpec(2), CommitSpec(1)]), 0, 0)
        log.append(chain([CommitSpec(4)], genesis(b"two")), 0, 0)
        last = ChainHead(3, first[-1].hash)
        assert [log.head(1, after) for after in range(4)] == [last, last, None, None]
        assert log.head(3, 2) is not None and log.head(9, 1) is None

    def test_what_a_writer_knows_is_believed_up_to_an_ordinal(self, log: Log) -> None:
        """A writer that says as of when it knows a session conflicts with what came after, and with nothing else."""
        first = log.append(chain([CommitSpec(2)]), 0, 0)[0]
        log.append(chain([CommitSpec(4)], genesis(b"two")), 0, 0)
        second = log.append(chain([CommitSpec(1)], first.hash, 2), 1, 2, after=1)[0]
        log.append(chain([CommitSpec(1)], genesis(b"three")), 0, 0)
        with pytest.raises(ConflictError, match="position 3, not 2"):
            log.append(chain([CommitSpec(5)], first.hash, 2), 1, 2, after=2)
        assert log.append(chain([CommitSpec(5)], second.hash, 3), 1, 3, after=3)[0].ordinal == 5

    @pytest.mark.parametrize("knows", [0, 2])
    def test_a_commit_follows_the_head_of_the_log(self, log: Log, knows: int) -> None:
        """A commit that leaves positions out, comes twice or follows another hash is refused for every writer."""
        first = log.append(chain([CommitSpec(2)]), 0, 0)[0]
        log.append(chain([CommitSpec(4)], genesis(b"two")), 0, 0)
        again = chain([CommitSpec(1)], first.hash, 2)
        for wrong in (chain([CommitSpec(1)], first.hash, 3), chain([CommitSpec(1)], genesis(b"other"), 2)):
            with pytest.raises(VmstoreError, match="session 1"):
                log.append(wrong, 1, 2, after=knows)
        with pytest.raises(VmstoreError, match="session 1"):
            log.append([*again, *chain([CommitSpec(1)], genesis(b"other"), 3)], 1, 2, after=knows)
        assert log.append(again, 1, 2, after=knows, tip=1)[0].ordinal == 3
        with pytest.raises(ConflictError, match="position 3, not 2"):
            log.append(again, 1, 2, after=3)
        assert log.ordinal == 3

    @pytest.mark.parametrize("tip", [0, 1, 2, 3, 99])
    def test_a_head_is_found_again(self, log: Log, tip: int, tmp_path: Path) -> None:
        """Opened again a log holds commits against its heads, whatever the writer calls the session's last commit."""
        first = log.append(chain([CommitSpec(2)]), 0, 0)[0]
        last = log.append(chain([CommitSpec(1)], first.hash, 2), 1, 2)[0]
        log.append(chain([CommitSpec(4)], genesis(b"two")), 0, 0)
        if self.durable:
            log.close()
            log = self.make_log(tmp_path)
        with pytest.raises(VmstoreError, match="session 1"):
            log.append(chain([CommitSpec(1)], first.hash, 3), 1, 3, after=3, tip=tip)
        assert log.append(chain([CommitSpec(1)], last.hash, 3), 1, 3, after=3, tip=tip)[0].ordinal == 4
        log.close()

    # ---- several threads

    def test_threads_append_at_once(self, log: Log) -> None:
        """Threads that append to sessions of their own each get their answers, and the log is whole."""
        by_thread: dict[int, list[Commit]] = {}

        def write(number: int) -> None:
            uid, found = bytes([number]), list[Commit]()
            for _ in range(20):
                before = found[-1] if found else None
                previous, position = (before.hash, before.last) if before else (genesis(uid), 0)
                key, after = (before.session, before.ordinal) if before else (0, 0)
                commits = chain([CommitSpec(2, contents=(uid,))], previous, position)
                found += log.append(commits, key, position, after=after)
            by_thread[number] = found

        run_together([partial(write, number) for number in range(6)])
        stored = sorted((c for found in by_thread.values() for c in found), key=lambda c: c.ordinal)
        assert stored == log.tail(0, 999) and [c.ordinal for c in stored] == list(range(1, 121))
        for number, found in by_thread.items():
            assert all(log.cells([c.cell])[c.cell].content == bytes([number]) for c in found)

    def test_one_of_several_threads_wins(self, log: Log) -> None:
        """When threads append to one session at one position, one is stored and the others conflict."""
        first = log.append(chain([CommitSpec(1)]), 0, 0)[0]
        outcomes: list[str] = []

        def write(number: int) -> None:
            commits = chain([CommitSpec(1, at=number, contents=(b"x",))], first.hash, 1)
            try:
                outcomes.append(f"stored {log.append(commits, 1, 1, after=1)[0].ordinal}")
            except ConflictError:
                outcomes.append("conflict")

        run_together([partial(write, number) for number in range(6)])
        assert sorted(outcomes) == ["conflict"] * 5 + ["stored 2"]
        assert log.last_cell == 1

    def test_nobody_overtakes_a_writer_that_is_alone(self, log: Log) -> None:
        """While a writer is alone another thread's append waits, and the writer's own do not."""
        first = log.append(chain([CommitSpec(1)]), 0, 0)[0]
        order: list[str] = []

        def write() -> None:
            log.append(chain([CommitSpec(1)], genesis(b"other")), 0, 0)
            order.append("other")

        other = threading.Thread(target=write)
        with log.alone():
            other.start()
            other.join(0.1)
            log.append(chain([CommitSpec(1)], first.hash, 1), 1, 1)
            order.append("mine")
        other.join()
        assert order[0] == "mine" and [c.session for c in log.tail(0, 9)][:2] == [1, 1]
        assert log.ordinal == 3

    # ---- all or nothing

    @pytest.mark.parametrize("expected", [0, 1, 3, 99])
    def test_a_wrong_expectation_leaves_nothing(self, log: Log, expected: int) -> None:
        """A commit that expects another position is a conflict, leaves no trace, and can be made right."""
        first = log.append(chain([CommitSpec(2, contents=(b"a",))]), 0, 0)[0]
        later = chain([CommitSpec(contents=(b"b",)), CommitSpec(contents=(b"c",))], first.hash, 2)
        with pytest.raises(ConflictError, match="position 2"):
            log.append(later, 1, expected)
        assert (log.tail(0, 9), log.ordinal, log.cells([2])) == ([first], 1, {})
        assert log.head(1) == ChainHead(2, first.hash)
        assert [c.cell for c in log.append(later, 1, 2)] == [2, 3]

    def test_a_session_that_is_not_there_conflicts(self, log: Log) -> None:
        """Appending to a key the log does not hold is a conflict, not a new session."""
        log.append(chain([CommitSpec()]), 0, 0)
        with pytest.raises(ConflictError):
            log.append(chain([CommitSpec()], position=5), 7, 5)
        assert log.ordinal == 1

    def test_several_commits_are_stored_whole_or_not_at_all(self, log: Log) -> None:
        """A writer that fails after its first commit leaves none."""
        first = log.append(chain([CommitSpec(contents=(b"a",))]), 0, 0)[0]
        later = chain([CommitSpec(contents=(b"b",)), CommitSpec(contents=(b"c",))], first.hash, 1)
        with pytest.raises(InterruptedError):
            log.append(TornAppend(later), 1, 1)
        assert (log.tail(0, 9), log.cells([2]), log.head(1)) == ([first], {}, ChainHead(1, first.hash))
        assert [c.ordinal for c in log.append(later, 1, 1)] == [2, 3]

    # ---- reading

    @drawn
    @given(count=st.integers(0, 12), after=st.integers(0, 14), limit=st.integers(0, 14))
    def test_a_tail_is_a_window(self, count: int, after: int, limit: int) -> None:
        """A tail holds the commits above an ordinal, in order, and no more than its limit."""
        with TemporaryDirectory() as folder:
            log = self.make_log(Path(folder))
            stored = log.append(chain([CommitSpec(at=n) for n in range(count)]), 0, 0) if count else []
            assert log.tail(after, limit) == stored[after : after + limit]
            log.close()

    def test_cells_are_found_by_number(self, log: Log) -> None:
        """Each cell is asked by its number, in any order, twice or not there."""
        commits = chain([CommitSpec(contents=(b"a", b"b")), CommitSpec(contents=(b"c",))])
        log.append(commits, 0, 0)
        cells = [cell for commit in commits for cell in commit.cells]
        assert log.cells([3, 1, 3, 0, -1, 4, 2**62]) == {1: cells[0], 3: cells[2]}
        assert log.cells([]) == {}

    @pytest.mark.parametrize("content", [b"", b"short", bytes(range(256)) * 500])
    def test_a_cell_is_opened_as_a_file(self, log: Log, content: bytes) -> None:
        """A cell of any length is read in pieces from any place, and one that is not there is None."""
        made = chain([CommitSpec(contents=(content,))])
        log.append(made, 0, 0)
        opened = log.open_cell(1)
        assert opened is not None and opened.salt == made[0].cells[0].salt
        with opened.file as file:
            assert file.read() == content
            file.seek(len(content) // 2)
            assert file.read(3) == content[len(content) // 2 :][:3]
        assert log.open_cell(2) is None

    def test_keeping_house_changes_no_answer(self, log: Log) -> None:
        """Packed and swept a log holds the same commits and cells, and is written on."""
        commits = chain([CommitSpec(contents=(b"word " * n, b"x" * 70_000)) for n in range(20)])
        log.append(commits, 0, 0)
        tail, cells = log.tail(0, 99), log.cells(range(99))
        log.compact()
        assert log.sweep(2**60, dry=True) == log.sweep(2**60) == []
        assert (log.tail(0, 99), log.cells(range(99)), log.last_cell) == (tail, cells, 40)
        log.append(chain([CommitSpec(contents=(b"more",))], tail[-1].hash, 20), 1, 20)
        assert log.cells([41])[41].content == b"more"

    def test_a_tail_is_not_moved_by_what_comes_later(self, log: Log) -> None:
        """A list a tail gave does not change when more is appended."""
        first = log.append(chain([CommitSpec()]), 0, 0)
        seen = log.tail(0, 9)
        log.append(chain([CommitSpec()], first[-1].hash, 1), 1, 1)
        assert seen == first

    # ---- what is destroyed

    def test_destroyed_cells_are_gone_and_no_others(self, log: Log) -> None:
        """Bytes and salts of destroyed cells are gone, those beside them stay, and commits are as they were."""
        big = b"b" * 70_000
        stored = log.append(chain([CommitSpec(contents=(b"a", big, b"c")), CommitSpec(contents=(b"d",))]), 0, 0)
        before = log.cells(range(1, 5))
        done = log.destroy({1: 9, 2: 9, 4: 9})
        assert (done.cells, done.bytes) == (3, 70_002)
        assert log.cells(range(1, 5)) == {1: ERASED, 2: ERASED, 3: before[3], 4: ERASED}
        opened = log.open_cell(2)
        assert opened is not None
        assert (opened.salt, opened.file.read()) == (ERASED.salt, b"")
        assert log.tail(0, 9) == stored

    def test_destroying_again_changes_nothing(self, log: Log) -> None:
        """Destroyed contents stay destroyed after packing and more writing, and destroying them again is free."""
        log.append(chain([CommitSpec(contents=(b"a", b"b"))]), 0, 0)
        log.destroy({1: 9})
        assert log.destroy({1: 9}).cells == 0
        log.compact()
        log.append(chain([CommitSpec(contents=(b"c",))], genesis(b"two")), 0, 0)
        assert [log.cells([n])[n].content for n in (1, 2, 3)] == [b"", b"b", b"c"]

    # ---- the end

    def test_a_closed_log_refuses(self, log: Log) -> None:
        """After `close` nothing is written or read, and closing again is nothing."""
        log.append(chain([CommitSpec(contents=(b"a",))]), 0, 0)
        log.close()
        log.close()
        for ask in (lambda: log.tail(0, 1), lambda: log.cells([1]), lambda: log.ordinal):
            with pytest.raises(VmstoreError, match="closed"):
                ask()
        with pytest.raises(VmstoreError, match="closed"):
            log.append(chain([CommitSpec()], genesis(b"two")), 0, 0)

    @drawn
    @given(appends=APPENDS)
    def test_a_reopened_log_is_the_same(self, appends: list[tuple[int, list[CommitSpec]]]) -> None:
        """Commits, cells, heads and the next ordinal are what they were before the log was closed."""
        if not self.durable:
            pytest.skip("this log ends with its handle")
        with TemporaryDirectory() as folder:
            log = self.make_log(Path(folder))
            before = _everything(log, _fill(log, appends))
            log.close()
            log = self.make_log(Path(folder))
            assert _everything(log, log.tail(0, 99)) == before
            more = log.append(chain([CommitSpec()], genesis(b"later")), 0, 0)[0]
            assert more.ordinal == len(before[0]) + 1
            log.close()


def run_together(works: Sequence[Callable[[], None]]) -> None:
    """Does pieces of work in threads that start at the same moment."""
    ready = threading.Barrier(len(works))

    def start(work: Callable[[], None]) -> None:
        ready.wait()
        work()

    threads = [threading.Thread(target=start, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _fill(log: Log, appends: list[tuple[int, list[CommitSpec]]]) -> list[Commit]:
    """Appends in order; every commit as it was stored."""
    keys: dict[int, int] = {}
    stored = []
    for which, append in appends:
        key = keys.get(which, 0)
        head = log.head(key) if key else None
        previous, position = (head.hash, head.position) if head else (genesis(bytes([which])), 0)
        added = log.append(chain(append, previous, position), key, position)
        keys[which] = added[-1].session
        stored += added
    return stored


def _everything(log: Log, commits: list[Commit]) -> tuple[list[Commit], dict[int, Cell], list[ChainHead | None]]:
    """All that can be read of a log."""
    total = sum(commit.cell_count for commit in commits)
    return commits, log.cells(range(total + 2)), [log.head(key) for key in range(len(commits) + 2)]
