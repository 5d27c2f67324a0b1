"""Compressors and finders that were handed in: whatever they do, the session has its forms and its claims."""

from __future__ import annotations

import time
from typing import Any

import pytest

import vmstore
from tests.live.small import FEW, PROSE, goes_on
from vmstore.core.mutation import Compress
from vmstore.core.page import Method
from vmstore.store.store import Store
from vmstore.testing.live_laws import mutations
from vmstore.vm.compressors.callback import Outcome


@pytest.fixture
def store() -> Store:
    """A store in memory."""
    return vmstore.memory_store()


# ---- callbacks


def hang(*_: Any) -> str:
    """Comes back long after anybody waits."""
    time.sleep(5)
    return "late"


def fall(*_: Any) -> str:
    """Raises."""
    raise ValueError("no model today")


def leave(*_: Any) -> str:
    """Wants the process to end."""
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("callback", "outcome"),
    [
        (fall, Outcome.RAISED),
        (leave, Outcome.RAISED),
        (hang, Outcome.HUNG),
        (lambda *_: 5, Outcome.WRONG_TYPE),
        (lambda *_: None, Outcome.WRONG_TYPE),
        (lambda *_: b"\xff\xfe\xff", Outcome.NO_TEXT),
        (lambda *_: "  ", Outcome.EMPTY),
        (lambda content, *_: content * 2, Outcome.TOO_LONG),
        (lambda *_: "Clocks are late.", Outcome.ANSWERED),
    ],
    ids=["raises", "exits", "hangs", "number", "none", "no text", "empty", "too long", "right"],
)
def test_a_compressor_that_fails_is_done_without(store: Store, callback: Any, outcome: Outcome) -> None:
    """Whatever a compressor callback does, a form is made and logged, its own where it was right."""
    session = store.live_session("s", compressor=callback, callback_timeout_s=0.2, **FEW)
    pages = []
    for _ in range(5):
        pages += session.user(PROSE[:3_000])
        session.pack()
        session.assistant("Yes.")
    assert set(session.runtime().shorter.outcomes) == {outcome}
    methods = {mutation.method for _, mutation in mutations(session) if isinstance(mutation, Compress)}
    assert methods and (Method.WRITTEN in methods) == (outcome is Outcome.ANSWERED)
    assert session.content(pages[0]) == PROSE[:3_000].encode()
    goes_on(store, session)


def test_a_compressor_that_hangs_is_asked_once_an_act(store: Store) -> None:
    """However many pages an act shortens, it waits for a callback that hangs once."""
    asked = []

    def slow(*_: Any) -> str:
        asked.append(1)
        time.sleep(5)
        return "late"

    session = store.live_session("s", compressor=slow, callback_timeout_s=0.1, **FEW)
    session.user([{"type": "text", "text": PROSE[: 3_000 + n]} for n in range(6)])
    assert len(asked) == 1
    goes_on(store, session)


@pytest.mark.parametrize(
    ("callback", "outcome"),
    [
        (fall, Outcome.RAISED),
        (hang, Outcome.HUNG),
        (lambda *_: 5, Outcome.WRONG_TYPE),
        (lambda *_: "no JSON", Outcome.WRONG_TYPE),
        (lambda *_: object(), Outcome.WRONG_TYPE),
        (lambda *_: [{"text": "x", "name": "n", "topic": "t", "sources": [999]}], Outcome.WRONG_TYPE),
        (lambda *_: [{"text": "x", "name": "a\nb", "topic": "t", "sources": [4]}], Outcome.WRONG_TYPE),
    ],
    ids=["raises", "hangs", "number", "no json", "object", "foreign source", "unprintable"],
)
def test_a_finder_that_fails_is_done_without(store: Store, callback: Any, outcome: Outcome) -> None:
    """Whatever a claims callback does, the patterns find what it did not."""
    session = store.live_session("s", finder=callback, callback_timeout_s=0.2, **FEW)
    session.user("Let's use Postgres for the orders.")
    assert set(session.runtime().finder.outcomes) == {outcome}
    assert [page.type for page in session.pages()] == ["transcript", "claim"]
    goes_on(store, session)


def test_a_finder_is_recorded(store: Store) -> None:
    """Claims a callback finds are written as pages with their sources; it is shown who said what on which page."""
    shown: list[Any] = []

    def finder(turn: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
        shown.append((turn, before))
        return [{"text": "Orders: Postgres.", "name": "orders_db", "topic": "orders", "sources": [turn[0]["page"]]}]

    session = store.live_session("s", finder=finder, **FEW)
    (page,) = session.user("Postgres it shall be.")
    assert shown == [([{"page": int(page[1:]), "role": "user", "text": "Postgres it shall be."}], [])]
    (claim,) = session.pages(type="claim")
    assert session.content(claim.page) == b"Orders: Postgres."
    assert [(ancestor.source, ancestor.target) for ancestor in session.lineage.ancestors(claim.page)] == [
        (claim.page, page)
    ]
    goes_on(store, session)
