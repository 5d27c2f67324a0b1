"""Facts: stated by hand, asked by their words and as of any moment, and gone with what they were found on."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Annotate, Create, Fact
from vmstore.core.page import Standing
from vmstore.errors import InputError, ReadOnlyError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

DAY = 86_400_000_000


@pytest.fixture
def store() -> Store:
    """A store in memory, on the hundredth day."""
    return memory_store(clock=ManualClock(100 * DAY, 1_000), ids=SeededIds(1))


@pytest.fixture
def talk(store: Store) -> Session:
    """A session of ann with two pages."""
    session = store.session("talk", create=True, user="ann")
    spoken_page(session, "I live in Paris now")
    spoken_page(session, "I run every day")
    return session


def spoken_page(session: Session, text: str) -> str:
    """A page that somebody said."""
    with session.batch() as batch:
        page = batch.add(Create(0, 0, 1, 0, 0, batch.cell(text.encode()), len(text), 5))
    return f"p{page}"


def whats(session: Session, **asked: object) -> list[str]:
    """What is known, as objects."""
    return [fact.what for fact in session.memory.facts.all(**asked)]  # type: ignore[arg-type]


@pytest.mark.parametrize("live", [False, True])
def test_a_fact_stated_by_hand_is_known(store: Store, live: bool) -> None:
    """A fact stated by hand is told with all that was said of it, by a recorded session and by a live one."""
    session = store.live_session("s", l0_tokens_max=4_000) if live else store.session("s", create=True)
    words = "I play chess"
    source = session.user(words)[0] if isinstance(session, Live) else spoken_page(session, words)
    page = session.memory.facts.state(
        "user", "plays", "chess", fact_type="skill", status="recurring", confidence=0.9, strength=0.25,
        precision="day", valid_from_us=5 * DAY, tags=["games"], sources=source, attribute="Board Game",
    )  # fmt: skip
    (fact,) = session.memory.facts.all()
    assert (fact.page, fact.subject, fact.verb, fact.what) == (page, "user", "plays", "chess")
    assert fact.text == "user plays chess"
    assert (fact.type, fact.status, fact.attribute, fact.one) == ("skill", "recurring", "board_game", False)
    assert (fact.confidence, fact.strength, fact.precision, fact.method) == (0.9, 0.25, "day", "hand@1")
    assert (fact.valid_from_us, fact.valid_to_us, fact.tags, fact.sources) == (5 * DAY, None, ["games"], [source])
    assert session.page(page).type == "claim" and session.page(page).tier != 0
    assert store.verify().ok


def test_a_new_value_ends_the_old_at_its_own_beginning(talk: Session) -> None:
    """At an attribute of one value each value ends where the next began, whatever the order they were learned in."""
    for city, day in (("Berlin", 10), ("Lisbon", 90), ("Rome", 50)):
        talk.memory.facts.state("user", "lives in", city, attribute="home", valid_from_us=day * DAY)
    assert whats(talk) == ["Lisbon"]
    assert whats(talk, valid_at_us=60 * DAY) == ["Rome"]
    assert whats(talk, valid_at_us=5 * DAY) == []
    ends = {fact.what: (fact.valid_to_us, fact.superseded_by) for fact in talk.memory.facts.all(ever=True)}
    assert ends == {"Berlin": (50 * DAY, "p8"), "Rome": (90 * DAY, "p6"), "Lisbon": (None, None)}


def test_what_is_said_again_ends_nothing(talk: Session) -> None:
    """A value that is stated again goes on, and what it replaced ended where it first began."""
    for city, day in (("Berlin", 10), ("Rome", 20), ("rome", 40)):
        talk.memory.facts.state("user", "lives in", city, attribute="home", valid_from_us=day * DAY)
    assert whats(talk) == ["Rome", "rome"]
    assert talk.memory.facts.all(ever=True)[0].valid_to_us == 20 * DAY


def test_an_unknown_attribute_has_many_values(talk: Session) -> None:
    """Of an attribute that nobody listed a subject has many values, unless the fact says that it has one."""
    for hobby in ("chess", "rowing"):
        talk.memory.facts.state("user", "likes", hobby, attribute="hobby")
    for shelf in ("left", "right"):
        talk.memory.facts.state("book", "stands", shelf, attribute="shelf", one=True)
    assert whats(talk) == ["chess", "rowing", "right"]


def test_what_was_believed_is_asked_apart_from_what_held(talk: Session) -> None:
    """The moment of the log and the time in the world are asked each by itself, and both together."""
    talk.memory.facts.state("user", "lives in", "Berlin", attribute="home", valid_from_us=10 * DAY)
    then = talk.info().position
    talk.memory.facts.state("user", "lives in", "Rome", attribute="home", valid_from_us=20 * DAY)
    assert whats(talk, valid_at_us=30 * DAY) == ["Rome"]
    assert whats(talk, valid_at_us=30 * DAY, position=then) == ["Berlin"]
    assert whats(talk, valid_at_us=15 * DAY) == ["Berlin"]


def test_a_retracted_value_never_ended_another(talk: Session) -> None:
    """A value that is marked superseded or deleted by hand is not known, and what it had ended goes on."""
    talk.memory.facts.state("user", "lives in", "Berlin", attribute="home", valid_from_us=10 * DAY)
    wrong = talk.memory.facts.state("user", "lives in", "Rome", attribute="home", valid_from_us=20 * DAY)
    talk.annotate(wrong, status=Standing.SUPERSEDED.word)
    assert whats(talk) == ["Berlin"]
    assert talk.memory.facts.all()[0].valid_to_us is None


def test_an_explicit_link_replaces_a_fact_at_no_address(talk: Session) -> None:
    """A fact that supersedes another by a link ends it, though neither has an attribute."""
    old = talk.memory.facts.state("user", "plays", "chess", valid_from_us=DAY)
    new = talk.memory.facts.state("user", "plays", "go", valid_from_us=50 * DAY, supersedes=old)
    assert whats(talk) == ["go"]
    assert [(f.valid_to_us, f.superseded_by) for f in talk.memory.facts.all(ever=True)] == [
        (50 * DAY, new),
        (None, None),
    ]


def test_an_annotation_ends_a_fact_of_many(talk: Session) -> None:
    """A validity that is annotated later bounds a fact that nothing replaces."""
    page = talk.memory.facts.state("user", "likes", "rowing", valid_from_us=DAY)
    talk.annotate(page, valid_to_us=20 * DAY)
    assert whats(talk) == []
    assert whats(talk, valid_at_us=10 * DAY) == ["rowing"]


def test_plans_are_known_before_they_come_and_events_after(talk: Session) -> None:
    """A plan is known from when it was stated until its time is over; what is completed is known from then on."""
    talk.memory.facts.state("user", "goes to", "Oslo", status="planned", valid_from_us=120 * DAY, valid_to_us=121 * DAY)
    talk.memory.facts.state("user", "went to", "Rome", status="completed", valid_from_us=20 * DAY, valid_to_us=21 * DAY)
    assert whats(talk) == ["Oslo", "Rome"]
    assert whats(talk, valid_at_us=130 * DAY) == ["Rome"]


def test_a_plan_ends_no_value(talk: Session) -> None:
    """A plan to move leaves where one lives as it is."""
    talk.memory.facts.state("user", "lives in", "Rome", attribute="home", valid_from_us=DAY)
    talk.memory.facts.state("user", "moves to", "Oslo", attribute="home", status="planned", valid_from_us=99 * DAY)
    assert whats(talk) == ["Rome", "Oslo"]


def test_facts_of_a_user_stand_together(store: Store, talk: Session) -> None:
    """A value learned in one session of a user ends that of another, and nothing of another user's."""
    talk.memory.facts.state("user", "lives in", "Rome", attribute="home", valid_from_us=DAY)
    later = store.session("later", create=True, user="ann")
    later.memory.facts.state("user", "lives in", "Oslo", attribute="home", valid_from_us=2 * DAY)
    other = store.session("other", create=True, user="bob")
    other.memory.facts.state("user", "lives in", "Lima", attribute="home", valid_from_us=3 * DAY)
    assert whats(talk, whole_user=True) == ["Oslo"] and whats(talk) == ["Rome"]
    assert [fact.what for fact in store.memory.facts.all(user="ann")] == ["Oslo"]
    assert sorted(fact.what for fact in store.memory.facts.all()) == ["Lima", "Oslo"]
    ended = store.memory.facts.all(user="ann", ever=True)
    assert [(fact.session, fact.superseded_by) for fact in ended] == [("later", None), ("talk", "later/p2")]
    with pytest.raises(InputError, match="no user"):
        store.session("nobody", create=True).memory.facts.all(whole_user=True)


