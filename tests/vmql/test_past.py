"""What is asked of a past moment is of that moment: texts, words that were seen, pages that came back."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.inner import inner_batch
from vmstore.core.mutation import Create, Message, Pack, Reply, Turn, Update
from vmstore.core.page import Fidelity, Role, Slot, Status
from vmstore.core.text.tokenizer import words
from vmstore.store.session import Session
from vmstore.store.store import Store

WORDS = ("kyoto", "nara", "japan", "osaka", "where is")


def talk(*texts: str) -> dict[str, Any]:
    """A request of so many messages, the user's first."""
    return {"messages": [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]}


@pytest.fixture(scope="module")
def store() -> Store:
    """A trip whose first page changes twice and whose last is left out for a while, and a fork of it that goes on."""
    made = vmstore.memory_store()
    first, other_text, then = "Where is Kyoto?", "In Japan.", "And Osaka?"
    made.record(
        "trip", talk(first), {"choices": [{"message": {"role": "assistant", "content": other_text}}]}, at_us=1_000_000
    )
    made.record("trip", talk(first, other_text, then), None, at_us=2_000_000)
    trip = made.session("trip")
    trip.fork("trip-b", call=2)
    for version, text in ((2, b"Where is Nara?"), (3, b"Where is it?")):
        with trip.batch(at_us=3_000_000) as batch:
            batch.add(Update(4, version, batch.cell(text), len(text), 9 + version))
    made.record("trip", talk("Where is it?", other_text), None, at_us=4_000_000)
    made.record("trip", talk("Where is it?", other_text, then), None, at_us=5_000_000)
    made.record("trip-b", talk(first, other_text, then, "Near Nara."), None, at_us=6_000_000)
    return made


def both(store: Store) -> list[Session]:
    """The trip and its fork."""
    return [store.session("trip"), store.session("trip-b")]


def test_texts_are_of_their_moment(store: Store) -> None:
    """At every position PAGES gives the text each page had then, on a fork too."""
    fields = set()
    for session in both(store):
        for position in range(4, session.info().position + 1):
            result = store.query("PAGES page, text AS OF POSITION $at", session=session.name, at=position)
            pages = session.pages(position=position)
            wanted = [(page.page, session.content(page.page, position=position).decode()) for page in pages]
            assert list(result) == wanted, (session, position)
            fields.update(wanted)
    assert len([text for page, text in fields if page == "p4"]) == 3


def saw(session: Session, pattern: str, calls: list[int]) -> list[int]:
    """Those of some calls whose context has a page with all the words."""
    wanted = set(words(pattern))
    return [
        call
        for call in calls
        if any(wanted <= set(words(shown.decode())) for shown in session.context(call=call).contents().values())
    ]


@pytest.mark.parametrize("pattern", WORDS)
def test_words_were_seen_up_to_the_moment(store: Store, pattern: str) -> None:
    """CONTEXT MATCHES finds the calls up to a moment that saw the words, by a session, by its fork and by each."""
    for session in both(store):
        calls = [call.call for call in session.calls()]
        for last in calls:
            result = store.query(
                "CALLS call AS OF CALL $last WHERE CONTEXT MATCHES $words",
                session=session.name,
                last=last,
                words=pattern,
            )
            assert [call for (call,) in result] == saw(session, pattern, [call for call in calls if call <= last])
    result = store.query("CALLS session, call ACROSS SESSIONS WHERE CONTEXT MATCHES $words", words=pattern)
    trip, child = both(store)
    own = [("trip", call) for call in saw(trip, pattern, [1, 2, 3, 4])]
    assert list(result) == own + [("trip-b", call) for call in saw(child, pattern, [3])]


def shown(session: Session, entered: tuple[int, ...] = (), left: tuple[int, ...] = ()) -> None:
    """A call of a session, to whose context some pages came and from which others went."""
    with inner_batch(session, 1) as batch:
        came = tuple((page, page, 0, page) for page in entered)
        totals = batch.head.foresee(came, left)
        batch.add(Pack(batch.head.call + 1, Fidelity.RECORDED, *totals, came, left))


