"""Verify names every commit and cell that was changed, and every view that does not follow."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import pytest

import vmstore
from tests.engine.stories import LOG, copied, decide, edit, problems, rows, tell
from tests.lanes import tries
from vmstore.cells.cell import Cell
from vmstore.core.mutation import Configure, Link, Message, Open, encode
from vmstore.engine.lookups import ViewLookups
from vmstore.engine.verify import verify as verify_module
from vmstore.log.commit import Commit, genesis, seal
from vmstore.log.memory import MemoryLog
from vmstore.log.sqlite import SqliteLog
from vmstore.views import dispatch
from vmstore.views.projection import PROJECTORS, Projection

NUMBERS = ("session", "first", "count", "at", "lag", "request", "cell")
BYTES = ("commitments", "body", "hash")


RATED_RUN = {
    "task_id": 1,
    "trial": 0,
    "reward": 1.0,
    "traj": [
        {"role": "user", "content": "Is there a seat?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "seats", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "seats", "content": "12A"},
        {"role": "assistant", "content": "12A is free."},
    ],
}
"""A run whose source says what its tool gave and how it ended."""


@pytest.fixture(scope="module", params=["raw", "packed"])
def store_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A store with sessions and forks, closed and sound; its cells as they were appended, or packed."""
    path = tmp_path_factory.mktemp("told") / "a.vms"
    tell(path)
    decide(path)
    with vmstore.open(path, embedder=vmstore.HashGrams()) as store:
        store.index.embed()
        (path.parent / "runs.json").write_text(json.dumps([RATED_RUN]))
        store.import_file(path.parent / "runs.json")
        session, page = next(iter(store.query("TOOLS session, page ACROSS SESSIONS LIMIT 1")))
        store.session(session).work.ran(page, duration_ms=2.5)
        memory = store.session(store.sessions()[0].session).memory
        memory.facts.state("user", "lives in", "Oslo", attribute="home")
        memory.tags.alias("k8s", "kubernetes")
    if request.param == "packed":
        log = SqliteLog(path / LOG)
        log.compact()
        log.close()
    assert problems(path) == []
    return path


def other_numbers(value: int | None) -> list[str]:
    """Other integers a column might be made to hold."""
    near = 0 if value is None else value
    return [str(n) for n in (near + 1, -(2**63), 2**63 - 1, 0) if n != value]


