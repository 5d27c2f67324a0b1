"""The catalog: pages chosen by what they are and where, in an order, and those that came back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.kept import told_in_memory
from tests.views.pen import Pen
from tests.views.test_alphabet import store_over
from vmstore.core.page import LinkKind
from vmstore.errors import UnknownError
from vmstore.store.session import Session


@pytest.fixture
def session() -> Session:
    """A session with tool calls, a result that became a note, and a summary."""
    return told_in_memory().session("s")


CHOICES: list[tuple[str, Any]] = [
    ("type", "summary"),
    ("type", "artifact"),
    ("role", "user"),
    ("role", "TOOL"),
    ("modality", "structured"),
    ("tier", 0),
    ("tier", "L2"),
]


@pytest.mark.parametrize(("field", "value"), CHOICES)
def test_pages_are_chosen_by_what_they_are(session: Session, field: str, value: Any) -> None:
    """A choice gives those of all pages that say so themselves, in the order all pages have, and never none here."""
    word = {"L2": 2, "TOOL": "tool"}.get(value, value)
    for moment in ({}, {"call": 2}):
        chosen = session.pages(**{field: value}, **moment)
        assert chosen == [page for page in session.pages(**moment) if getattr(page, field) == word]
    assert chosen or (field == "type" and value == "summary") or (field, value) == ("tier", "L2")


def test_choices_add_up(session: Session) -> None:
    """Several choices give the pages that meet them all."""
    both = session.pages(role="user", tier=0)
    assert both == [page for page in session.pages(role="user") if page in session.pages(tier=0)]
    assert 0 < len(both) < len(session.pages(role="user"))


def test_importance_is_a_threshold(session: Session) -> None:
    """All pages are as important as they are, and none is more so."""
    assert session.pages(importance_min=0.5) == session.pages()
    assert session.pages(importance_min=0.51) == []


def test_pages_are_ordered(session: Session) -> None:
    """By tokens the longest comes first, by recency the one that entered the context last."""
    tokens = [page.tokens for page in session.pages(order_by="tokens")]
    assert tokens == sorted(tokens, reverse=True) and len(set(tokens)) > 1
    assert {page.page for page in session.pages(order_by="importance")} == {page.page for page in session.pages()}
    entered: dict[str, int] = {}
    for page in session.pages():
        for event in session.lineage.history(page.page):
            if event.event in ("enter", "shown"):
                entered[page.page] = event.position
    recent = [entered.get(page.page, 0) for page in session.pages(order_by="recency")]
    assert recent == sorted(recent, reverse=True) and recent[0] > recent[-1]


@pytest.mark.parametrize("choice", [{"type": "poem"}, {"role": "king"}, {"tier": 7}, {"tier": "L9"}, {"order_by": "x"}])
def test_a_word_that_is_none_is_named(session: Session, choice: dict[str, Any]) -> None:
    """A word outside its vocabulary is an error that lists the words there are, never an empty answer."""
    with pytest.raises(UnknownError, match=r"there are|the orders are"):
        session.pages(**choice)


def test_a_derived_page_is_dirty_until_it_follows() -> None:
    """A page made from one that changed since is dirty, until it changes too; only `derives` counts."""
    pen = Pen()
    a = pen.page("a")
    b = pen.page("b", links=[(LinkKind.DERIVES, a)])
    c = pen.page("c", links=[(LinkKind.REFERENCES, a)])
    session = store_over(pen.engine).session("s")

    def dirty(**moment: int) -> list[int]:
        return [page.position for page in session.pages(dirty=True, **moment)]

    assert dirty() == []
    changed = pen.update(a, "a!")
    assert (dirty(), dirty(position=changed - 1)) == ([b], [])
    assert [page.position for page in session.pages(dirty=False)] == [a, c]
    followed = pen.update(b, "b!")
    assert (dirty(), dirty(position=followed - 1)) == ([], [b])
    late = pen.page("late", links=[(LinkKind.DERIVES, a)])
    assert dirty() == []
    pen.update(a, "a!!")
    assert dirty() == [b, late]


def test_a_page_that_comes_back_is_a_fault() -> None:
    """A return says when, since when the page was out and what it weighs; first entries and stays are none."""
    pen = Pen()
    a, b = pen.page("a"), pen.page("four")
    pen.pack(a, b)
    gone = pen.pack(a)
    back = pen.pack(a, b)
    pen.pack(b, a, showing={b: pen.update(b, "more")})
    session = store_over(pen.engine).session("s")
    (fault,) = session.debug.faults()
    assert (fault.page, fault.position, fault.call) == (f"p{b}", back, 3)
    assert (fault.out_since, fault.tokens) == (gone, len("four"))
    assert session.debug.faults(call=2) == []


def test_a_fork_knows_what_left_before_it() -> None:
    """A page that left in the parent and comes back in the fork is the fork's fault, and not the parent's."""
    pen = Pen()
    a, b = pen.page("a"), pen.page("b")
    pen.pack(a, b)
    gone = pen.pack(b)
    store, parent = store_over(pen.engine), pen.session
    pen.fork(gone)
    back = pen.pack(a, b)
    name = next(info.session for info in store.sessions() if info.origin == "fork")
    assert [(fault.page, fault.position, fault.out_since) for fault in store.session(name).debug.faults()] == [
        (f"p{a}", back, gone)
    ]
    assert store.session("s").debug.faults() == []
    assert parent != pen.session