def test_a_fork_keeps_what_was_known_and_goes_on_alone(talk: Session) -> None:
    """A fork knows what its parent knew, and neither sees what the other learns."""
    talk.memory.facts.state("user", "lives in", "Berlin", attribute="home", valid_from_us=DAY)
    fork = talk.fork("fork")
    fork.memory.facts.state("user", "lives in", "Rome", attribute="home", valid_from_us=2 * DAY)
    talk.memory.facts.state("user", "lives in", "Oslo", attribute="home", valid_from_us=3 * DAY)
    assert (whats(fork), whats(talk)) == (["Rome"], ["Oslo"])
    assert fork.memory.facts.all(ever=True)[0].superseded_by is not None


def test_a_verb_is_asked_by_those_that_say_the_same(talk: Session) -> None:
    """A question for one verb finds facts stored with another that says the same, and other forms of it."""
    talk.memory.facts.state("user", "runs", "5K every morning", fact_type="routine", status="recurring")
    talk.memory.facts.state("user", "bought", "a boat")
    talk.memory.facts.state("user", "lives in", "Rome")
    for verb, what in (("jogging", "5K every morning"), ("purchase", "a boat"), ("resides", "Rome")):
        assert talk.memory.facts.query(verb=verb).facts[0].what == what
    assert talk.memory.facts.query(verb="paints").facts == []


