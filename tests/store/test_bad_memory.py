"""Bad input to what a session remembers: late models, long turns, many tags, users in two sessions, dates at odds."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

import vmstore
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError

DAY = 86_400_000_000
NOW = 20_000 * DAY


def talk(rows: list[tuple[str, str]], **settings: Any) -> vmstore.Live:
    """A live session in which some turns were said and answered."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 1_000))
    live = store.live_session("talk", l0_tokens_max=8_000, **settings)
    for asked, answered in rows:
        live.user(asked)
        live.pack()
        live.assistant(answered)
    return live


def test_a_tagger_that_is_too_late_loses_no_turn() -> None:
    """Where a model does not answer in its time the words give the tags, and the log says that it was late."""
    live = talk([("Which primer does the garden fence need?", "Oil primer.")])
    late = threading.Event()
    try:
        assert live.memory.turns.tag(lambda prompt: late.wait(30), timeout_s=0.05) == 1
    finally:
        late.set()
    (page,) = live.pages(actor="facts-model")
    assert json.loads(live.content(page.page))["outcome"] == "hung"
    assert [tag.tag for tag in live.memory.tags.all()] == ["primer"]


def test_a_turn_longer_than_the_window_keeps_its_question() -> None:
    """A prompt smaller than its newest turn is within its budget and holds the message whole."""
    live = talk([("What do these say? " + "A long report of a carriage. " * 4_000, "It has wheels.")])
    prompt = live.memory.assemble("And how many wheels?", tokens=1_000)
    assert prompt.tokens <= 1_000
    assert "And how many wheels?" in json.dumps(prompt.messages[-1])


def test_hundreds_of_tags_leave_the_hint_its_size() -> None:
    """With 500 tags the topics of a prompt take at most 200 tokens, and each tag is still listed for who asks."""
    live = talk([(f"Matter {turn}.", "Noted.") for turn in range(50)])
    for number, message in enumerate(page for page in live.pages(role="user")):
        live.memory.tags.give(message.page, *(f"topic-{number}-{place}" for place in range(10)))
    prompt = live.memory.assemble("And matter 3?", tokens=600)
    assert prompt.tokens <= 600 and prompt.breakdown["hint"] <= 200
    assert len(live.memory.tags.all()) == 500


def test_topics_that_alternate_each_turn_make_segments_of_whole_turns() -> None:
    """Where each turn is about something else than the last, every turn is in one segment, in order, none twice."""
    rows = [
        ("What does the garden fence cost, and the fence primer?", "The garden fence costs 100 EUR."),
        ("When is the piano lesson, and who gives the lesson?", "The piano lesson is on Friday."),
    ] * 4
    live = talk(rows, tags="keyword", compaction=True)
    segments = live.memory.segments.all()
    turns = [turn for segment in segments for turn in range(segment.first_turn, segment.last_turn + 1)]
    assert turns == list(range(1, 9)) and len(segments) > 1


def test_two_sessions_of_a_user_at_once_leave_one_value() -> None:
    """Homes stated by threads in two sessions are all in the log, and one holds: that which was stated last."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 1_000))
    sessions = [store.live_session(name, l0_tokens_max=8_000, user="ada") for name in ("phone", "desk")]
    failed: list[BaseException] = []

    def state(live: vmstore.Live, towns: list[str]) -> None:
        try:
            for town in towns:
                live.memory.facts.state("user", "lives in", town, attribute="home")
        except BaseException as error:
            failed.append(error)

    towns = {"phone": [f"Oslo {n}" for n in range(8)], "desk": [f"Rome {n}" for n in range(8)]}
    threads = [threading.Thread(target=state, args=(live, towns[live.name])) for live in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    ever = sessions[0].memory.facts.all(whole_user=True, ever=True)
    assert {fact.what for fact in ever} == {*towns["phone"], *towns["desk"]}
    (home,) = sessions[0].memory.facts.all(whole_user=True)
    assert home.what in ("Oslo 7", "Rome 7") and store.verify().ok


def test_dates_that_contradict_each_other() -> None:
    """A fact that ends before it begins is refused; one stated late of an earlier time does not end the newer."""
    live = talk([("Hello.", "Hello.")])
    with pytest.raises(InputError):
        live.memory.facts.state("user", "lives in", "Oslo", valid_from_us=NOW, valid_to_us=NOW - DAY)
    live.memory.facts.state("user", "lives in", "Rome", attribute="home", valid_from_us=NOW - 10 * DAY)
    live.memory.facts.state("user", "lives in", "Oslo", attribute="home", valid_from_us=NOW - 90 * DAY)
    assert [fact.what for fact in live.memory.facts.all()] == ["Rome"]
    assert [fact.what for fact in live.memory.facts.all(valid_at_us=NOW - 50 * DAY)] == ["Oslo"]


def test_session_dates_that_go_backwards_still_end_segments() -> None:
    """A message under an earlier date than the last begins another segment, and the session goes on."""
    rows = [
        ("[Session from 2026/03/17] What does the garden fence cost?", "100 EUR."),
        ("[Session from 2025/01/02] What does the garden fence cost?", "90 EUR."),
    ]
    live = talk(rows, tags="keyword", compaction=True)
    assert [segment.first_turn for segment in live.memory.segments.all()] == [1, 2]
