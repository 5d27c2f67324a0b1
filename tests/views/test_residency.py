"""Residency: intervals in classes of their length, and a fork that copies only when it must."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.views.pen import Pen
from vmstore.views.projectors.residency import ResidencyProjector, resident_at


def table(pen: Pen, sql: str) -> list[tuple[Any, ...]]:
    """Rows of the views."""
    rows: list[tuple[Any, ...]] = pen.lane.db.execute(sql).fetchall()
    return rows


def shown(pen: Pen, position: int) -> list[tuple[int, int, int]]:
    """Page, content and since of what is in context at a position, in order."""
    return [(row.page, row.content, row.since) for row in resident_at(pen.lane, position)]


def long_life() -> tuple[Pen, dict[int, list[tuple[int, int, int]]]]:
    """A session whose pages stay from one position to hundreds, and what was in context where."""
    pen, fields = Pen(), {}
    pages = [pen.page(f"page {n}") for n in range(8)]
    for call in range(1, 120):
        chosen = [page for n, page in enumerate(pages) if call % (2**n + 3)]
        position = pen.pack(*chosen, fixed=True)
        fields[position] = shown(pen, position)
    return pen, fields


def test_a_moment_is_found_whatever_the_length_of_a_stay() -> None:
    """What was in context at each of many calls is answered alike long after, from stays short and long."""
    pen, rows = long_life()
    assert {k for (k,) in table(pen, "SELECT DISTINCT k FROM spans")} >= {2, 3, 4, 5, 6}
    assert {position: shown(pen, position) for position in rows} == rows


def test_a_stay_lies_in_the_class_of_its_length() -> None:
    """Class k holds the stays of 2^(k-1) up to 2^k - 1 positions, so one short range of each class is read."""
    pen, _ = long_life()
    lengths = table(pen, "SELECT k, t - f FROM spans")
    assert all(2 ** (k - 1) <= length < 2**k for k, length in lengths)
    assert {k for k, _ in lengths} == {k for (k,) in table(pen, "SELECT k FROM classes")}


def test_a_stay_in_the_wrong_class_would_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail: a stay filed one class too low is not found in its middle."""
    right: Callable[..., Any] = ResidencyProjector._close

    def close(self: ResidencyProjector, *arguments: Any) -> int:
        since: int = right(self, *arguments)
        session, k, *rest = self.rows["spans"].pop()
        self.rows["spans"].append((session, k - 1, *rest))
        self.rows["classes"].append((session, k - 1))
        return since

    monkeypatch.setattr(ResidencyProjector, "_close", close)
    pen, rows = long_life()
    assert {position: shown(pen, position) for position in rows} != rows


def test_a_page_that_changes_stays_since_it_came() -> None:
    """Another version or another place ends an interval, and not the stay it belongs to."""
    pen = Pen()
    a, b = pen.page("a"), pen.page("b")
    first = pen.pack(a, b)
    version = pen.update(a, "a!")
    pen.pack(a, b, showing={a: version})
    moved = pen.pack(b, a, showing={a: version})
    assert shown(pen, moved) == [(b, b, first), (a, version, first)]
    pen.pack(b)
    back = pen.pack(b, a, showing={a: version})
    assert shown(pen, back) == [(b, b, first), (a, version, back)], "what left and came back began a new stay"


def test_a_fork_copies_nothing_before_its_first_call() -> None:
    """A fork costs no row of residency until its own first pack, and answers as its parent until then."""
    pen = Pen()
    a, b = pen.page("a"), pen.page("b")
    packed = pen.pack(a, b)
    pen.pack(a)
    rows = table(pen, "SELECT count(*) FROM residents UNION ALL SELECT count(*) FROM spans")
    parent = pen.fork(packed)
    assert table(pen, "SELECT count(*) FROM residents UNION ALL SELECT count(*) FROM spans") == rows
    assert shown(pen, packed + 1) == [(a, a, packed), (b, b, packed)]
    page = pen.page("c")
    assert table(pen, "SELECT count(*) FROM starts WHERE session != 1") == [(0,)], "a page alone is no call"
    own = pen.pack(a, page)
    assert shown(pen, own) == [(a, a, packed), (page, page, own)]
    assert shown(pen, packed) == [(a, a, packed), (b, b, packed)], "its past is its parent's"
    pen.session = parent
    assert shown(pen, own) == [(a, a, packed)], "the parent sees none of it"


def test_a_fork_of_a_fork_inherits_through_both() -> None:
    """A grandchild without a call of its own is answered from the session that packed last before it."""
    pen = Pen()
    a = pen.page("a")
    first = pen.pack(a)
    pen.fork(first)
    child_position = pen.lane.stretches[0].low + 1
    pen.fork(child_position)
    assert shown(pen, child_position) == [(a, a, first)]
    b = pen.page("b")
    last = pen.pack(b)
    assert shown(pen, last) == [(b, b, last)]
    assert shown(pen, last - 1) == [(a, a, first)]
