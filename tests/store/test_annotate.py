"""What is said of pages: from when on it holds, where it is seen, and what nobody can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.kept import told_in_memory
from tests.views.pen import Pen
from tests.views.test_alphabet import store_over
from vmstore.core.mutation import Annotate, Create
from vmstore.core.page import Modality, PageType, Role
from vmstore.errors import InputError, ReadOnlyError, UnknownError
from vmstore.store.session import Session


@pytest.fixture
def session() -> Session:
    """A session with a few calls."""
    return told_in_memory().session("s")


def test_what_is_said_holds_from_there_on(session: Session) -> None:
    """Importance, status, validity, tags and anchors hold from the annotation on, and not before it."""
    before, past = session.page("p4"), session.info().position
    annotate = session.annotate(
        "p4",
        importance=0.9,
        status="active",
        valid_from_us=1,
        valid_to_us=9,
        tags=["b", "a"],
        anchors={"user.name": "Ada"},
    )
    assert (annotate.importance, annotate.status, annotate.tags) == (0.9, "active", ["a", "b"])
    assert (annotate.valid_from, annotate.valid_to, annotate.anchors) == (1, 9, {"user.name": "Ada"})
    assert session.page("p4") == annotate
    assert session.page("p4", position=past) == before
    assert (before.importance, before.status, before.tags, before.anchors) == (0.5, None, [], {})


def test_what_is_not_said_stays(session: Session) -> None:
    """A later annotation changes what it says, a tag taken away goes, an anchor without a value goes."""
    session.annotate("p4", importance=0.9, tags=["a", "b"], anchors={"x": "1", "y": "2"})
    session.annotate("p4", status="completed", untags=["a", "never"], anchors={"x": None})
    page = session.page("p4")
    assert (page.importance, page.status, page.tags, page.anchors) == (0.9, "completed", ["b"], {"y": "2"})


def test_an_annotation_is_in_the_history(session: Session) -> None:
    """What was said of a page is an event of it, in words, at its position and time."""
    session.annotate("p4", importance=0.75, tags=["a"], at_us=77_000_000)
    session.annotate(
        "p4", untags=["a"], at_us=78_000_000, status="abandoned", valid_to_us=5, valid_from_us=4, anchors={"n": "v"}
    )
    rows = [(event.event, event.detail) for event in session.lineage.history("p4")][-2:]
    assert rows == [
        ("annotate", "+a, importance 0.75"),
        ("annotate", "-a, abandoned, valid from 4, valid to 5, n = v"),
    ]
    assert (session.pages(time=77_000_000)[0].tags, session.pages(time=78_000_000)[0].tags) == (["a"], [])


SAID: list[tuple[dict[str, Any], str]] = [
    ({}, "nothing is given"),
    ({"tags": []}, "nothing is given"),
    ({"importance": 1.01}, "no share"),
    ({"importance": -0.1}, "no share"),
    ({"importance": float("nan")}, "no share"),
    ({"importance": True}, "no share"),
    ({"importance": "high"}, "no share"),
    ({"status": "asleep"}, "there are active, planned"),
    ({"status": 1}, "there are active, planned"),
    ({"valid_from_us": 2, "valid_to_us": 1}, "ends before it begins"),
    ({"valid_to_us": 2**70}, "no whole number of microseconds"),
    ({"tags": "ab"}, "a list of tags"),
    ({"tags": [""]}, "cannot be a tag"),
    ({"tags": ["a\nb"]}, "cannot be a tag"),
    ({"untags": ["x" * 201]}, "cannot be a tag"),
    ({"tags": [5]}, "cannot be a tag"),
    ({"anchors": {"a": "\ud800"}}, "cannot be an anchor"),
    ({"at_us": "now", "importance": 1}, "no whole number of microseconds"),
]


@pytest.mark.parametrize(("fields", "why"), SAID)
def test_what_nobody_can_say_writes_nothing(session: Session, fields: dict[str, Any], why: str) -> None:
    """An annotation that no page could hold is refused with the reason, and the session stays as it was."""
    before = session.info()
    with pytest.raises((InputError, UnknownError), match=why):
        session.annotate("p4", **fields)
    assert session.info() == before


def test_only_a_page_that_is_there_is_annotated(session: Session, tmp_path: Path) -> None:
    """A page that is none is named with the nearest, and a handle for reading says that it is one."""
    with refused("no-page", UnknownError, "p4"):
        session.annotate("p3", importance=1)
    with vmstore.open(tmp_path / "agent.vms") as store:
        store.record("s", chat("one"), answer("1"))
    with vmstore.open(tmp_path / "agent.vms", "r") as store, pytest.raises(ReadOnlyError):
        store.session("s").annotate("p4", importance=1)


def test_a_fork_says_its_own(session: Session) -> None:
    """What a fork says of an inherited page its parent does not see, nor the fork what its parent says later."""
    session.annotate("p4", tags=["shared"], importance=0.6)
    fork = session.fork("f")
    fork.annotate("p4", tags=["fork"], untags=["shared"], importance=0.7)
    session.annotate("p4", tags=["parent"], importance=0.1)
    assert (fork.page("p4").tags, fork.page("p4").importance) == (["fork"], 0.7)
    assert (session.page("p4").tags, session.page("p4").importance) == (["parent", "shared"], 0.1)
    assert [page.page for page in fork.pages(tag="shared")] == []
    assert [page.page for page in session.pages(tag="shared")] == ["p4"]
    assert [page.page for page in fork.pages(importance_min=0.65)] == ["p4"]
    assert "p4" not in [page.page for page in session.pages(importance_min=0.2)]


def test_two_handles_tag_one_page(tmp_path: Path) -> None:
    """Two handles on one store that tag a page in turn lose nothing of each other's."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as file, vmstore.open(path) as other:
        file.record("s", chat("one"), answer("1"))
        for number, store in enumerate([file, other, other, file]):
            store.session("s").annotate("p4", tags=[f"t{number}"])
        assert file.session("s").page("p4").tags == ["t0", "t1", "t2", "t3"]
        file.record("s", chat("one", "1", "two"), answer("2"))
        assert other.session("s").page("p4").tags == ["t0", "t1", "t2", "t3"]
        assert file.verify().ok