def test_filters_are_asked_together(talk: Session) -> None:
    """Subject, object, status and type leave the facts that fit all of them, the newest first, of so many."""
    for what in ("tea at five", "tea at six", "coffee"):
        talk.memory.facts.state("user", "drinks", what, fact_type="routine", status="recurring")
    talk.memory.facts.state("bob", "drinks", "tea at nine", fact_type="routine", status="recurring")
    result = talk.memory.facts.query("User", None, "tea", "recurring", "routine", limit=1)
    assert ([fact.what for fact in result.facts], result.total) == (["tea at six"], 2)
    with pytest.raises(InputError, match="no status"):
        talk.memory.facts.query(status="alive")
    with pytest.raises(InputError, match="no fact type"):
        talk.memory.facts.query(fact_type="colour")


def test_few_facts_are_followed_by_those_that_say_something_like_it(talk: Session) -> None:
    """Where few facts fit, those that share words with what was asked come after them, and the answer says so."""
    talk.memory.facts.state("user", "keeps", "two cats and a dog")
    result = talk.memory.facts.query(object_contains="dogs and cats")
    assert ([fact.what for fact in result.facts], result.total) == (["two cats and a dog"], 0)
    assert "something like it" in result.note


def test_facts_are_walked_in_both_directions(talk: Session) -> None:
    """A graph goes along links out of a fact and into it, so many steps; a question shows the links of one step."""
    led = talk.memory.facts.state("user", "led", "Project Alpha")
    uses = talk.memory.facts.state("Project Alpha", "uses", "Python", links=[("part_of", led)])
    late = talk.memory.facts.state("Python", "needs", "a linter", links=[("caused_by", uses)])
    graph = talk.memory.facts.graph(uses)
    assert {fact.page for fact in graph.facts} == {led, uses, late}
    assert {(e.source, e.target, e.kind, e.depth) for e in graph.edges} == {
        (uses, led, "part_of", 1),
        (late, uses, "caused_by", 1),
    }
    assert [edge.depth for edge in talk.memory.facts.graph(led).edges] == [1, 2]
    assert {fact.page for fact in talk.memory.facts.graph(led, kinds=["caused_by"]).facts} == {led}
    (fact,) = talk.memory.facts.query(object_contains="Project Alpha").facts[:1]
    assert [(link.kind, link.page, link.out) for link in fact.links] == [("part_of", uses, False)]
    with pytest.raises(InputError, match="linked by"):
        talk.memory.facts.graph(led, kinds=["derives"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"subject": ""}, "subject of a fact"),
        ({"what": "x" * 301}, "what of a fact"),
        ({"confidence": 1.5}, "no share"),
        ({"status": "superseded"}, "retract"),
        ({"fact_type": "nonsense"}, "no fact type"),
        ({"valid_from_us": 5, "valid_to_us": 4}, "ends before it begins"),
        ({"one": True}, "name it"),
    ],
)
def test_what_is_no_fact_is_refused_and_nothing_written(talk: Session, fields: dict[str, object], words: str) -> None:
    """A fact that cannot be logged is refused with the reason, and the session stands where it stood."""
    before = talk.info().position
    with pytest.raises(InputError, match=words):
        talk.memory.facts.state(**{"subject": "user", "verb": "is", "what": "here", **fields})  # type: ignore[arg-type]
    assert talk.info().position == before


