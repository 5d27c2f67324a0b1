"""What a session remembers, asked by words, by time and as a whole, within a token budget."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

import vmstore
from vmstore.core.clock import ManualClock
from vmstore.core.times import microseconds
from vmstore.errors import InputError

DAY = 86_400_000_000
NOW = microseconds(datetime(2026, 11, 23, 9, tzinfo=UTC))  # a Monday
SAID = [  # days ago, user, assistant
    (40, "Which database shall we take for the archive?", "I propose Postgres, because it has partitions."),
    (39, "Agreed, Postgres it is.", "Noted."),
    (12, "My sister Ana visits us next Saturday.", "How nice! I will remind you of the guest room."),
    (9, "The deploy failed with a timeout of the archive.", "I raised the timeout to 30 seconds."),
    (2, "Did the nightly deploy pass?", "Yes, it passed, in 41 seconds."),
]


def filled(name: str = "work", user: str | None = None, store: vmstore.Store | None = None) -> vmstore.Session:
    """A session with what was said, recorded call by call on its day."""
    store = store or vmstore.memory_store(clock=ManualClock(NOW, 0))
    session = store.session(name, create=True, user=user)
    messages: list[dict[str, str]] = []
    for days, asked, answered in SAID:
        messages.append({"role": "user", "content": asked})
        reply = {"role": "assistant", "content": answered}
        response = {"choices": [{"message": reply, "finish_reason": "stop"}]}
        session.record({"model": "m-1", "messages": list(messages)}, response, at_us=NOW - days * DAY)
        messages.append(reply)
    return session


def texts_of(recall: vmstore.RecallAnswer) -> list[str]:
    """The texts of an answer, in their order."""
    return [text.text for passage in recall.passages for text in passage.texts]


def test_a_hit_comes_with_what_was_said_beside_it() -> None:
    """A recall gives the answer beside the question it answers, though it shares no word with what was asked."""
    recall = filled().memory.recall("guest room")
    assert texts_of(recall)[:2] == [SAID[2][1], SAID[2][2]]
    assert [text.found for text in recall.passages[0].texts][:2] == [False, True]
    assert recall.passages[0].relevance == 1.0


@pytest.mark.parametrize("tokens", [1, 12, 25, 60, 200])
def test_a_budget_is_kept(tokens: int) -> None:
    """No answer takes more tokens than it was given, counted as the pages are."""
    session = filled()
    by_words = session.memory.recall("deploy archive timeout", tokens=tokens)
    for recall in (by_words, session.memory.remember_when(tokens=tokens)):
        assert recall.tokens == sum(text.tokens for passage in recall.passages for text in passage.texts) <= tokens
        assert recall.tokens >= sum(len(text) // 4 for text in texts_of(recall))
        assert recall.passages or "give more" in recall.note
    overview = session.memory.recall_all(tokens=tokens)
    assert overview.tokens == sum(topic.tokens for topic in overview.topics) <= tokens
    assert len(overview.topics) + overview.left_out == overview.total_available


def test_a_long_text_is_cut_where_nothing_else_fits() -> None:
    """A page longer than the budget is shown as far as it fits, and says that it is not whole."""
    session = filled()
    text = "The manual of the turbine. " + "It turns and turns. " * 500
    session.record({"model": "m-1", "messages": [{"role": "user", "content": text}]}, at_us=NOW)
    (passage,) = session.memory.recall("turbine manual", tokens=50).passages
    assert [text.whole for text in passage.texts] == [False]
    assert passage.texts[0].text.startswith("The manual of the turbine.")


def test_the_same_text_is_told_once() -> None:
    """A text that stands in several places comes once, with how many more there are."""
    session = filled()
    for day in range(3):
        request = {"model": "m-1", "messages": [{"role": "user", "content": "Run the zebra check."}] * (day + 1)}
        session.record(request, at_us=NOW + day)
    recall = session.memory.recall("zebra")
    assert texts_of(recall).count("Run the zebra check.") == 1
    assert recall.passages[0].copies == recall.total_available - 1 > 0
    assert len(session.memory.find_quote("zebra check").quotes) == 1


def test_quotes_come_exact_first() -> None:
    """A quote that holds the text as it is stands before one that holds more of its words, with its day and kind."""
    quotes = filled().memory.find_quote("the  TIMEOUT to 30")
    assert (quotes.quotes[0].match, quotes.quotes[0].role) == ("exact", "assistant")
    assert "raised the timeout to 30 seconds" in quotes.quotes[0].excerpt
    assert quotes.quotes[0].session_at_us == NOW - 9 * DAY
    assert {quote.match for quote in quotes.quotes[1:]} == {"words"}


def test_a_quote_that_holds_no_word_of_the_text_says_so() -> None:
    """What was found only because a typo was forgiven is similar to the text, and no quote of its words."""
    assert {quote.match for quote in filled().memory.find_quote("timeuot").quotes} == {"similar"}


def test_twenty_quotes_at_most() -> None:
    """However many pages say it, twenty quotes are given, and how many there are."""
    session = vmstore.memory_store().session("many", create=True)
    messages = [{"role": "user", "content": f"Lot {number}: a lamp"} for number in range(1_100)]
    session.record({"model": "m-1", "messages": messages})
    quotes = session.memory.find_quote("lamp")
    assert (len(quotes.quotes), quotes.total_available) == (20, 1_100)


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ({"preset": "last_week"}, [2, 2]),
        ({"preset": "today"}, []),
        ({"preset": "last_month"}, [40, 39, 40, 39]),
        ({"preset": "the weekend"}, [2, 2]),
        ({"preset": "between_dates", "start": "2026-11-11", "end": "14 November"}, [12, 12, 9, 9]),
        ({"start": NOW - 3 * DAY}, [2, 2]),
        ({"end": datetime(2026, 10, 16, tzinfo=UTC)}, [40, 40, 39, 39]),
    ],
)
def test_a_time_is_resolved_by_the_store(asked: dict[str, object], days: list[int]) -> None:
    """A preset, bounds or words choose what was said in that time, earliest first."""
    session = filled()
    recall = session.memory.remember_when(**asked)  # type: ignore[arg-type]
    at_uses = [(NOW - text.at_us) // DAY for passage in recall.passages for text in passage.texts]
    assert at_uses == sorted(days, reverse=True)
    assert at_uses == sorted(at_uses, reverse=True)


def test_a_time_that_is_spoken_of() -> None:
    """With a query a page counts too that speaks of the time asked about, though it was said before."""
    memory = filled().memory
    recall = memory.remember_when("Ana", start="2026-11-14", end="2026-11-15")
    assert [text.text for passage in recall.passages for text in passage.texts if text.found] == [SAID[2][1]]
    assert "none is of that time" in memory.remember_when("Ana", preset="yesterday").note


def test_all_that_was_spoken_of() -> None:
    """The overview tells every stretch of a session, oldest first, with the pages to ask for."""
    session = filled()
    overview = session.memory.recall_all()
    assert overview.left_out == 0
    assert [topic.turns for topic in overview.topics] == [(1, 5)]
    assert overview.topics[0].text.startswith(SAID[0][1])
    assert set(overview.topics[0].pages) <= {page.page for page in session.pages()}


def test_summaries_stand_for_their_segments() -> None:
    """A stretch that was summed up is told by its summary, and its pages are told no second time."""
    store = vmstore.memory_store()
    live = store.live_session("talk", l0_tokens_max=4_000, segment_tokens_max=40)
    for number in range(8):
        live.user(f"Step {number} of the garden plan: plant {'roses' if number < 4 else 'beans'} by the wall.")
        live.pack()
        live.assistant(f"Step {number} is planned, with {'roses' if number < 4 else 'beans'}.")
    overview = live.memory.recall_all()
    summaries = [page.page for page in live.pages(type="summary")]
    assert summaries
    pages = [page for topic in overview.topics for page in topic.pages]
    assert set(summaries) <= set(pages)
    assert [topic.turns for topic in overview.topics] == [(1, 2), (3, 4), (5, 6), (7, 8)]
    assert [len(topic.pages) for topic in overview.topics] == [1, 1, 1, 1]


def test_what_was_taken_back_is_remembered_by_nothing() -> None:
    """A message that was deleted is told by no way of asking, while what was said beside it is."""
    store = vmstore.memory_store()
    live = store.live_session("talk", l0_tokens_max=4_000, user="ada")
    (gone,) = live.user("The wedding is in Verona.")
    live.user("The wedding cake has three tiers.")
    live.delete(gone)
    memory, other = live.memory, store.session("now", create=True, user="ada").memory
    asked = (memory.recall("wedding"), memory.remember_when("wedding"), other.recall_user("wedding"))
    texts = [
        str(answer)
        for answer in (*asked, memory.recall_all(), memory.find_quote("wedding"), memory.search_pages("wedding"))
    ]
    assert not any("Verona" in text or f"'{gone}'" in text for text in texts), texts
    assert all("cake" in text for text in texts)


def test_other_sessions_of_a_user() -> None:
    """Cold recall finds what a user's other sessions hold, the newer of two alike first, and never a stranger's."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    for name, user, days in (("old", "ada", 90), ("new", "ada", 1), ("other", "bob", 1)):
        session = store.session(name, create=True, user=user)
        content = f"The {name} boat is called Marlin."
        session.record({"model": "m-1", "messages": [{"role": "user", "content": content}]}, at_us=NOW - days * DAY)
    now = store.session("now", create=True, user="ada")
    recall = now.memory.recall_user("boat Marlin")
    assert [passage.session for passage in recall.passages] == ["new", "old"]
    alike = 0.3 + 0.2 * 0.5  # both fit as well, and both have the importance that pages begin with
    older, newer = (0.5 * math.exp(-0.1 * days) + alike for days in (90, 1))
    assert recall.passages[1].relevance == pytest.approx(older / newer, abs=0.01)
    with pytest.raises(InputError, match="has no user"):
        filled().memory.recall_user("boat")


