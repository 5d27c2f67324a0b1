"""The cut: columns hold what the log's mutations say, wherever it is cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.columns.shelves import cut_of, joined, log_of, rows, same, tables, views_of
from tests.engine.author import STORIES, Deed
from tests.refusals import refused
from tests.views.test_alphabet import STORY
from vmstore.cells.cell import Cell
from vmstore.columns.schema import CONTENTS, FIELDS, MUTATIONS, RESIDENCIES
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.core import mutation as m
from vmstore.core.page import Origin
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit, genesis, seal
from vmstore.log.memory import MemoryLog
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import moment_at


def mutation_rows(log: MemoryLog) -> list[dict[str, Any]]:
    """The rows of mutations, read one by one."""
    views, actual_rows = views_of(log), []
    for commit in log.tail(0, 10_000):
        lane = Branch(views.db, commit.session)
        for position, mutation in enumerate(m.decode(commit.body), commit.first):
            turn, call = moment_at(lane, position)
            row = {"ordinal": commit.ordinal, "session": commit.session, "position": position, "turn": turn}
            row |= {"call": call, "at": commit.at, "logged_at": commit.logged_at, "kind": mutation.NUMBER}
            fields = FIELDS[type(mutation)]
            row |= {column: getattr(mutation, name) for name, column in fields if getattr(mutation, name) is not None}
            match mutation:
                case m.Create():
                    row |= {"page": position, "version": 1, "level": 0}
                case m.Update():
                    row["level"] = 0
            actual_rows.append(row)
    return actual_rows


def moves(log: MemoryLog) -> list[tuple[Any, ...]]:
    """What packs brought in and let go, read one by one."""
    actual_rows: list[tuple[Any, ...]] = []
    for commit in log.tail(0, 10_000):
        for position, mutation in enumerate(m.decode(commit.body), commit.first):
            if isinstance(mutation, m.Pack):
                here = (commit.session, position)
                actual_rows += [(*here, page, None, None, None) for page in mutation.left]
                actual_rows += [(*here, *entered) for entered in mutation.entered]
    return actual_rows


@given(story=STORIES)
@example(story=STORY)
def test_every_integer_of_the_log_stands_in_a_column(story: list[Deed]) -> None:
    """Read mutation by mutation, the log says what the columns say, turn and call included."""
    log = log_of(story)
    actual_tables = tables(cut_of(log, views_of(log)))
    right = mutation_rows(log)
    assert rows(actual_tables[MUTATIONS]) == right
    contents = [row for row in right if "version" in row]
    names = ("ordinal", "session", "position", "turn", "call", "at", "logged_at", "page", "version", "level")
    assert rows(actual_tables[CONTENTS]) == [
        {name: row[name] for name in (*names, "tokens", "size")} for row in contents
    ]
    columns = ("session", "position", "page", "content", "level", "rank")
    assert [tuple(row.get(name) for name in columns) for row in rows(actual_tables[RESIDENCIES])] == moves(log)


@given(story=STORIES, ends=st.sets(st.integers(1, 40), max_size=4))
@example(story=STORY, ends={1, 2, 5})
def test_it_does_not_matter_where_it_is_cut(story: list[Deed], ends: set[int]) -> None:
    """Cut in pieces at any commits, each resumed from the views alone, the log gives the same rows."""
    log = log_of(story)
    views = views_of(log)
    bounds = [0, *sorted(end for end in ends if end < log.ordinal), log.ordinal]
    parts = [cut_of(log, views, after, upto) for after, upto in pairwise(bounds)]
    assert same(joined(parts), tables(cut_of(log, views)))


@given(story=STORIES)
@example(story=STORY)
def test_a_cut_goes_on_where_it_stopped(story: list[Deed]) -> None:
    """A cut that follows the log commit by commit holds what one that takes it at once does, chain included."""
    log = log_of(story)
    views = views_of(log)
    whole, slow = cut_of(log, views), SegmentWriter(log, views.db, 0)
    for ordinal in range(1, log.ordinal + 1):
        slow.follow(ordinal)
        assert slow.ordinal == ordinal
    assert same(tables(slow), tables(whole))
    assert slow.chain.digest() == whole.chain.digest() and slow.last == whole.last


def test_a_cut_ends_between_commits() -> None:
    """A cut that is full stops before the commit that does not fit, and takes one that never fits alone."""
    log = log_of(STORY)
    views = views_of(log)
    counts = [commit.count for commit in log.tail(0, 1_000)]
    whole, ends = len(mutation_rows(log)), []
    while not ends or ends[-1] < log.ordinal:
        after = ends[-1] if ends else 0
        cut = SegmentWriter(log, views.db, after)
        cut.follow(log.ordinal, mutations_max=5)
        assert cut.mutations == sum(counts[after : cut.ordinal])
        assert cut.mutations <= 5 or cut.ordinal == after + 1
        ends.append(cut.ordinal)
    assert sum(counts) == whole and len(ends) > 3


def test_an_off_by_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut that begins one commit late gives other rows, and a log that gives another commit than asked is refused."""
    log = log_of(STORY)
    views = views_of(log)
    parts = [cut_of(log, views, 0, 3), cut_of(log, views, 4)]
    assert not same(joined(parts), tables(cut_of(log, views)))
    right = MemoryLog.tail
    monkeypatch.setattr(MemoryLog, "tail", lambda log, after, limit: right(log, max(after - 1, 0), limit))
    with refused("commit-missing", CorruptError, "commit 2"):
        cut_of(log, views, 3)