def test_a_source_that_is_not_there_is_named(talk: Session) -> None:
    """A fact with a source that is no page of the session is refused."""
    with pytest.raises(UnknownError):
        talk.memory.facts.state("user", "is", "here", sources="p999")


def test_a_fact_dies_with_its_last_source(tmp_path: Path) -> None:
    """Erasing a page takes the facts found on it alone, their words with them, and leaves those found elsewhere too."""
    with vmstore.open(tmp_path / "s.vms") as store:
        talk = store.session("talk", create=True, user="ann")
        paris, run = spoken_page(talk, "I live in Paris-Bellevue now"), spoken_page(talk, "I run in Paris-Bellevue")
        talk.memory.facts.state("user", "lives in", "Bellevue quarter", attribute="home", sources=paris)
        talk.memory.facts.state("user", "runs", "daily", sources=[paris, run])
        assert whats(talk) == ["Bellevue quarter", "daily"]
        store.trust.erase(page=paris, in_session="talk")
        assert whats(talk) == ["daily"]
        assert store.verify().ok
        kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        assert b"Bellevue quarter" not in kept
        store.trust.erase(user="ann")
        assert store.memory.facts.all() == []


def test_a_rebuilt_store_knows_the_same(tmp_path: Path) -> None:
    """What is known is the same after every view was folded again, and in a store opened again."""
    with vmstore.open(tmp_path / "s.vms") as store:
        talk = store.session("talk", create=True)
        for city in ("Berlin", "Rome"):
            talk.memory.facts.state("user", "lives in", city, attribute="home")
        before = talk.memory.facts.all(ever=True)
        store.admin.rebuild()
        assert talk.memory.facts.all(ever=True) == before
    with vmstore.open(tmp_path / "s.vms") as again:
        assert again.session("talk").memory.facts.all(ever=True) == before


def test_secrets_in_a_fact_are_masked_at_the_door(store: Store) -> None:
    """The words of a fact pass the door of a session that masks, as its sentence does."""
    talk = store.session("masked", create=True, redaction="mask")
    talk.memory.facts.state("user", "has the key", "AKIAIOSFODNN7EXAMPLQ", attribute="key")
    (fact,) = talk.memory.facts.all()
    assert "AKIA" not in f"{fact.what} {fact.text}"


def test_a_session_that_is_read_only_states_nothing(tmp_path: Path) -> None:
    """A handle for reading refuses to state a fact, and tells what is known."""
    with vmstore.open(tmp_path / "s.vms") as store:
        store.session("talk", create=True).memory.facts.state("user", "is", "here")
    with vmstore.open(tmp_path / "s.vms", mode="r") as store:
        assert whats(store.session("talk")) == ["here"]
        with pytest.raises(ReadOnlyError):
            store.session("talk").memory.facts.state("user", "is", "there")


def test_the_last_fact_told_of_a_page_holds(talk: Session) -> None:
    """Two facts of one page are one: the later takes the place of the earlier."""
    talk.memory.facts.state("user", "is", "here")
    (fact,) = talk.memory.facts.all()
    with talk.batch() as batch:
        words = [batch.cell(word) for word in (b"user", b"is", b"there", b"hand@1")]
        page = int(fact.page[1:])
        stated = (10, 0, 0, None, None, 0, 1_000_000, 0, words[3])
        batch.add(Fact(page, words[0], words[1], words[2], None, *stated))
        batch.add(Annotate(page, importance=1))
    assert whats(talk) == ["there"]