def other_bytes(value: bytes | None) -> list[str]:
    """A blob with one bit flipped at its ends and middle, cut, grown, emptied, and as text."""
    if not value:
        return ["x'00'", "'text'", "7"]
    changed = []
    for at in {0, len(value) // 2, len(value) - 1}:
        flipped = bytearray(value)
        flipped[at] ^= 1
        changed.append(bytes(flipped))
    changed += [value[:-1], value + b"\0", bytes(len(value))]
    other_types = ["'text'", "12", "CAST(x'8f01' AS TEXT)"]  # the last is text that is no UTF-8
    return [f"x'{c.hex()}'" for c in changed if c != value] + other_types


Change = tuple[range, str]
"""The numbers of which one must be named, and the statement that makes the change."""


def commit_flips(store: Path) -> Iterator[Change]:
    """Every change of one column of one commit."""
    columns = ("ordinal", *NUMBERS, *BYTES)
    for ordinal, *values in rows(store, "commits", ", ".join(columns)):
        for column, value in zip(columns[1:], values, strict=True):
            others = other_numbers(value) if column in NUMBERS else other_bytes(value)
            for other in others:
                where = range(ordinal, ordinal + 1)
                yield where, f"UPDATE commits SET {column} = {other} WHERE ordinal = {ordinal}"


def frame_flips(store: Path) -> Iterator[Change]:
    """Every change of one column of one frame, and of the salt and the bytes of each of its cells."""
    for first, count, form, sizes, salts, content in rows(store, "frames"):
        whole = range(first, first + count)
        for column, value in (("count", count), ("form", form)):
            for other in other_numbers(value):
                yield whole, f"UPDATE frames SET {column} = {other} WHERE first = {first}"
        for column, value in (("sizes", sizes), ("salts", salts), ("content", content)):
            for other in other_bytes(value):
                yield whole, f"UPDATE frames SET {column} = {other} WHERE first = {first}"
        lengths = struct.unpack(f">{count}I", sizes)
        ends = [sum(lengths[:at]) for at in range(count + 1)]
        for at, number in enumerate(whole):
            parts = [("salts", salts, at * 16, at * 16 + 16)]
            if form == 0:
                parts.append(("content", content, ends[at], ends[at + 1]))
            for column, value, start, end in parts:
                for other in other_bytes(value[start:end]):
                    if other.startswith("x'") and end > start:
                        changed = value[:start].hex() + other[2:-1] + value[end:].hex()
                        statement = f"UPDATE frames SET {column} = x'{changed}' WHERE first = {first}"
                        yield range(number, number + 1), statement


@pytest.mark.parametrize("flips", [commit_flips, frame_flips])
def test_every_flip_is_named(store_folder: Path, tmp_path: Path, flips: Callable[[Path], Iterator[Change]]) -> None:
    """Whatever column of whatever row is changed, a problem names that commit or a cell of that frame."""
    unnamed = []
    path = copied(store_folder, tmp_path / "b.vms")
    sound = (path / LOG).read_bytes()
    kind = "commit" if flips is commit_flips else "cell"
    # By day every seventh change: of each column and each kind of change some row's, as they take turns.
    for numbers, statement in islice(flips(store_folder), 0, None, 1 if tries(1) > 1 else 7):
        (path / LOG).write_bytes(sound)
        edit(path, statement)
        actual_problems = problems(path)
        named = {f"{kind} {number}" for number in numbers}
        if not any(p.where.split(" of ")[0] in named for p in actual_problems) and not _same(store_folder, path):
            unnamed.append((statement, actual_problems[:1]))
    assert unnamed == [], f"{len(unnamed)} changes were not named"


def _same(store: Path, other: Path) -> bool:
    """Whether two logs hold the same, read through the log, so that the change meant nothing."""
    read = []
    for path in (store, other):
        log = SqliteLog(path / LOG)
        read.append((log.tail(0, 99), log.cells(range(200))))
        log.close()
    return read[0] == read[1]


def test_a_deleted_commit_is_noticed(store_folder: Path, tmp_path: Path) -> None:
    """Without any one commit but the log's last, the missing one or the one after it is named."""
    ordinals = [row[0] for row in rows(store_folder, "commits")]
    for ordinal in ordinals[:-1]:
        path = copied(store_folder, tmp_path / "b.vms")
        edit(path, f"DELETE FROM commits WHERE ordinal = {ordinal}")
        assert any(p.where.startswith("commit") for p in problems(path)), f"commit {ordinal} was not missed"


def test_a_deleted_session_is_noticed(store_folder: Path, tmp_path: Path) -> None:
    """Without all commits and cells of a session that others follow, verify is not clean."""
    path = copied(store_folder, tmp_path / "b.vms")
    key = [row for row in rows(store_folder, "commits", "ordinal, session, count") if row[1] == row[0]][1][0]
    edit(path, f"DELETE FROM commits WHERE session = {key}")
    assert problems(path)


def test_deleted_cells_are_named(store_folder: Path, tmp_path: Path) -> None:
    """Each cell of a missing frame is named with its commit."""
    for first, count, *_ in rows(store_folder, "frames"):
        path = copied(store_folder, tmp_path / "b.vms")
        edit(path, f"DELETE FROM frames WHERE first = {first}")
        actual_problems = problems(path)
        assert [p.where.split(" of ")[0] for p in actual_problems] == [f"cell {first + at}" for at in range(count)], (
            actual_problems
        )
        assert {p.what for p in actual_problems} == {"it is missing"}


def test_swapped_commits_are_named(store_folder: Path, tmp_path: Path) -> None:
    """Two neighbours of one session that change places are both named."""
    sessions = dict(rows(store_folder, "commits", "ordinal, session"))
    for first in sorted(sessions)[:-1]:
        if sessions[first] != sessions[first + 1]:
            continue
        path = copied(store_folder, tmp_path / "b.vms")
        places = ((first, 1_000), (first + 1, first), (1_000, first + 1))
        edit(path, *(f"UPDATE commits SET ordinal = {new} WHERE ordinal = {old}" for old, new in places))
        assert {f"commit {first}", f"commit {first + 1}"} <= {p.where for p in problems(path)}


def test_a_cut_tail_is_not_noticed(tmp_path: Path) -> None:
    """A log whose last commit is gone with its cells is a sound shorter log: only a seal kept elsewhere could tell."""
    path = tmp_path / "b.vms"
    tell(path)
    last, cell = rows(path, "commits", "ordinal, cell")[-1]
    edit(path, f"DELETE FROM commits WHERE ordinal = {last}", f"DELETE FROM frames WHERE first >= {cell}")
    assert problems(path) == []


def test_a_cut_tail_is_noticed_by_its_cells(store_folder: Path, tmp_path: Path) -> None:
    """A last commit that is gone while its cells are still there is noticed."""
    path = copied(store_folder, tmp_path / "b.vms")
    last, cell = rows(store_folder, "commits", "ordinal, cell")[-1]
    assert cell is not None
    edit(path, f"DELETE FROM commits WHERE ordinal = {last}")
    assert problems(path)


def test_without_the_hash_check_flips_go_unnoticed(
    store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above can fail: with the hash taken as right, a changed time is not named."""
    path = copied(store_folder, tmp_path / "b.vms")
    edit(path, "UPDATE commits SET at = at + 1, lag = lag + 1 WHERE ordinal = 2")
    assert [p.where for p in problems(path)] == ["commit 2"]
    monkeypatch.setattr(verify_module, "follows", lambda previous, commit: True)
    monkeypatch.setattr(dispatch, "follows", lambda previous, commit: True)
    assert problems(path) == []


# ---- views


@pytest.mark.parametrize("view", [projector.name for projector in PROJECTORS])
def test_a_changed_view_is_named_and_mended(store_folder: Path, tmp_path: Path, view: str) -> None:
    """A row changed or lost in any table of a view is named with the remedy, and `rebuild` mends it."""
    projector = next(p for p in PROJECTORS if p.name == view)
    path = copied(store_folder, tmp_path / "b.vms")
    with vmstore.open(path) as store:
        store.sessions()
        for table in projector.schema:
            if store.admin.views.execute(f"SELECT count(*) FROM {table}").get == 0:
                continue
            columns = [row[1] for row in store.admin.views.execute(f"PRAGMA table_info({table})")]
            for change in (f"UPDATE {table} SET {columns[-1]} = 987654", f"DELETE FROM {table}"):
                store.admin.views.execute(change)
                verdict = store.verify()
                assert (verdict.ok, [p.where for p in verdict.problems]) == (False, [view])
                assert f"vmstore rebuild --view {view}" in verdict.problems[0].what
                store.admin.rebuild(view)
                assert store.verify().ok


def test_every_view_has_a_row_to_change(store_folder: Path) -> None:
    """The story fills every view, so the test above changes something of each."""
    with vmstore.open(store_folder) as store:
        store.sessions()
        filled = {
            p.name for p in PROJECTORS if any(store.admin.views.execute(f"SELECT 1 FROM {t}").get for t in p.schema)
        }
    assert filled == {p.name for p in PROJECTORS}


def test_views_left_behind_are_not_a_problem(store_folder: Path, tmp_path: Path) -> None:
    """Verify brings the views to the log's end before it compares them."""
    path = copied(store_folder, tmp_path / "b.vms")
    with vmstore.open(path) as behind:
        behind.sessions()
        with vmstore.open(path) as ahead:
            ahead.record("later", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
        assert behind.verify().ok


# ---- what was never written by this gate


def crafted(*bodies: bytes) -> list[verify_module.Finding]:
    """What verify says of a session whose commits are rightly sealed and hold these bodies."""
    log = MemoryLog()
    uid = b"u" * 16
    opening = seal(genesis(uid), 1, 1, 0, 0, encode([Open(uid, 0)]), (Cell(b"s" * 16, b"s"),), -1)
    last: Commit = log.append([opening], 0, 0)[0]
    for body in bodies:
        last = log.append([seal(last.hash, last.last + 1, 1, 0, 0, body, (), -1)], 1, last.last)[0]
    return verify_module.verify(log, Projection(log, apsw.Connection(":memory:")))[1]


BODIES = [
    *(b"", b"\x90", b"\xc0", b"\x80", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 5_000),  # no list of anything
    *(b"\x91\x80", b"\x91\x05", b"\x91\x90", b"\x91\x91\xc0", b"\x91\x91\x91\x01", b"\x91\xa3abc", b"\x91\xc1"),
    b"\x91\x92\x63\xa2\xff\xff",  # a later kind with text that is no UTF-8
    b"\x91\x92\x0a\xc0",  # a create that has nothing
    b"\x91\x95\x0b\x01\x02\x93\x01\x02\x03\x01\x01",  # an update whose cell has three numbers
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:12].hex())
def test_a_body_that_is_no_body_is_named(body: bytes) -> None:
    """A rightly sealed commit whose body cannot be read is a problem that names it, never a crash."""
    findings = crafted(body)
    assert any(p.where == "commit 2" for p in findings), findings


def test_a_mutation_against_the_rules_is_named() -> None:
    """A rightly sealed commit whose mutation breaks a rule is named with position and rule."""
    findings = crafted(encode([Configure(1, 2)]), encode([Link(5, 6, 0)]))
    assert [(p.kind, p.where) for p in findings] == [("rule", "commit 3")]
    assert "position 3" in findings[0].what and "page_exists" in findings[0].what


def test_a_log_that_cannot_be_folded_is_named() -> None:
    """A rightly sealed commit that names a cell no commit holds stops the fold, and the finding says so."""
    findings = crafted(encode([Message(0, 0, (1, 7))]))
    assert [p.kind for p in findings] == ["fold"], findings


def test_a_fork_that_is_asked_of_its_beginning_is_blind_to_what_it_wrote(tmp_path: Path) -> None:
    """What a fork wrote itself, a head that stands at its beginning has neither as content nor as message."""
    tell(tmp_path / "a.vms")
    with vmstore.open(tmp_path / "a.vms") as store:
        key = store.admin.views.execute("SELECT session FROM sessions WHERE name = 'plan-b'").get
        own = store.admin.views.execute(
            "SELECT max(page), max(message) FROM pages WHERE session = ?", (key,)
        ).fetchone()
        assert own is not None
        seeing, blind = ViewLookups(store.admin.views, key), ViewLookups(store.admin.views, key).inherited()
        assert seeing.content(own[0]) and seeing.message(own[1])
        assert not blind.content(own[0]) and not blind.message(own[1])
        inherited = blind.lane.stretches[1].high
        assert (
            blind.version(store.admin.views.execute("SELECT max(page) FROM pages WHERE page <= ?", (inherited,)).get)
            == 1
        )


def test_a_commit_that_counts_wrongly_is_named() -> None:
    """A rightly sealed commit whose count is not its number of mutations is named."""
    findings = crafted(encode([Configure(1, 2), Configure(1, 3)]))
    assert [(p.kind, p.where) for p in findings] == [("commit", "commit 2")]


def test_two_sessions_of_one_uid_are_named() -> None:
    """A session that opens with another's uid is a problem, for forks could not tell them apart."""
    log = MemoryLog()
    for _ in range(2):
        uid = b"u" * 16
        log.append([seal(genesis(uid), 1, 1, 0, 0, encode([Open(uid, 0)]), (Cell(b"s" * 16, b"s"),), -1)], 0, 0)
    assert verify_module.verify(log, Projection(log, apsw.Connection(":memory:")))[1]


def test_a_later_kind_is_no_fault() -> None:
    """A kind of a later version is kept, counted and not called a problem."""
    assert crafted(b"\x91\x93\x63\x01\xc4\x01x") == []


def test_a_writer_beside_verify_is_no_fault(store_folder: Path, tmp_path: Path) -> None:
    """What another handle commits while verify runs is not called a difference of the views."""
    path = copied(store_folder, tmp_path / "b.vms")
    with vmstore.open(path) as store, vmstore.open(path) as writer:

        def write(done: int, total: int) -> None:
            writer.record("beside", {"model": "m", "messages": [{"role": "user", "content": f"{done}"}]})

        assert store.verify(write).problems == []


def test_a_commit_that_comes_last_of_all_is_no_fault(
    store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written between the last commit that is read and the end of the check is nobody's loss."""
    with vmstore.open(copied(store_folder, tmp_path)) as store, vmstore.open(store.folder.parent) as other:
        ends = verify_module.ChainCheck.end

        def late(check: verify_module.ChainCheck, *number: int) -> None:
            other.record("beside", {"model": "m", "messages": [{"role": "user", "content": "late"}]})
            ends(check, *number)

        monkeypatch.setattr(verify_module.ChainCheck, "end", late)
        assert store.verify(views=False).ok


def test_a_writer_who_is_as_fast_is_not_followed_for_ever(
    store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify ends where somebody writes whenever it reads, and has checked all there was when it began."""
    with vmstore.open(copied(store_folder, tmp_path)) as store, vmstore.open(store.folder.parent) as other:
        began, tail, read = store.admin.log.ordinal, SqliteLog.tail, list[int]()

        def beside(log: SqliteLog, after: int, limit: int) -> list[Commit]:
            if log is store.admin.log:
                read.append(after)
                assert len(read) < 2 * began, "it goes on and on"
                other.record("beside", {"model": "m", "messages": [{"role": "user", "content": f"{len(read)}"}]})
            return tail(log, after, limit)

        monkeypatch.setattr(SqliteLog, "tail", beside)
        monkeypatch.setattr(verify_module, "READ", 2)
        verdict = store.verify(views=False)
    assert verdict.ok and began <= verdict.commits <= began + 2


def test_counts_are_what_was_checked(store_folder: Path) -> None:
    """Verify says how many commits, mutations and sessions it checked, and reports its progress to the end."""
    steps: list[tuple[int, int]] = []
    with vmstore.open(store_folder) as store:
        verdict = store.verify(lambda done, total: steps.append((done, total)))
        info = store.info()
    assert verdict.ok and verdict.problems == []
    assert (verdict.commits, verdict.mutations, verdict.sessions) == (info.commits, info.mutations, info.sessions)
    assert steps and steps[-1][0] == steps[-1][1]


def test_verify_writes_nothing(store_folder: Path, tmp_path: Path) -> None:
    """Asking never writes: the log file is the same to the byte after a verify."""
    path = copied(store_folder, tmp_path / "b.vms")
    before: Any = (path / LOG).read_bytes()
    with vmstore.open(path, "r") as store:
        assert store.verify().ok
    assert (path / LOG).read_bytes() == before


def test_a_long_session_is_checked_by_what_was_folded(store_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a session is longer than what is kept at hand its past is looked up in the fresh views, to the same end."""
    settled = list[int]()
    settle = verify_module.GateHead.settle

    def counted(head: Any, lookups: ViewLookups) -> None:
        settled.append(head.session)
        settle(head, lookups)

    monkeypatch.setattr(verify_module.GateHead, "settle", counted)
    monkeypatch.setattr(verify_module, "RECENT_MAX", 1)
    assert problems(store_folder) == [] and settled
