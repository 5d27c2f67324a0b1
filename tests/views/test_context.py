"""A context as the views give it: held against its pack, and the same whatever is remembered of other questions."""

from __future__ import annotations

import pytest

from tests.refusals import refused
from tests.views.pen import Pen
from tests.views.test_alphabet import store_over
from vmstore.cells.cell import ERASED
from vmstore.core.erasure import Erase, ErasureReason
from vmstore.core.page import LinkKind
from vmstore.errors import CorruptError, ErasedError
from vmstore.log.memory import MemoryLog
from vmstore.store.session import Session
from vmstore.views.projectors import lineage
from vmstore.views.reads import context


def packed() -> tuple[Pen, Session]:
    """A session of two calls, the second of which shows another version of a page."""
    pen = Pen()
    a, b = pen.page("a"), pen.page("bb")
    pen.pack(a, b)
    pen.pack(a, b, showing={a: pen.update(a, "aaa")})
    return pen, store_over(pen.engine).session("s")


def test_a_context_of_other_pages_is_refused() -> None:
    """Where the views hold fewer pages or tokens than the pack counted, no context is given."""
    for change in ("DELETE FROM residents WHERE page = 3", "UPDATE pages SET tokens = tokens + 1"):
        pen, session = packed()
        pen.lane.db.execute(change)
        with refused("other-root", CorruptError):
            session.context()


def test_content_of_another_root_is_refused() -> None:
    """Where the pages do not give the root the pack stated, their order is told and no content of them."""
    pen, session = packed()
    pen.lane.db.execute("UPDATE changes SET commitment = zeroblob(32)")
    other_context = session.context()
    assert len(other_context.pages) == 2
    for ask in (other_context.contents, other_context.messages, other_context.text):
        with refused("other-root", CorruptError):
            ask()


def test_what_is_remembered_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane that may remember nothing answers as one that remembers all."""
    pen, session = packed()
    c = pen.page("c", links=[(LinkKind.DERIVES, 3)])
    calls = [session.context(call=call).shown for call in (1, 2, 1, 2)]
    walks = [lineage.walk(session._lane(), c, c, up=True) for _ in range(2)]
    assert calls[:2] == calls[2:] and walks[0] == walks[1] and walks[0]
    monkeypatch.setattr(context, "KNOWN_MAX", 0)
    monkeypatch.setattr(lineage, "WALKS_MAX", 0)
    assert [session.context(call=call).shown for call in (1, 2, 1, 2)] == calls
    assert [lineage.walk(session._lane(), c, c, up=True, depth=depth) for depth in (9, 8, 9)] == [*walks, walks[0]]


@pytest.mark.parametrize("ask", ["content", "open_content"])
def test_a_destroyed_cell_says_that_it_was_erased(ask: str) -> None:
    """A cell that was destroyed says where it was erased, and one of which no erasure is recorded is damage."""
    pen = Pen()
    page = pen.page("a secret")
    session = store_over(pen.engine).session("s")
    number = pen.lane.db.execute("SELECT cell FROM pages WHERE page = ?", (page,)).get
    assert isinstance(pen.engine.log, MemoryLog)
    pen.engine.log._cells[number - 1] = ERASED
    with refused("destroyed-unrecorded", CorruptError):
        getattr(session, ask)(page)
    batch = pen.engine.batch(1)
    at = batch.add(Erase(ErasureReason.ASKED, ((page, number - pen.engine.log.tail(0, 9)[-1].cell),)))
    batch.commit(0)
    for _ in range(2):  # before the views follow, and after
        with pytest.raises(ErasedError, match=f"was erased at position {at};"):
            getattr(session, ask)(page)
        pen.engine.follow()
