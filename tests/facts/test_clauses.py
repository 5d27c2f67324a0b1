"""Clauses read into subject, verb and object: who is meant, what is denied, and what is not worth keeping."""

from __future__ import annotations

import pytest

from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError
from vmstore.facts.choice import chosen, items_of
from vmstore.facts.find import Utterance, find
from vmstore.facts.rule import LANGUAGES, rules_of
from vmstore.store.store import memory_store

AT = 20_000 * 86_400_000_000


def stated(text: str, language: str = "en", offered: str = "") -> list[tuple[str, str, str]]:
    """What an utterance states: subjects, verbs and objects."""
    return [(fact.subject, fact.verb, fact.what) for fact in find(Utterance(1, "user", text, AT, offered), language)]


READ = [
    ("My cousin Ida lives in Bergen and runs a ferry.",
     [("user's cousin Ida", "lives in", "Bergen"), ("user's cousin Ida", "runs", "a ferry")]),
    ("My uncle is a plumber, and he plays the tuba.",
     [("user's uncle", "is", "a plumber"), ("user's uncle", "plays", "the tuba")]),
    ("Both of my aunts were pilots.", [("user's aunts", "were", "pilots")]),
    ("My niece and I share a canoe.", [("user", "share", "a canoe")]),
    ("I've never been to Chile.", [("user", "never been to", "Chile")]),
    ("I can ski, but I never learned to skate backwards.",
     [("user", "can", "ski"), ("user", "never learned to", "skate backwards")]),
    ("I've been singing alto since I was nine.", [("user", "singing", "alto")]),
    ("We didn't renew the lease.", [("user", "didn't renew", "the lease")]),
    ("Every winter we skate on the canal.", [("user", "skate on", "the canal")]),
    ("I'm terrified of wasps.", [("user", "is terrified of", "wasps")]),
    ("The build server runs Alpine 3.20.", [("build server", "runs", "Alpine 3.20")]),
    ("White wine gives me hives.", [("White wine", "gives", "me hives")]),
    ("I was raised Lutheran.", [("user", "was raised", "Lutheran")]),
    ("Gonna try kimchi next week.", [("user", "will try", "kimchi next week")]),
    ("Haven't tried kvass yet.", [("user", "never tried", "kvass")]),
    ("I carved this spoon to thank my teacher.", [("user", "carved", "this spoon to thank my teacher")]),
    ("We made it to the summit.", [("user", "made", "it to the summit")]),
    ("I've been reading maps, writing to guides, and getting to know the valley.",
     [("user", "reading", "maps"), ("user", "writing to", "guides"), ("user", "getting to", "know the valley")]),
    ("Haven't slept, wanted to let you know I won the raffle!", [("user", "won", "the raffle")]),
    ("I believe that bees deserve better laws.", [("user", "believe", "bees deserve better laws")]),
    ("Our choir, 'Low Tide', is made of nurses.",
     [("user's choir", "is made of", "nurses"), ("user's choir", "is", "Low Tide")]),
    ("One of the trainers, Ida, wrote us a song.",
     [("Ida", "wrote", "us a song"), ("Ida", "is", "one of the trainers")]),
    ("A neighbour knitted me a scarf.", [("A neighbour", "knitted", "me a scarf")]),
    ("Rowing is a big part of my week.", [("Rowing", "is", "a big part of my week")]),
    ("This lamp is one of my finds.", [("lamp", "is", "one of my finds")]),
    ("I'm restoring a tram. It has oak benches.",
     [("user", "restoring", "a tram"), ("a tram", "has", "oak benches")]),
    ("My niece moved to Oslo. She teaches the oboe.",
     [("user's niece", "moved to", "Oslo"), ("user's niece", "teaches", "the oboe")]),
    ("I have a cat. Her name is Luna.", [("user", "have", "a cat"), ("cat's name", "is", "Luna")]),
    ("The council scrapped the old pier.", [("council", "scrapped", "the old pier")]),
    ("Wish I could spend more time in the workshop.", [("user", "wish I could", "spend more time in the workshop")]),
    ("Can't wait to plant the beans.", [("user", "can't wait to", "plant the beans")]),
    ("We're about to open a bakery.", [("user", "is about to", "open a bakery")]),
    ("I'm open to moving north.", [("user", "is open to", "moving north")]),
    ("Always been interested in tides.", [("user", "was interested in", "tides")]),
    ("Thankfully we found a plumber.", [("user", "found", "a plumber")]),
    ("Since my exam I've slept in a tent.", [("user", "slept in", "a tent")]),
    ("Two years ago my dad sold the farm.", [("user's dad", "sold", "the farm")]),
    ("Since we last met I took up rowing.", [("user", "took up", "rowing")]),
    ("I was mowing when I found a ring.", [("user", "found", "a ring")]),
    ("Sam and I painted the shed.", [("user", "painted", "the shed")]),
    ("Me and my brother row on Sundays.", [("user", "row on", "Sundays")]),
    ("None of my cousins smoke pipes.", [("None of my cousins", "smoke", "pipes")]),
    ("I rarely have time to read.", [("user", "rarely have", "time to read")]),
    ("I'd never seen a whale before.", [("user", "never seen", "a whale before")]),
    ("What I love most is the smell of rain.", [("user", "love", "the smell of rain")]),
    ("This is my dog Biscuit.", [("user", "has", "my dog Biscuit")]),
    ("My brother, who lives in Kiel, is a pilot.", [("user's brother", "is", "a pilot")]),
]  # fmt: skip
NOT_KEPT = [
    "Maybe we move to Oslo one day.",
    "I was going to buy a canoe.",
    "I'm so excited about tomorrow!",
    "We had a great time there.",
    "I gave it my all.",
    "The colours were amazing.",
    "Nature helps me relax, doesn't it?",
    "I wanted to tell you something.",
    "I couldn't have done it without them.",
    "I'm thinking about maybe selling the canoe.",
    "The highest wall I climbed was scary.",
    "I might rent a van.",
    "I fixed it.",
    "We need to take it easy.",
    "I'll keep that in mind.",
    "That sounds like a plan.",
    "It has a cedar hull.",
    "She teaches the oboe.",
    "I'll let you know how it goes.",
    "I totally get that.",
    "My sister says I snore.",
    "I was told he left.",
    "I had no clue.",
    "I hope the weather holds.",
    "Seeing the harbour again, how lovely.",
    "Sending hugs.",
    "Life is full of surprises.",
    "I wonder whether the vet is open.",
]


