"""Moments: turns, calls, positions and times, and the nearest one where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.capture.words import answer, entries, model_text, request, user
from tests.refusals import refused
from tests.store.kept import told_in_memory
from vmstore.errors import InputError, UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store


@pytest.fixture
def store() -> Iterator[Store]:
    """The story: four calls in two turns."""
    with told_in_memory() as store:
        yield store


@pytest.fixture
def session(store: Store) -> Session:
    """Its session."""
    return store.session("s")


def test_a_turn_is_its_last_call(session: Session) -> None:
    """CONTEXT AT TURN n is the context of the last call made in it."""
    assert [session.context(turn=n).basis.call for n in (1, 2)] == [2, 4]


def test_a_call_is_the_moment_of_its_pack(session: Session) -> None:
    """At a call its answer is not yet there, and the pages it saw all are."""
    for call in session.calls():
        assert call.position == session.context(call=call.call).basis.position
        pages = {page.page for page in session.pages(call=call.call)}
        assert pages >= {page.page for page in session.context(call=call.call).pages}
    answered = session.pages(position=session.calls()[0].position + 3)
    assert len(answered) == len(session.pages(call=1)) + 1


def test_a_position_shows_the_last_pack_before_it(session: Session) -> None:
    """Any position has a context, that of the last call at or before it, and says which."""
    packs = {call.position: call.call for call in session.calls()}
    call = 0
    for position in range(1, session.info().position + 1):
        call = packs.get(position, call)
        if call:
            assert session.context(position=position).basis.call == call


def test_before_the_first_call_there_is_none(session: Session) -> None:
    """Positions before the first pack are an error that names where it is."""
    first = session.calls()[0].position
    for position in (0, 1, first - 1):
        with pytest.raises(UnknownError, match=f"first call is at position {first}|nearest is position 1"):
            session.context(position=position)


@pytest.mark.parametrize(
    ("moment", "nearest"),
    [
        ({"call": 0}, "call 1"),
        ({"call": 5}, "call 4"),
        ({"call": 10**18}, "call 4"),
        ({"turn": 3}, "turn 2"),
        ({"turn": 0}, "turn 1"),
        ({"position": 10_000}, "position {end}"),
    ],
)
def test_a_moment_that_is_not_names_the_nearest_that_is(session: Session, moment: dict[str, Any], nearest: str) -> None:
    """Unknown calls, turns and future positions are errors with the nearest valid one."""
    with pytest.raises(UnknownError, match=nearest.format(end=session.info().position) + r"\b"):
        session.context(**moment)


@pytest.mark.parametrize("ask", ["pages", "turns", "diff"])
def test_every_question_refuses_a_future_moment(session: Session, ask: str) -> None:
    """Not only contexts: whatever is asked of a future position is an error."""
    end = session.info().position
    with pytest.raises(UnknownError, match=f"nearest is position {end}"):
        if ask == "pages":
            session.pages(position=end + 1)
        elif ask == "turns":
            session.page("p4", position=end + 1)
        else:
            session.lineage.history("p4", position=end + 1)


def test_a_time_is_the_last_position_not_later(session: Session) -> None:
    """Times ask when things happened, as microseconds, text or datetime."""
    assert [session.context(time=n * 1_000_000).basis.call for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert session.context(time=2_999_999).basis.call == 2
    assert session.context(time="1970-01-01T00:00:03Z").basis.call == 3
    assert session.context(time=datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)).basis.call == 2
    assert session.context(time="2030-01-01").basis.call == 4
    with refused("before-the-first", UnknownError):
        session.context(time=999_999)


def test_logged_time_is_another_clock(session: Session) -> None:
    """What happened at second 3 was logged after second 5, and each clock answers for itself."""
    with refused("before-the-first", UnknownError):
        session.context(logged_time=4_999_999)
    assert session.context(logged_time=6_000_000).basis.call == 4


def test_a_clock_that_ran_backwards_counts_by_its_maximum() -> None:
    """TIME means the last position whose running maximum is not later, so the past stays the past."""
    with memory_store() as store:
        talk = []
        for n, at in enumerate((10, 50, 20, 60)):
            talk.append(user(f"q{n}"))
            store.record("s", request(talk), at_us=at)
        session = store.session("s")
        assert [session.context(time=at).basis.call for at in (10, 49, 50, 59, 60)] == [1, 1, 3, 3, 4]
        assert [call.at for call in session.calls()] == [10, 50, 20, 60]


@pytest.mark.parametrize("moment", [{"time": "yesterday"}, {"turn": -1}, {"position": "3"}, {"call": True}])
def test_what_is_no_moment_is_refused(session: Session, moment: dict[str, Any]) -> None:
    """A moment of no valid form is an input error, not an unknown one."""
    with pytest.raises(InputError):
        session.context(**moment)


def test_pages_as_of_a_moment_are_as_they_stood(session: Session) -> None:
    """Tier, level, version and number of pages are those of the moment asked of."""
    (artifact,) = [page for page in session.pages() if page.type == "artifact"]
    stood = [session.page(artifact.page, call=n) for n in (2, 3, 4)]
    assert [(page.tier, page.level) for page in stood] == [(0, 0), (0, 3), (2, 0)]
    assert stood[1].tokens < stood[0].tokens == stood[2].tokens
    assert [len(session.pages(call=n)) for n in (1, 2, 3, 4)] == sorted({2, 4, 6, 8})


def test_turns_and_calls_say_where_they_stand(store: Store, session: Session) -> None:
    """The lists of turns and calls agree with the log."""
    other_entries = entries(store, "s")
    assert [t.position for t in session.turns()] == [e.position for e in other_entries if e.kind == "turn"]
    assert [c.position for c in session.calls()] == [e.position for e in other_entries if e.kind == "pack"]
    assert [t.calls for t in session.turns()] == [2, 2]
    assert [(c.call, c.turn, c.tokens_reported, c.at) for c in session.calls()] == [
        (n, (n + 1) // 2, 100 * n, 1_000_000 * n) for n in (1, 2, 3, 4)
    ]
    assert [c.pages for c in session.calls()] == [len(session.context(call=n).pages) for n in (1, 2, 3, 4)]


def test_a_head_moves_on_and_a_moment_stays(store: Store, session: Session) -> None:
    """Asked without a moment, a session answers of its end; asked of a call, of that call."""
    before = session.context(call=4).text()
    store.record("s", request([user("Something new.")]), answer(model_text("ok")))
    assert session.context().basis.call == 5
    assert session.context(call=4).text() == before