def test_all_sessions_are_asked_at_once() -> None:
    """The store's memory finds what any session holds, or any of a user, and nothing that was deleted."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    for name, user in (("a", "ada"), ("b", "bob")):
        session = store.session(name, create=True, user=user)
        session.record({"model": "m-1", "messages": [{"role": "user", "content": f"The boat of {name} is Marlin."}]})
    live = store.live_session("c", l0_tokens_max=16_000, user="ada")
    (gone,) = live.user("Another boat is Marlin too.")
    live.delete(gone)
    memory = store.memory
    assert {passage.session for passage in memory.recall("boat Marlin").passages} == {"a", "b"}
    assert {quote.session for quote in memory.find_quote("is Marlin").quotes} == {"a", "b"}
    assert {passage.session for passage in memory.recall("boat Marlin", user="ada").passages} == {"a"}
    assert {quote.session for quote in memory.find_quote("is Marlin", user="bob").quotes} == {"b"}


def test_pages_are_counted_truly() -> None:
    """A search tells how many pages there are beyond those it gives, and the best has relevance 1."""
    pages = filled().memory.search_pages("the archive deploy timeout", limit=2)
    assert (len(pages.results), pages.results[0].relevance) == (2, 1.0)
    assert pages.total_available == 4  # `the` is asked of none
    assert [page.modality for page in pages.results] == ["text", "text"]
    none = filled().memory.search_pages("archive", modality="image")
    assert (none.results, none.total_available) == ([], 0)
    assert "none is image" in none.note


def test_as_of() -> None:
    """What was said later is not remembered earlier, whatever is asked."""
    memory = filled().memory
    assert memory.recall("nightly deploy", call=2).note.startswith("no page answers")
    assert memory.find_quote("nightly", call=2).quotes == []
    assert len(memory.remember_when(call=2).passages[0].texts) == 3
    assert memory.recall_all(call=2).topics[0].turns == (1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda memory: memory.recall(""), "the query is empty"),
        (lambda memory: memory.recall(" \n"), "the query is empty"),
        (lambda memory: memory.recall(7), "a query is a text"),
        (lambda memory: memory.recall("x", tokens=0), "no token budget"),
        (lambda memory: memory.recall("x", tokens=True), "no token budget"),
        (lambda memory: memory.search_pages("x", limit=0), "no number of pages"),
        (lambda memory: memory.search_pages("x", modality="smell"), "no modality; there are text, image"),
        (lambda memory: memory.remember_when(preset="last_weak"), "did you mean 'last_week'"),
        (lambda memory: memory.remember_when(preset="whenever"), "the presets are today"),
        (lambda memory: memory.remember_when(preset="between_dates", start="2026-11-01"), "needs start and end"),
        (lambda memory: memory.remember_when(preset="last_week", end="today"), "say two times"),
        (lambda memory: memory.remember_when(start="2026-11-02", end="2026-11-01"), "turn them round"),
        (lambda memory: memory.remember_when(start="soon"), "start 'soon' is no time"),
        (lambda memory: memory.recall_all(tokens=-1), "no token budget"),
    ],
)
def test_what_cannot_be_asked(call: object, message: str) -> None:
    """What nobody can answer is refused by its name, with what to do."""
    with pytest.raises(InputError, match=message):
        call(filled().memory)  # type: ignore[operator]


@pytest.mark.parametrize("query", ["🦓", "!?", "the of and", "x" * 1_000_000, "word " * 200_000, "\0", '"', "a OR -"])
def test_odd_questions_are_answered(query: str) -> None:
    """An odd query gets an answer, or one that says what was done."""
    memory = filled().memory
    for ask in (memory.recall, memory.find_quote, memory.remember_when, memory.search_pages):
        answer = ask(query)
        assert answer.total_available or answer.note


def test_signs_are_found_as_written() -> None:
    """A query without a word finds the texts that hold it as it is, and says so."""
    session = filled()
    session.record({"model": "m-1", "messages": [{"role": "user", "content": "Zebras: §§"}]}, at_us=NOW)
    recall = session.memory.recall("§")
    assert [text.text for passage in recall.passages for text in passage.texts if text.found] == ["Zebras: §§"]
    assert "as it is written" in recall.note


def test_nothing_is_written_by_asking() -> None:
    """A recorded session's memory can be asked for whatever without a word being logged."""
    session = filled()
    before = session.info()
    session.memory.recall("deploy")
    session.memory.recall_all()
    assert session.info() == before