@pytest.mark.parametrize(("text", "facts"), READ, ids=[text[:24] for text, _ in READ])
def test_a_clause_is_read_by_its_grammar(text: str, facts: list[tuple[str, str, str]]) -> None:
    """Subject, verb and object are found by where they stand, with what is denied and who goes on acting."""
    assert stated(text) == facts


@pytest.mark.parametrize("text", NOT_KEPT, ids=[text[:24] for text in NOT_KEPT])
def test_hedges_moods_and_talk_are_not_kept(text: str) -> None:
    """What may be, what was meant to be, how somebody feels just now and what points elsewhere is no fact."""
    assert stated(text) == []


OFFERED = "Three ways:\n1. **MySQL** - what you know\n2. SQLite: one file\n3. Postgres (most work)"


@pytest.mark.parametrize(
    ("text", "what"),
    [("Let's go with option 2", "SQLite"), ("the last one, please", "Postgres"), ("1", "MySQL"),
     ("I'd take number three", "Postgres"), ("What is option 2?", ""), ("not option 1", ""), ("option 7", ""),
     ("It took 2 days", ""), ("9", ""), ("0", "")],
)  # fmt: skip
def test_a_choice_from_an_offered_list_names_the_item(text: str, what: str) -> None:
    """A number, a letter or a place names the item; a question, a refusal and a number of something else do not."""
    assert chosen(text, OFFERED) == what


def test_only_a_list_that_was_just_offered_is_chosen_from() -> None:
    """A choice in a session is found with the item of the answer right before it, and of no other."""
    store = memory_store(clock=ManualClock(AT, 1_000), ids=SeededIds(1))
    rows = [("user", "How shall we store it?"), ("assistant", OFFERED), ("user", "Option 2 then."),
            ("assistant", "Fine."), ("user", "Option 3.")]  # fmt: skip
    store.record("talk", {"messages": [{"role": role, "content": text} for role, text in rows]})
    memory = store.session("talk").memory
    memory.facts.extract()
    assert [(fact.verb, fact.what, fact.type) for fact in memory.facts.all()] == [("chose", "SQLite", "decision")]
    assert items_of("- a\n- b") == ["a", "b"]


OTHERS = [
    ("de", "Meine Schwester wohnt in Köln.", [("user's Schwester", "wohnt", "in Köln")]),
    ("de", "Ich esse kein Fleisch.", [("user", "esse nicht", "Fleisch")]),
    ("de", "Wir sind letzten Monat nach Hamburg gezogen.", [("user", "ist umgezogen nach", "Hamburg")]),
    ("de", "Ich habe 2019 in Wien studiert.", [("user", "studiert", "2019 in Wien")]),
    ("de", "Soll ich einen Hund kaufen?", []),
    ("de", "Ich würde gern nach Japan fahren.", []),
    ("fr", "Je m'appelle Claire et j'habite à Lyon.", [("user", "s'appelle", "Claire"), ("user", "habite", "Lyon")]),
    ("fr", "Je n'aime pas le café.", [("user", "ne aime pas", "le café")]),
    ("fr", "Peut-être que je vais déménager.", []),
]


@pytest.mark.parametrize(("language", "text", "facts"), OTHERS, ids=[text[:20] for _, text, _ in OTHERS])
def test_other_languages_have_patterns_of_their_own(language: str, text: str, facts: list[object]) -> None:
    """A file declares the language of its patterns, and what it finds says which."""
    assert stated(text, language) == facts
    assert {rules_of(language).language for language in LANGUAGES} == set(LANGUAGES)


def test_the_language_of_a_namespace_is_that_of_its_facts() -> None:
    """Where nobody names a language the one that the namespace declares is used; one without patterns is refused."""
    store = memory_store(clock=ManualClock(AT, 1_000), ids=SeededIds(1))
    store.record(
        "talk", {"messages": [{"role": "user", "content": "Ich trinke Kaffee. Ich trinke keinen Kaffee mehr."}]}
    )
    store.index.set_language("de")
    memory = store.session("talk").memory
    memory.facts.extract()
    (fact,) = memory.facts.all()
    assert (fact.verb, fact.what, fact.method) == ("trinke nicht mehr", "Kaffee", "patterns-de@1")
    with pytest.raises(InputError):
        memory.facts.extract(language="fi")
