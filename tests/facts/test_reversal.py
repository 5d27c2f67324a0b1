"""Statements that end an earlier one: which they end, and what they leave alone."""

from __future__ import annotations

import pytest

from vmstore.core.clock import ManualClock, SeededIds
from vmstore.facts.addition import additions
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import Utterance, find
from vmstore.store.store import memory_store

DAY = 86_400_000_000
AT = 20_000 * DAY


def facts_of(texts: list[str], speaker: str = "user") -> list[StatedFact]:
    """What some utterances state, a day after another."""
    return [f for n, text in enumerate(texts) for f in find(Utterance(n + 1, speaker, text, AT + n * DAY))]


def over(*text: str) -> list[str]:
    """The objects of what was said before the last utterance that are no more after it."""
    added = [addition for addition in additions([], facts_of(list(text))) if addition.fact is not None]
    fields: dict[tuple[str, str | None], str] = {}
    gone = [addition.old.fact.what for addition in added if addition.old is not None]
    for fact in (addition.fact for addition in added if addition.fact is not None and addition.fact.one):
        address = fact.subject.casefold(), fact.attribute
        if address in fields and fields[address].casefold() != fact.what.casefold():
            gone.append(fields[address])
        fields[address] = fact.what
    return gone


ENDED = [
    ("I use Vim for everything", "I switched from Vim to Helix", "Vim for everything"),
    ("I play the cello", "I gave up the cello", "the cello"),
    ("I drink coffee", "I no longer drink coffee", "coffee"),
    ("I eat fish", "I don't eat fish", "fish"),
    ("Cache: memcached, agreed on Monday", "memcached fell through, ops said no", "memcached"),
    ("Our summer trip is settled: Corfu in June", "We are not going to Corfu after all", "Corfu in June"),
    ("I'm a nurse at Brandt Clinic", "I handed in my notice at Brandt Clinic yesterday", "a nurse at Brandt Clinic"),
    ("I take 20 mg of zinc every night", "the zinc is down to 10 now", "20 mg of zinc every night"),
    ("my commute is 40 minutes", "my commute is actually 55 minutes", "40 minutes"),
    ("My aunt lives in Bergen", "My aunt moved to Tromsø", "Bergen"),
    ("I live in Ghent", "We moved from Ghent to Turin last week", "Ghent"),
    ("I want to repaint the shed in May", "Please cancel the shed, no time", "repaint the shed in May"),
    ("never deploy on fridays", "Forget what I said about fridays", "never deploy on fridays"),
    ("I use Slack at work", "We dropped Slack for Zulip", "Slack at work"),
    ("I'm allergic to walnuts", "Turns out I'm fine with walnuts", "walnuts"),
    ("I have a motorbike", "I sold the motorbike", "a motorbike"),
    ("My deadline is June 3", "Update: my deadline isn't June 3 any more", "June 3"),
    ("I have a cat named Luna", "Luna passed away yesterday", "a cat named Luna"),
    ("I play guitar in a band called Ruckus", "Ruckus disbanded in May", "guitar in a band called Ruckus"),
    ("I drink three coffees a day", "I'm down to one coffee a day", "three coffees a day"),
    ("My car is a red Fiat", "My car is a blue Toyota now", "a red Fiat"),
    ("My appointment is at 3 pm", "My appointment got pushed to 4 pm", "3 pm"),
    ("I'm married to Sven", "Sven and I divorced last year", "Sven"),
    ("I prefer dark roast", "Actually, I prefer light roast these days", "dark roast"),
    ("I use spaces for indentation", "I use tabs instead of spaces", "spaces for indentation"),
    ("We booked Corfu for June", "We cancelled the Corfu trip", "Corfu for June"),
    ("I'm training for the Berlin marathon", "I pulled out of the marathon", "the Berlin marathon"),
    ("I take the tram to work", "I cycle to work these days", "the tram to work"),
    ("My landlord is Mr Petersen", "We have a new landlord since May", "Mr Petersen"),
    ("I work at Hanley's", "Last day at Hanley's was Friday", "Hanley's"),
    ("I drive a Golf", "The Golf finally died", "a Golf"),
    ("Ida is my editor", "Ida went over to the Hamburg office", "my editor"),
    ("Tuesday is my running night", "So it's the pool on Tuesdays now", "my running night"),
    ("The retry limit is 5", "Set the retry limit to 8 please", "5"),
    ("Our standup is at 9", "Standup moved to 10", "9"),
    (
        "We're taking the flat on Mill Street",
        "The flat on Mill Street won't take cats, so that one's off the table",
        "the flat on Mill Street",
    ),
]
KEPT = [
    ("My dog is a beagle", "My dog is old now"),
    ("I have a cat named Luna", "Otis passed away yesterday"),
    ("I love rowing", "I gave up the cello"),
    ("I have a new job", "I lost my keys"),
    ("I enjoy our camping trips", "Our trip got off to a bad start"),
    ("I live in Ghent", "I moved the sofa from the hall to the attic"),
    ("I bought a motorbike", "I love my motorbike now"),
    ("I visited Corfu", "We are not going to Corfu after all"),
    ("I don't eat fish", "I no longer eat fish"),
    ("My aunt lives in Bergen", "My uncle moved to Tromsø"),
    ("I take 20 mg of zinc every night", "I ran 10 km now"),
    ("I work at Brandt Clinic", "I left the party early"),
    ("I have a dog named Ben", "I left the party at Ben's house"),
    ("I swim on Tuesdays", "I ended up buying two kittens"),
    ("My brother has two boats", "My brother quit smoking"),
    ("I cycle to school", "I walked to work yesterday"),
    ("I have a motorbike", "I want to sell the piano"),
    ("I want to repaint the shed in May", "Never mind the rain"),
    ("my commute is 40 minutes", "my commute is 40 minutes, still, and I wait 5 more"),
]