def test_returns_are_those_up_to_the_moment() -> None:
    """FAULTS as of every position are those Session.faults tells there, of a session and of its fork."""
    store = vmstore.memory_store()
    trip = store.session("trip", create=True)
    with trip.batch(at_us=1) as batch:
        pages = [batch.add(Create(0, 0, 1, 0, part, batch.cell(b"%d" % part), 1, 1)) for part in range(2)]
    first, other = pages
    shown(trip, entered=(first, other))
    shown(trip, left=(first,))
    child = trip.fork("trip-b")
    shown(trip, entered=(first,), left=(other,))
    shown(trip, entered=(other,))
    shown(child, left=(other,))
    shown(child, entered=(first, other))
    number = 0
    for session in (trip, child):
        for position in range(first, session.info().position + 1):
            result = store.query(
                "FAULTS page, position, out_since AS OF POSITION $at", session=session.name, at=position
            )
            wanted = [(back.page, back.position, back.out_since) for back in session.debug.faults(position=position)]
            assert list(result) == wanted, (session, position)
            number += len(wanted)
    assert number == 2 + 1 + 2


def test_sizes_are_of_what_the_prompt_shows(store: Store) -> None:
    """At every position a page in the prompt has the tokens of what is shown there, also where it was changed since."""
    sizes = set()
    for session in both(store):
        for position in range(6, session.info().position + 1):
            shown = {page.page: page.tokens for page in session.context(position=position).pages}
            asked = "PAGES page, tokens AS OF POSITION $at WHERE tier = L0"
            assert dict(store.query(asked, session=session.name, at=position)) == shown, (session, position)
            pages = session.pages(position=position, tier=0, order_by="tokens")
            assert {page.page: page.tokens for page in pages} == shown
            assert [page.tokens for page in pages] == sorted(shown.values(), reverse=True)
            sizes.add(shown["p4"])
    assert len(sizes) == 2


def test_messages_say_how_the_call_they_answer_had_ended() -> None:
    """A message says `open` until a reply is seen, then the last one's, also a fork's to a call of its past."""
    store = vmstore.memory_store()
    store.record("trip", talk("Where is Kyoto?"), None, at_us=1)
    child = store.session("trip").fork("trip-b", call=1)
    with inner_batch(child, 2) as batch:
        value = batch.add(Message(Role.ASSISTANT, Slot.MESSAGES, batch.cell(b"{}"), reply_to=1))
    ended = []
    for status in (Status.FAILED, Status.OK):
        with inner_batch(child, 3) as batch:
            ended.append(batch.add(Reply(1, status)))
    wanted = {value: "open", ended[0]: "failed", ended[1]: "ok"}
    for position, status in wanted.items():
        for scope in ("IN SESSION trip-b", "ACROSS SESSIONS"):
            until = "" if scope != "IN SESSION trip-b" else f"AS OF POSITION {position}"
            fields = dict(store.query(f"MESSAGES message, status {scope} {until}"))
            assert fields[f"m{value}"] == (status if until else "ok"), (position, scope)
        calls = store.query("CALLS status AS OF POSITION $at", session="trip-b", at=position)
        assert [row[0] for row in calls] == [status]
    grand = child.fork("trip-c", position=ended[0])
    assert dict(store.query("MESSAGES message, status", session=grand.name))[f"m{value}"] == "failed"
    assert {row[0] for row in store.query("MESSAGES status WHERE role = user ACROSS SESSIONS")} == {None}


def test_turns_that_are_chosen_stand_as_they_are_now() -> None:
    """UNTIL and BETWEEN choose turns; calls, faults, evictions and load of each are those that it has in the end."""
    store = vmstore.memory_store()
    trip = store.session("trip", create=True)
    with inner_batch(trip, 1) as batch:
        batch.add(Turn(1))
        pages = [batch.add(Create(0, 0, 1, 0, part, batch.cell(b"%d" % part), 1, 1)) for part in range(2)]
    first, other = pages
    shown(trip, entered=(first, other))
    shown(trip, left=(first,))
    middle = trip.info().position
    shown(trip, entered=(first,), left=(other,))
    shown(trip, left=(first,))
    columns = "turn, calls, tokens, faults, evictions, load"
    (whole,) = list(store.query(f"TURNS {columns}"))
    assert (whole[1], whole[3], whole[4]) == (4, 1, 3)
    for bounds in ("UNTIL POSITION $at", "BETWEEN POSITION 1 AND POSITION $at", "SINCE POSITION 1 UNTIL POSITION $at"):
        assert list(store.query(f"TURNS {columns} {bounds}", at=middle)) == [whole], bounds
    (then,) = list(store.query(f"TURNS {columns} AS OF POSITION $at", at=middle))
    assert (then[1], then[3], then[4]) == (2, 0, 1)
