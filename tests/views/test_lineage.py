"""Lineage: walks that end whatever the links say, in both directions, as of a moment."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.views.pen import Pen
from vmstore.core.page import LinkKind
from vmstore.views.projectors.lineage import walk

DERIVES, REFERENCES = LinkKind.DERIVES, LinkKind.REFERENCES


def met(pen: Pen, page: int, position: int | None = None, **fields: object) -> list[tuple[int, int, int]]:
    """Depth, source and target of the links a walk meets."""
    edges = walk(pen.lane, page, 1 << 40 if position is None else position, **fields)  # type: ignore[arg-type]
    return sorted((edge.depth, edge.source, edge.target) for edge in edges)


def test_a_circle_is_walked_once() -> None:
    """A walk over links that close a circle meets each link once and ends."""
    pen = Pen()
    a, b, c = (pen.page(text) for text in "abc")
    for source, target in ((a, b), (b, c), (c, a)):
        pen.link(source, DERIVES, target)
    assert met(pen, a, up=True) == [(1, a, b), (2, b, c), (3, c, a)]
    assert met(pen, a, up=False) == [(1, c, a), (2, b, c), (3, a, b)]


def test_a_link_stands_at_the_nearest_depth() -> None:
    """What is reached by a short and a long way is met at the end of the short one, its links once."""
    pen = Pen()
    a, b, c, d = (pen.page(text) for text in "abcd")
    for source, target in ((a, b), (b, c), (a, c), (c, d)):
        pen.link(source, DERIVES, target)
    assert met(pen, a, up=True) == [(1, a, b), (1, a, c), (2, b, c), (2, c, d)]


@pytest.mark.parametrize("depth", range(5))
def test_a_depth_cuts_the_walk(depth: int) -> None:
    """A walk of depth n meets the links of the whole walk up to depth n."""
    pen = Pen()
    pages = [pen.page(str(n)) for n in range(4)]
    for source, target in pairwise(pages):
        pen.link(source, DERIVES, target)
    whole = met(pen, pages[0], up=True)
    assert len(whole) == 3
    assert met(pen, pages[0], up=True, depth=depth) == [edge for edge in whole if edge[0] <= depth]


def test_kinds_are_kept_apart() -> None:
    """A walk along one kind does not go on behind a link of another."""
    pen = Pen()
    a, b, c = (pen.page(text) for text in "abc")
    pen.link(a, REFERENCES, b)
    pen.link(b, DERIVES, c)
    assert met(pen, a, up=True, kinds=[DERIVES]) == []
    assert met(pen, a, up=True, kinds=[REFERENCES]) == [(1, a, b)]
    assert met(pen, a, up=True, kinds=[REFERENCES, DERIVES]) == [(1, a, b), (2, b, c)]


def test_two_kinds_between_two_pages_are_two_links() -> None:
    """Pages related twice over are met by both links."""
    pen = Pen()
    a = pen.page("a")
    b = pen.page("b", links=[(DERIVES, a), (REFERENCES, a)])
    assert met(pen, b, up=True) == [(1, b, a), (1, b, a)]


def test_a_walk_ends_at_its_moment() -> None:
    """As of a position only links logged by then are walked, those pages were born with too."""
    pen = Pen()
    a = pen.page("a")
    b = pen.page("b", links=[(DERIVES, a)])
    c = pen.page("c")
    linked = pen.link(c, DERIVES, b)
    assert met(pen, a, linked, up=False) == [(1, b, a), (2, c, b)]
    assert met(pen, a, linked - 1, up=False) == [(1, b, a)]
    assert met(pen, a, b - 1, up=False) == []


def test_a_fork_walks_inherited_links_and_its_own() -> None:
    """A fork walks what was linked before it and what it links itself, and its parent none of that."""
    pen = Pen()
    a, b = pen.page("a"), pen.page("b")
    linked = pen.link(b, DERIVES, a)
    parent = pen.fork(linked)
    c = pen.page("c", links=[(DERIVES, b)])
    assert met(pen, c, up=True) == [(1, c, b), (2, b, a)]
    pen.session = parent
    assert met(pen, a, up=False) == [(1, b, a)]
