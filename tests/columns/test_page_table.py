"""The page table from columns is the page table of the views, at any position of any sessions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from specs.model import Model
from tests.columns.shelves import log_of, rows_by_session, shelf_over, table_at
from tests.engine.author import STORIES, Deed
from tests.refusals import refused
from tests.views.test_alphabet import STORY
from vmstore.columns import page_table, segments
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.columns.segments import Segments
from vmstore.core.mutation import decode
from vmstore.errors import CorruptError
from vmstore.log.memory import MemoryLog
from vmstore.views.branch import Branch
from vmstore.views.reads.page_table import page_table as table_of_views

SHARES = st.lists(st.integers(0, 100), min_size=12, max_size=12)


@contextmanager
def shelves(log: MemoryLog, segment: int) -> Iterator[list[Segments]]:
    """One shelf in memory and one on disk, cut into small segments and closed in between."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "MUTATIONS_MAX", segment)
        patch.setattr(segments, "MUTATIONS_MIN", segment // 2)
        patch.setattr(segments, "TAIL_MAX", 3)
        memory, disk = shelf_over(log), shelf_over(log, Path(folder))
        disk.fill(log.ordinal * 2 // 3)
        again = Segments(Path(folder), log, disk.projection, readonly=False)
        yield [memory, disk, again]
        for case in (memory, disk, again):
            case.close()


def of_views(each_segments: Segments, asked: dict[int, int]) -> dict[int, list[tuple[int, ...]]]:
    """The page tables of sessions as the views tell them, where there is any page."""
    db = each_segments.projection.db
    tables = {key: list(table_of_views(Branch(db, key), position)) for key, position in asked.items()}
    return {key: table for key, table in tables.items() if table}


def of_model(log: MemoryLog, asked: dict[int, int]) -> dict[int, list[tuple[int, ...]]]:
    """The same as the model tells them."""
    model = Model()
    for commit in log.tail(0, 10_000):
        for position, mutation in enumerate(decode(commit.body), commit.first):
            model.apply(str(commit.session), position, mutation, commit.at)
    fields: dict[int, list[tuple[int, ...]]] = {}
    for key, position in asked.items():
        versions, rows = model.versions(str(key), position), []
        context = {row.page: row for row in model.context(str(key), position)}
        for page in model.pages(str(key), position):
            shown = context.get(page.page)
            wanted = [c for c in versions[page.page] if c.level == 0][-1].position if shown is None else shown.content
            (content,) = [c for c in versions[page.page] if c.position == wanted]
            rows.append((page.page, page.version, page.level, page.tier, content.told.tokens, content.position))
        if rows:
            fields[key] = rows
    return fields


def positions(log: MemoryLog, shares: list[int]) -> dict[int, int]:
    """Sessions, each at a position that is some share of what it has; some are left out."""
    views = shelf_over(log).projection.db
    rows: list[Any] = views.execute("SELECT session, position FROM sessions").fetchall()
    return {
        key: max(1, last * share // 100) for (key, last), share in zip(rows, shares * len(rows), strict=False) if share
    }


@given(story=STORIES, shares=SHARES, segment=st.integers(4, 40))
@example(story=STORY, shares=[100] * 12, segment=10)
def test_columns_tell_what_the_views_tell(story: list[Deed], shares: list[int], segment: int) -> None:
    """At any position of any sessions, forks included, columns, views and model hold one page table."""
    log = log_of(story)
    asked = positions(log, shares)
    with shelves(log, segment) as actual_segments:
        want = of_views(actual_segments[0], asked)
        assert want == of_model(log, asked)
        for actual_segment in actual_segments:
            assert rows_by_session(table_at(actual_segment, asked)) == want


def planted(log: MemoryLog) -> bool:
    """Whether columns and views of a log disagree anywhere."""
    ends = dict(shelf_over(log).projection.db.execute("SELECT session, position FROM sessions"))
    with shelves(log, 10) as actual_segments:
        for position in range(1, max(ends.values()) + 1):
            asked = {key: min(position, end) for key, end in ends.items()}
            if any(
                rows_by_session(table_at(actual_segment, asked)) != of_views(actual_segment, asked)
                for actual_segment in actual_segments
            ):
                return True
    return False


def test_a_planted_off_by_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fork inherits one short, a session one short, packs one row early: each is a difference."""
    log = log_of(STORY)
    assert not planted(log)
    by = page_table._Written.by
    with monkeypatch.context() as patch:
        patch.setattr(page_table._Written, "by", lambda rows, s: by(rows, s._replace(high=s.high - 1)))
        assert planted(log)
    asked = page_table._Lanes.__init__

    def one_less(lanes: Any, *arguments: Any) -> None:
        asked(lanes, *arguments)
        lanes.upto -= 1

    with monkeypatch.context() as patch:
        patch.setattr(page_table._Lanes, "__init__", one_less)
        assert planted(log)
    taken = SegmentWriter.on_pack

    def early(cut: SegmentWriter, fact: Any, m: Any) -> None:
        cut._shift -= 1
        taken(cut, fact, m)
        cut._shift += 1

    with monkeypatch.context() as patch:
        patch.setattr(SegmentWriter, "on_pack", early)
        assert planted(log)


def test_a_content_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where L0 shows a content that nobody made the answer is an error, not some other content."""
    log = log_of(STORY)
    each_segments = shelf_over(log)
    monkeypatch.setattr(page_table._Fold, "_contents", only_full(page_table._Fold._contents))
    ends = dict(each_segments.projection.db.execute("SELECT session, position FROM sessions"))
    with refused("content-missing", CorruptError):
        for position in range(1, max(ends.values()) + 1):
            table_at(each_segments, {key: min(position, end) for key, end in ends.items()})


def only_full(right: Any) -> Any:
    """A fold that forgets where contents are, in the place of one that does not."""

    def contents(fold: Any, rows: Any, base: Any) -> None:
        right(fold, rows, base)
        fold.row[:] = -1

    return contents


def test_nothing_asked_is_an_empty_table() -> None:
    """Of no session, of an empty log, and before the first page, the page table has no rows."""
    assert rows_by_session(table_at(shelf_over(log_of(STORY)), {})) == {}
    assert rows_by_session(table_at(shelf_over(MemoryLog()), {})) == {}
    assert rows_by_session(table_at(shelf_over(log_of(STORY)), {1: 1})) == {}