@pytest.mark.parametrize(("first", "then", "gone"), ENDED, ids=[then[:24] for _, then, _ in ENDED])
def test_a_reversal_ends_what_it_names(first: str, then: str, gone: str) -> None:
    """A statement that changes or takes back an earlier one ends that, and nothing else that was said."""
    assert over("I love sailing", first, "My brother has two cats", then) == [gone]


@pytest.mark.parametrize(("first", "then"), KEPT, ids=[then[:24] for _, then in KEPT])
def test_what_only_sounds_like_a_reversal_ends_nothing(first: str, then: str) -> None:
    """A statement about something else, or of an event that stays true, ends nothing."""
    assert facts_of([first]) and over(first, then) == []


def test_one_person_does_not_take_back_what_another_said() -> None:
    """A fact of one speaker goes on where another says the opposite of themselves."""
    facts = [*facts_of(["I play the cello"], "Ann"), *facts_of(["I gave up the cello"], "Ben")]
    assert [addition.old for addition in additions([], facts)] == [None, None]


def test_an_order_to_drop_what_nobody_knows_is_no_fact() -> None:
    """Where nothing is known of what is to be forgotten, nothing is stated."""
    assert additions([], facts_of(["Forget what I said about fridays"])) == []


def test_what_is_over_stands_with_its_end_in_the_session() -> None:
    """The earlier fact leaves FACTS with a link to what ended it, and is known as of before."""
    store = memory_store(clock=ManualClock(AT, 1_000), ids=SeededIds(1))
    live = store.live_session("talk", l0_tokens_max=8_000, facts=True)
    live.user("I play the cello")
    before = live.info().position
    live.user("I gave up the cello")
    (now,) = live.memory.facts.all()
    assert (now.verb, now.what) == ("gave up", "the cello")
    assert [fact.what for fact in live.memory.facts.all(position=before)] == ["the cello"]
    (old, _) = live.memory.facts.all(ever=True)
    assert old.superseded_by == now.page and old.valid_to_us is not None
    assert live.debug.check().ok and store.verify().ok
