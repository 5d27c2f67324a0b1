"""Facts found in what was said: who speaks, what is no statement, what is said again and what is taken back."""

from __future__ import annotations

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.times import iso
from vmstore.errors import InputError
from vmstore.facts.find import Utterance, find
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

DAY = 86_400_000_000
AT = 20_000 * DAY  # 2024-10-04, a Friday


@pytest.fixture
def store() -> Store:
    """A store in memory."""
    return memory_store(clock=ManualClock(AT, 1_000), ids=SeededIds(1))


def stated(text: str, speaker: str = "user") -> list[tuple[str, str, str]]:
    """What an utterance states: subjects, verbs and objects."""
    return [(fact.subject, fact.verb, fact.what) for fact in find(Utterance(1, speaker, text, AT))]


def talk(store: Store, *other_text: str, name: str = "talk") -> Session:
    """A session in which a person says some things, and a model answers what is no fact."""
    messages: list[dict[str, str]] = []
    for text in other_text:
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": "I love that. I live in Paris."},
        ]
    store.record(name, {"messages": messages})
    return store.session(name)


FOUND = [
    ("I live in Ghent these days.", ("user", "live in", "Ghent")),
    ("my name is Alex Romero", ("user", "has name", "Alex Romero")),
    ("From now on call me Max.", ("user", "wants to be called", "Max")),
    ("Just call me Max please", ("user", "wants to be called", "Max")),
    ("I prefer tabs over spaces", ("user", "prefer", "tabs over spaces")),
    ("I run 5K every morning", ("user", "run", "5K every morning")),
    ("We adopted a beagle last spring!", ("user", "adopted", "a beagle last spring")),
    ("I'm planning to repaint the kitchen in May", ("user", "planning to", "repaint the kitchen in May")),
    ("My sister lives in Turin, actually", ("user's sister", "lives in", "Turin")),
    ("I'm allergic to walnuts.", ("user", "is allergic to", "walnuts")),
    ("never deploy on a friday", ("user", "wants", "never deploy on a friday")),
    ("our favourite café is the one on Mill Lane", ("user", "has favourite café", "the one on Mill Lane")),
    ("The invoice limit is now 4,000 euros", ("invoice limit", "is", "4,000 euros")),
    ("Great, I passed the sailing exam - want to see?", ("user", "passed", "the sailing exam")),
]
NOTHING = [
    "Do you think I like tea?",
    "If I moved to Norway I would sell the boat.",
    "My friend said I live too far out.",
    "> I live in Berlin",
    "```\nI live in Berlin\n```",
    'She wrote "I hate onions" on the wall.',
    "I'd love to hear more about you!",
    "I think you are right.",
    "Suppose I earn 3,000 a month.",
    "Wow, that's great!",
]


@pytest.mark.parametrize(("text", "fact"), FOUND, ids=[text[:24] for text, _ in FOUND])
def test_a_statement_is_found(text: str, fact: tuple[str, str, str]) -> None:
    """A sentence that states something of its speaker or a thing gives the fact it states."""
    assert fact in stated(text)


@pytest.mark.parametrize("text", NOTHING, ids=[text[:24] for text in NOTHING])
def test_what_states_nothing_gives_nothing(text: str) -> None:
    """Questions, suppositions, quotations, code, others' words and talk give no fact."""
    assert stated(text) == []


def test_a_time_is_seen_from_when_it_was_said() -> None:
    """A time that a sentence names is when an event was, or since when a state holds."""
    (went,) = find(Utterance(1, "user", "I visited the zoo yesterday", AT))
    assert (went.valid_from, went.precision.word, went.status.word) == (AT - DAY, "day", "completed")


def test_found_facts_stand_in_the_session_with_their_pages(store: Store) -> None:
    """What a person says is found and stated with its source and its method; what a model says is not."""
    session = talk(store, "I live in Ghent", "what's up?", "I love rowing")
    pages = session.memory.facts.extract()
    facts = session.memory.facts.all()
    assert [(fact.what, fact.sources, fact.method) for fact in facts] == [
        ("Ghent", ["p4"], "patterns-en@4"), ("rowing", ["p14"], "patterns-en@4"),
    ]  # fmt: skip
    assert pages == [fact.page for fact in facts] and store.verify().ok


def test_it_finds_nothing_twice(store: Store) -> None:
    """Asked again nothing is written; what was said since is found, and what was said again is a further source."""
    session = talk(store, "I live in Ghent", "I love rowing")
    session.memory.facts.extract()
    before = session.info().position
    assert session.memory.facts.extract() == [] and session.info().position == before
    again = talk(store, "I love rowing", "By the way I live in Ghent", "I love rowing", name="nine")
    again.memory.facts.extract()
    assert [(fact.what, len(fact.sources)) for fact in again.memory.facts.all()] == [("rowing", 2), ("Ghent", 1)]
    before = again.info().position
    assert again.memory.facts.extract() == [] and again.info().position == before


def test_what_is_said_again_later_is_a_further_source(store: Store) -> None:
    """A fact that is known gains the page that says it again, and stays one."""
    session = store.live_session("live", l0_tokens_max=8_000)
    session.user("I love rowing")
    session.memory.facts.extract()
    (page,) = session.user("Did I say it? I love rowing.")
    assert session.memory.facts.extract() == []
    (fact,) = session.memory.facts.all()
    assert page in fact.sources and len(fact.sources) == 2