def test_a_page_is_born_with_tags_and_an_actor() -> None:
    """Tags and the actor that a page's labels name are its own from its first position on."""
    with vmstore.memory_store() as store:
        session = store.session("s", create=True)
        with session.batch() as batch:
            labels = batch.cell(json.dumps({"tags": ["x", "y", "x"], "actor": "curator"}).encode())
            fields: dict[str, Any] = {"labels": labels, "importance": 900_000}
            page = batch.add(
                Create(PageType.CLAIM, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(b"so"), 2, 1, **fields)
            )
            batch.add(Create(PageType.CLAIM, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(b"or"), 2, 1))
        (born,) = session.pages(tag="x")
        assert (born.position, born.tags, born.actor, born.importance) == (page, ["x", "y"], "curator", 0.9)
        assert session.pages(actor="curator") == session.pages(importance_min=0.9) == [born]
        assert [page.actor for page in session.pages()] == ["curator", "assistant"]
        session.annotate(page, untags=["x"], importance=0.2)
        assert session.pages(tag="x") == session.pages(importance_min=0.6) == []
        assert [event.event for event in session.lineage.history(page)] == ["create", "annotate"]


@pytest.mark.parametrize("sealed", [b"\xff", b"{", b"5", b'"text"', b"[[]]", b"[" * 3000, b"null"])
def test_what_is_no_list_says_nothing(sealed: bytes) -> None:
    """What an earlier version let in for a list or an object says nothing, breaks no view, and verify names it."""
    pen = Pen()
    batch = pen.engine.batch(pen.session)
    cell = batch.cell(sealed)
    page = batch.add(Create(0, 0, 0, 0, 0, batch.cell(b"so"), 2, 1, labels=cell))
    batch.add(Annotate(page, tags=cell, untags=cell, anchors=cell))
    batch.commit(0)
    store = store_over(pen.engine)
    (actual_page,) = store.session("s").pages()
    assert (actual_page.tags, actual_page.anchors, actual_page.hint, actual_page.actor) == ([], {}, None, "system")
    assert [(problem.kind, "cells_are_formed" in problem.what) for problem in store.verify().problems] == [
        ("content", True)
    ] * 2