def test_a_forgotten_turn_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The laws above bite: a cut that does not take down where turns begin gives other rows."""
    log = log_of(STORY)
    monkeypatch.setattr(SegmentWriter, "on_turn", lambda cut, fact, turn: None)
    assert rows(cut_of(log, views_of(log)).table(MUTATIONS)) != mutation_rows(log)


# ---- what cannot be cut


def appended(mutations: Sequence[Any]) -> MemoryLog:
    """A log of an opening and one commit past the gate."""
    log = MemoryLog()
    cells = (Cell(b"s" * 16, b"name"),)
    opening = [m.Open(b"u" * 16, 0)]
    begin: Commit = seal(genesis(b"u" * 16), 1, 1, 1, 0, m.encode(opening), cells, -1)
    (stored,) = log.append([begin], 0, 0)
    body = m.encode(mutations)
    log.append([seal(stored.hash, 2, len(mutations), 1, 0, body, (), -1)], stored.session, 1)
    return log


def test_a_broken_chain_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that does not follow the one before it stops the cut, by name."""
    log, right = appended([m.Turn(1)]), MemoryLog.tail
    other = seal(b"x" * 32, 2, 1, 1, 0, m.encode([m.Turn(1)]), (), -1).hash

    def tail(log: MemoryLog, after: int, limit: int) -> list[Commit]:
        """What a damaged log gives: no log takes such a commit in."""
        row = right(log, after, limit)
        return [msgspec.structs.replace(item, hash=other) if item.ordinal == 2 else item for item in row]

    cut_of(log, views_of(log))  # as it is, it is cut
    monkeypatch.setattr(MemoryLog, "tail", tail)
    with refused("commit-damaged", CorruptError, "commit 2"):
        cut_of(log, views_of_nothing(log))


def test_a_number_no_column_holds_is_named() -> None:
    """A mutation with a number over 64 bits, which no gate lets through, ends in the commit's name."""
    log = appended([m.Configure(1, 1 << 63)])
    with refused("commit-damaged", CorruptError, "commit 2"):
        cut_of(log, views_of_nothing(log))


def test_a_session_nobody_opened_is_not_cut() -> None:
    """A commit of a session that the views do not know ends in an error that names it."""
    log = appended([m.Turn(1)])
    with refused("commit-damaged", CorruptError, "commit 2"):
        cut = SegmentWriter(log, views_of_nothing(log).db, 1)
        cut.follow(2)


def test_kinds_of_a_later_version_are_rows_too() -> None:
    """A mutation of a kind this version does not know is a row with its number."""
    log = appended([m.Unknown(22, b"\x92\x16\x01"), m.Turn(1)])
    actual_rows = rows(cut_of(log, views_of(log)).table(MUTATIONS))
    assert [(row["position"], row["kind"], row["turn"]) for row in actual_rows] == [(1, 1, 0), (2, 22, 0), (3, 2, 1)]


def views_of_nothing(log: MemoryLog) -> Any:
    """Views that have not followed a log yet."""
    return views_of(MemoryLog())


def test_forks_open_with_their_parents_moment() -> None:
    """A fork's first row stands in the turn and call of its parent at the fork point, also where a cut begins there."""
    log = log_of(STORY)
    views = views_of(log)
    forks = [
        commit.ordinal
        for commit in log.tail(0, 1_000)
        if isinstance(first := m.decode(commit.body)[0], m.Open) and first.origin == Origin.FORK
    ]
    assert forks, "the story has a fork"
    for ordinal in forks:
        row = rows(cut_of(log, views, ordinal - 1, ordinal).table(MUTATIONS))[0]
        lane = Branch(views.db, row["session"])
        assert (row["turn"], row["call"]) == moment_at(lane, row["fork_position"])