def test_a_value_that_changes_ends_the_one_before(store: Store) -> None:
    """Where somebody lives is what was said last; a value that comes back is known again."""
    session = talk(store, "I live in Ghent", "I moved to Turin", "I moved to Ghent")
    session.memory.facts.extract()
    assert [fact.what for fact in session.memory.facts.all()] == ["Ghent"]
    assert [fact.what for fact in session.memory.facts.all(ever=True)] == ["Ghent", "Turin", "Ghent"]


@pytest.mark.parametrize("apart", [False, True])
def test_news_of_last_week_ends_what_was_said_an_hour_ago(store: Store, apart: bool) -> None:
    """A home said without since when held already before: a move of last week ends it, found at once or later."""
    session = talk(store, "I live in Ghent")
    if apart:
        session.memory.facts.extract()
    session = talk(store, "I live in Ghent", "I moved to Turin last week")
    session.memory.facts.extract()
    assert [fact.what for fact in session.memory.facts.all()] == ["Turin"]
    first, last = sorted(session.memory.facts.all(ever=True), key=lambda fact: fact.valid_from_us or 0)
    assert (first.what, first.superseded_by) == ("Ghent", last.page)
    assert first.valid_to_us == last.valid_from_us is not None


def test_news_of_last_week_ends_what_a_live_session_noticed(store: Store) -> None:
    """A live session that looks for facts knows the last home too, and its log stays sound."""
    live = store.live_session("on", l0_tokens_max=8_000, facts=True)
    for text in ("I live in Ghent", "I moved to Turin last week"):
        live.user(text)
    assert [fact.what for fact in live.memory.facts.all()] == ["Turin"] and live.debug.check().ok


def test_a_redriven_session_knows_the_same_facts(store: Store) -> None:
    """Facts are taken over with when they hold and what replaced them, and no call sends them by themselves."""
    session = talk(store, "I live in Ghent")
    session.memory.facts.extract()
    session = talk(store, "I live in Ghent", "I moved to Turin last week", "I love rowing")
    session.memory.facts.extract()
    redriven = store.admin.redrive("talk", "again", l0_tokens_max=4_000)
    columns = "subject, verb, what, type, status, valid_from, valid_to, method, confidence"
    facts = [store.query(f"FACTS {columns} ALL ORDER BY what", session=name).to_dicts() for name in ("talk", "again")]
    assert facts[0] == facts[1] and len(facts[0]) == 3
    stated = {fact.page for fact in redriven.memory.facts.all(ever=True)}
    assert len(stated) == 3 and stated.isdisjoint(redriven.pack().pages)
    assert redriven.debug.check().ok and store.verify().ok


def test_an_erased_fact_is_not_known_where_its_session_is_driven_again(store: Store) -> None:
    """A fact that went with its page is none in the copy either, and the others are there."""
    session = talk(store, "I live in Ghent", "I love rowing")
    session.memory.facts.extract()
    (home,) = [fact for fact in session.memory.facts.all() if fact.what == "Ghent"]
    vmstore.erase(store, page=home.sources[0], in_session="talk")
    redriven = store.admin.redrive("talk", "again", l0_tokens_max=4_000)
    assert [fact.what for fact in redriven.memory.facts.all(ever=True)] == ["rowing"]
    assert redriven.debug.check().ok and store.verify().ok


def test_history_told_later_ends_nothing(store: Store) -> None:
    """A move of years ago falls before the home that was stated, whatever was said last."""
    session = talk(store, "I live in Ghent", "I moved to Berlin in 2019")
    session.memory.facts.extract()
    assert [fact.what for fact in session.memory.facts.all()] == ["Ghent"]


@pytest.mark.parametrize(
    "text", ["I moved to Turin last week", "I live in Turin since 2020", "I moved to Turin in May"]
)
def test_a_value_is_kept_without_its_time(text: str) -> None:
    """Since when a value holds is no part of it, so that the same value said again is the same."""
    assert stated(text)[0][2] == "Turin"


def test_what_is_taken_back_is_replaced(store: Store) -> None:
    """A sentence that takes something back replaces the fact it names, and no other."""
    session = talk(store, "I play the violin", "I love rowing", "I gave up the violin")
    session.memory.facts.extract()
    known = {fact.verb: fact.superseded_by for fact in session.memory.facts.all(ever=True)}
    assert known["play"] is not None
    assert known["love"] is None


def test_a_live_session_notices_facts_where_it_is_told_to(store: Store) -> None:
    """With the setting each message of a person is searched as it comes; without, nothing is stated."""
    on = store.live_session("on", l0_tokens_max=8_000, facts=True)
    on.user("I'm allergic to walnuts.")
    off = store.live_session("off", l0_tokens_max=8_000)
    off.user("I'm allergic to walnuts.")
    assert [fact.what for fact in on.memory.facts.all()] == ["walnuts"] and off.memory.facts.all() == []
    assert on.debug.check().ok


def test_named_speakers_are_who_they_are() -> None:
    """I is who speaks, by the name that the session has."""
    assert stated("I love rowing", "Nadia") == [("Nadia", "love", "rowing")]


def test_a_language_without_patterns_is_refused(store: Store) -> None:
    """Of a language nobody wrote patterns for nothing is found, and the error says which there are."""
    with pytest.raises(InputError, match="en"):
        talk(store, "I love rowing").memory.facts.extract(language="xx")


def test_a_plan_says_when(store: Store) -> None:
    """A plan is known with the time that it names."""
    session = store.live_session("plan", l0_tokens_max=8_000, facts=True)
    session.user("I'm going to visit Oslo tomorrow")
    (fact,) = session.memory.facts.all()
    assert fact.status == "planned" and fact.valid_from_us is not None
    assert iso(fact.valid_from_us)[:10] == iso(AT + DAY)[:10]
