"""What a kernel was asked and decided, as a session answers it: at any moment, and in forks."""

from __future__ import annotations

import pytest

from tests.decided import Live, live
from tests.inner import inner_batch
from tests.refusals import refused
from vmstore.core.asof import Call
from vmstore.core.decision import Holder
from vmstore.core.mutation import Pin, Unpin
from vmstore.errors import CorruptError
from vmstore.store.store import memory_store


def test_history_tells_reasons() -> None:
    """The history of a page has each use and decision, with its reason and the contest it came from."""
    other_live = live()
    events = {event.position: event for event in other_live.session.lineage.history(other_live.a)}
    gone = events[other_live.evicted]
    assert (gone.event, gone.tokens) == ("evict", 60)
    assert gone.detail == (
        "pressure; score 40; lru@1, 140 of 100 tokens used, 40 needed for p13; "
        "2 candidates, cut off at 40, nearest p9 55"
    )
    assert (events[other_live.asked].event, events[other_live.asked].detail) == (
        "reference",
        "user_requested_recall; fault",
    )
    assert events[other_live.denied].event == "fault_denied" and str(events[other_live.denied].detail).startswith(
        "no_room; asked"
    )
    came = events[other_live.came]
    assert (came.event, came.level, came.version, came.tokens) == ("fault_in", 0, 1, 60)
    assert str(came.detail).startswith(f"resolve_reference; asked at position {other_live.again}; demand@1")
    assert (events[other_live.cited].event, events[other_live.cited].detail) == ("cite", f"by p{other_live.d}")
    shortened = {event.position: event for event in other_live.session.lineage.history(other_live.c)}[
        other_live.shortened
    ]
    assert (shortened.event, shortened.level) == ("evict", 2) and "shown abstract" in str(shortened.detail)
    rows = [
        (event.event, event.detail)
        for event in other_live.session.lineage.history(other_live.b)
        if "pin" in event.event
    ]
    assert rows == [("pin", "plan"), ("unpin", "plan")]


def test_a_page_is_pinned_while_somebody_holds_it() -> None:
    """A page is pinned from the first that holds it until the last lets go, in pages, page and context alike."""
    other_live = live()
    session = other_live.session

    def pinned(position: int) -> bool:
        pages = [page.page for page in session.pages(position=position) if page.pinned]
        assert pages == ([f"p{other_live.b}"] if session.page(other_live.b, position=position).pinned else [])
        return bool(pages)

    assert [
        pinned(at) for at in (other_live.pinned - 1, other_live.pinned, other_live.unpinned - 1, other_live.unpinned)
    ] == [
        *(False, True, True, False),
    ]
    session.fork("held", position=other_live.pinned)
    other_live.write(Pin(other_live.b, Holder.HAND), Pin(other_live.b, Holder.PLAN), Unpin(other_live.b, Holder.HAND))
    assert session.page(other_live.b).pinned, "the plan still holds it"
    other_live.call()
    assert [page.page for page in session.context().pages if page.pinned] == [f"p{other_live.b}"]
    assert session.context(call=2).pages[1].pinned is False


def test_forks_keep_their_own_pins() -> None:
    """A fork holds what its parent held, and neither sees who holds a page or lets it go later in the other."""
    other_live = live()
    child = other_live.session.fork("child", position=other_live.pinned)
    assert child.page(other_live.b).pinned and not other_live.session.page(other_live.b).pinned
    with inner_batch(child) as batch:
        batch.add(Unpin(other_live.b, Holder.PLAN))
        batch.add(Pin(other_live.a, Holder.HAND))
    assert [page.page for page in child.pages() if page.pinned] == [f"p{other_live.a}"]
    assert [page.page for page in child.pages(position=other_live.pinned) if page.pinned] == [f"p{other_live.b}"]
    assert [page.page for page in other_live.session.pages() if page.pinned] == []


def test_faults_are_what_was_asked() -> None:
    """Each fault says what was asked and what came of it: granted from a tier, or denied and why."""
    other_live = live()
    denied, granted = other_live.session.debug.faults()
    assert (denied.page, denied.granted, denied.denied_because) == (f"p{other_live.a}", False, "no_room")
    assert (denied.level_served, denied.from_tier, denied.tokens) == (None, None, None)
    assert (granted.position, granted.granted, granted.denied_because) == (other_live.came, True, None)
    assert (granted.reason, granted.level_asked, granted.level_served) == ("resolve_reference", 0, 0)
    assert (granted.from_tier, granted.tokens) == (2, 60)
    assert denied.out_since == granted.out_since == other_live.evicted
    assert other_live.session.debug.faults(call=3) == []


def test_a_kernel_counts_what_it_was_asked_for() -> None:
    """With a kernel turns count what was asked for and what it put out, not what packs brought and let go."""
    other_live = live()
    other_live.wished()
    assert [(turn.faults, turn.evictions) for turn in other_live.session.turns()] == [(0, 0), (0, 0), (1, 1), (1, 2)]


def test_before_a_kernel_packs_tell() -> None:
    """In a session without settings a page that comes back is a fault; from the first settings on it is none."""
    value = Live(memory_store(), "packs")
    other = Live(memory_store(), "late")
    del other.shown[other.b]
    other.call()
    other.shown[other.b] = (other.b, 0)
    back = other.call()
    assert back not in [fault.position for fault in other.session.debug.faults()], "a kernel is at work"
    assert len(value.session.debug.faults()) == len(other.session.debug.faults())


def test_a_call_says_what_it_could_hold() -> None:
    """The budget of a call is that of the settings in force, in estimated tokens, also in a fork; none without any."""
    other_live = live()
    other_live.settings(l0_tokens_max=80)
    other_live.settings(policy="lfu")
    other_live.call()
    assert [call.budget for call in other_live.session.calls()] == [100, 100, 100, 100, 80]
    child = other_live.session.fork("child", call=4)
    with inner_batch(child) as batch:
        batch.add(Pin(other_live.b))
    assert [call.budget for call in child.calls()] == [100] * 4
    plain = memory_store()
    plain.record("s", {"messages": [{"role": "user", "content": "hello"}]})
    assert [call.budget for call in plain.session("s").calls()] == [None]


def test_a_call_says_what_it_voided() -> None:
    """What a call invalidated is the request before it from the first changed place on."""
    other_live = live()
    other_live.wished()
    assert [call.invalidated for call in other_live.session.calls()] == [0, 0, 90, 80, 39, 4]
    diff = other_live.session.diff(Call(2), Call(3))
    assert diff.tokens_before == 90, "the first page went, so nothing of the request before is left"


def test_a_call_that_shows_what_no_page_has_is_named() -> None:
    """Views that lost a content say so, and what mends them, when it is asked what a call voided."""
    other_live = live()
    other_live.wished()
    other_live.session._ns.views.execute("DELETE FROM pages")
    with refused("content-missing", CorruptError):
        other_live.session.calls()


@pytest.mark.parametrize("read", ["history", "faults", "pages", "turns", "calls"])
def test_answers_are_the_same_after_a_rebuild(read: str) -> None:
    """What is answered of decisions is folded from the log: the views rebuilt answer it again."""
    other_live = live()
    other_live.wished()

    def ask() -> object:
        session = other_live.session
        asks = {"history": lambda: session.lineage.history(other_live.a), "faults": session.debug.faults}
        return (asks.get(read) or getattr(session, read))()

    before = ask()
    other_live.session._ns.projection.rebuild()
    assert ask() == before
