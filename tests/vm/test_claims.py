"""Claims: decisions found in what was said, and what only looks like one."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growing import grows_at_most
from tests.vm.sayings import DECISIONS, DIALOGUES, NO_DECISIONS
from vmstore.core.page import Role, Standing
from vmstore.errors import InputError
from vmstore.vm.claims.claims import (
    Claim,
    ClaimKind,
    ClaimSource,
    KnownClaim,
    find,
    handed_in,
    key_of,
    name_of,
    topic_of,
)

U, A = Role.USER, Role.ASSISTANT
DATABASE = KnownClaim("claim_database", "database", "Decision: use PostgreSQL for the database")


@pytest.mark.parametrize(("text", "decided", "name"), DECISIONS, ids=[row[0] for row in DECISIONS])
def test_a_decision_is_found(text: str, decided: str, name: str) -> None:
    """A sentence that decides becomes one claim, said so that it needs no context, named by its topic."""
    actual = find([ClaimSource(7, U, text)])
    assert [(claim.text, claim.name, claim.sources) for claim in actual] == [(f"Decision: {decided}", name, (7,))]


@pytest.mark.parametrize("text", NO_DECISIONS)
def test_no_decision_is_found_where_there_is_none(text: str) -> None:
    """Questions, conditions, quotations, tasks and other people's decisions are no claims."""
    assert find([ClaimSource(7, U, text)]) == ()


PLAIN = [row for row in DECISIONS if not row[0].startswith("- ") and ". " not in row[0]]
WRAPPED = ["If {}", "> {}", "```\n{}\n```", "    {}", 'She wrote: "{} And that was all there was."', "| {} | x |"]


@pytest.mark.parametrize("wrapping", WRAPPED)
def test_the_same_words_elsewhere_decide_nothing(wrapping: str) -> None:
    """A decision under a condition, in a quotation, in code or in a table is no claim."""
    fields = {row[0]: find([ClaimSource(7, U, "Hello.\n\n" + wrapping.format(row[0]) + "\n\nBye.")]) for row in PLAIN}
    assert {name: claims for name, claims in fields.items() if claims} == {}


def test_a_decision_asked_is_no_decision() -> None:
    """A sentence that decides, said with a question mark, waits for an answer and is no claim."""
    assert [row[0] for row in DECISIONS if find([ClaimSource(7, U, row[0].rstrip(".!") + "?")])] == []


def test_words_around_a_decision_change_nothing() -> None:
    """A greeting before it and thanks after it leave a decision as it is."""
    for expected, decided, name in PLAIN:
        (claim,) = find([ClaimSource(7, U, f"Hi there. {expected}\n\nThanks a lot! What is next?")])
        assert (claim.text, claim.name) == (f"Decision: {decided}", name)


@pytest.mark.parametrize("text", [row[0] for row in DECISIONS])
def test_tools_and_systems_decide_nothing(text: str) -> None:
    """The same sentences in the output of a tool or in a system prompt are no claims."""
    assert (
        find([ClaimSource(1, Role.TOOL, text), ClaimSource(2, Role.SYSTEM, text), ClaimSource(3, Role.DEVELOPER, text)])
        == ()
    )


def test_the_tables_are_long_enough() -> None:
    """At least sixty sentences decide and at least sixty do not."""
    assert len(DECISIONS) >= 60 <= len(NO_DECISIONS)


def dialogue(messages: list[str]) -> list[ClaimSource]:
    """Messages as they are handed to the finder, pages counted from 1."""
    return [
        ClaimSource(at, A if message.startswith("A: ") else U, message.removeprefix("A: "))
        for at, message in enumerate(messages, 1)
    ]


@pytest.mark.parametrize(("messages", "decided"), DIALOGUES, ids=[" / ".join(row[0]) for row in DIALOGUES])
def test_an_answer_decides_with_its_question(messages: list[str], decided: list[str]) -> None:
    """A question or an offer and its answer make one claim; an answer to nothing, or no answer, makes none."""
    actual = find(dialogue(messages))
    assert [claim.text for claim in actual] == [f"Decision: {text}" for text in decided]


@pytest.mark.parametrize(("messages", "decided"), DIALOGUES, ids=[" / ".join(row[0]) for row in DIALOGUES])
def test_a_question_of_an_earlier_turn_is_answered(messages: list[str], decided: list[str]) -> None:
    """The last message alone gives the same claim when what stood before it is handed in as context."""
    *before, last = dialogue(messages)
    actual = find([last], before)
    assert [claim.text for claim in actual] == [f"Decision: {text}" for text in decided]


def test_a_claim_names_the_question_and_the_answer() -> None:
    """The sources of an answer's claim are the pages of the question and of the answer, in order."""
    (claim,) = find(dialogue(["A: Should we use Redis or Memcached for the cache?", "yes, Redis"]))
    assert claim.sources == (1, 2)


REVERSALS = [
    "Actually, let's use MySQL for the database.",
    "Actually, use MySQL instead.",
    "On second thought, go with MySQL for the database.",
    "Let's switch to MySQL for the database.",
    "Let's use MySQL instead of PostgreSQL.",
    "Use MySQL instead of PostgreSQL.",
    "Instead of PostgreSQL, let's use MySQL.",
    "Scratch that, we'll use MySQL.",
    "I changed my mind: let's use MySQL.",
    "We decided to use MySQL for our database after all.",
    "Change of plans, we're going with MySQL for the database.",
]


@pytest.mark.parametrize("text", REVERSALS)
def test_a_reversal_supersedes_the_claim_of_its_topic(text: str) -> None:
    """What takes a decision back is a claim of the same name that supersedes the earlier one."""
    other = KnownClaim("claim_cache", "cache", "Decision: use Redis for the cache")
    (claim,) = find([ClaimSource(9, U, text)], known=[other, DATABASE])
    assert (claim.kind, claim.name, claim.supersedes) == (ClaimKind.REVERSAL, "claim_database", "claim_database")
    assert "MySQL" in claim.text and "database" in claim.text and "PostgreSQL" not in claim.text


SWAPS = ["Let's replace PostgreSQL with MySQL.", "Let's swap PostgreSQL for MySQL."]


@pytest.mark.parametrize("text", SWAPS)
def test_to_swap_what_was_decided_is_a_reversal(text: str) -> None:
    """One thing in the place of another supersedes the claim that named it; of what nobody decided it is a task."""
    (claim,) = find([ClaimSource(9, U, text)], known=[DATABASE])
    assert (claim.text, claim.supersedes) == ("Decision: use MySQL for database", "claim_database")
    assert find([ClaimSource(9, U, text)]) == ()


def test_a_name_is_enough_to_take_back() -> None:
    """A claim of which only the name and the text were kept is superseded, by its topic or by nothing but a word."""
    for text in ("Actually, let's use NATS instead for the orders queue.", "Actually, use NATS instead."):
        (first,) = find([ClaimSource(1, U, "Let's use Kafka for the orders queue.")])
        known = [DATABASE, KnownClaim(first.name, topic_of(first.name), first.text)]
        (claim,) = find([ClaimSource(9, U, text)], known=known)
        assert (claim.name, claim.supersedes) == ("claim_orders_queue", "claim_orders_queue")
        assert claim.text.startswith("Decision: use NATS for") and "orders queue" in claim.text


def test_saying_it_again_is_no_new_claim() -> None:
    """A decision that is known in the same words is not made twice."""
    assert find([ClaimSource(9, U, "Let's use PostgreSQL for the database.")], known=[DATABASE]) == ()


def test_another_topic_is_left_alone() -> None:
    """A decision about something else supersedes nothing, though the topics share a word."""
    (claim,) = find([ClaimSource(9, U, "Let's use ClickHouse for the analytics database.")], known=[DATABASE])
    assert (claim.kind, claim.supersedes) == (ClaimKind.DECISION, "")


def test_one_sentence_may_decide_twice() -> None:
    """Two things with a topic each are two claims."""
    actual = find([ClaimSource(3, U, "Let's use FastAPI for the API and React for the frontend.")])
    assert [claim.name for claim in actual] == ["claim_api", "claim_frontend"]


def test_two_topics_are_one_by_their_words() -> None:
    """Case, plural, order and words like `choice` do not make another topic."""
    assert key_of("database choice") == key_of("the Databases") == key_of("DATABASE_CHOICE")
    assert key_of("pool size") != key_of("pool")
    assert key_of("the strategy") != ()


@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_is_read(text: str, other: str) -> None:
    """Whatever is said, the same claims come out twice, short, named, with sources among the pages."""
    turn = [
        ClaimSource(1, A, other + "?"),
        ClaimSource(2, U, text),
        ClaimSource(3, U, f"Let's use {other} for {text}."),
    ]
    actual = find(turn)
    assert actual == find(turn)
    for claim in actual:
        assert claim.name.startswith("claim") and 0 < len(claim.text) <= 300
        assert set(claim.sources) <= {1, 2, 3} and claim.status is Standing.ACTIVE
        assert 0 < claim.confidence <= 1_000_000


HOSTILE = [
    "what " + "a" * 380 + "?",
    "what " + "a" * 380,
    "for " + "a " * 199 + ", x",
    "which " + "w " * 180 + "should we use?",
    "do you want us to " + "use " * 90 + "?",
    "we decided" + " that" * 70,
    "let's make " + "the " * 90 + "1",
    "ok " * 130,
    "let's use " + "and x for " * 38,
    "Should we use " + "a or " * 75 + "b?",
    "a" * 390 + " it is",
    '"a b c ' * 60,
]


@pytest.mark.parametrize("sentence", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_no_sentence_takes_long(sentence: str) -> None:
    """A sentence made to confuse the patterns costs at most a few hundred times a plain one of its length."""

    fresh = count()  # a sentence that was read before is not read again

    def work(text: str) -> Callable[[], object]:
        return lambda: find([ClaimSource(1, U, f"{text}\n\n{next(fresh)}.") for _ in range(5)])

    assert grows_at_most(work("plain words " * (len(sentence) // 12)), work(sentence), 300)


def test_a_long_message_is_read_at_its_ends() -> None:
    """In a message with something pasted into it, the words before and after count, the middle does not."""
    pasted = "We decided to use Cobol for everything.\n" * 2_000
    actual = find(
        [ClaimSource(1, U, "Let's use Go for the server.\n" + "x\n" * 5_000 + pasted + "\n" * 5_000 + "Bye.")]
    )
    assert [claim.name for claim in actual] == ["claim_server"]


# What a callback hands in


def test_a_callback_may_find_claims() -> None:
    """Claims written by a callback are taken as they are when they name pages it was shown."""
    written = [{"text": "Decision: use Go", "name": "claim_language", "topic": "language", "sources": [4]}]
    (claim,) = handed_in(json.dumps(written), [4, 5])
    assert claim == Claim("Decision: use Go", "claim_language", "language", (4,))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("nonsense", "no list of claims"),
        ('{"text": "x"}', "no list of claims"),
        (b"\xff", "no list of claims"),
        ('[{"text": "", "name": "n", "topic": "t", "sources": [4]}]', "no text"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": []}]', "names a source"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": [6]}]', "names a source"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": [4], "confidence": -1}]', "confidence"),
        ('[{"text": "x", "name": "n", "topic": "t", "sources": [4], "kind": 9}]', "no list of claims"),
    ],
)
def test_a_callback_that_is_wrong_is_refused(answer: str | bytes, why: str) -> None:
    """Claims that are no list, say nothing, or point elsewhere are refused by name."""
    with pytest.raises(InputError, match=why):
        handed_in(answer, [4, 5])


def test_a_name_is_made_of_the_topic() -> None:
    """A claim is named by its topic's words, at most five, even where they are only signs."""
    assert name_of("the cache size of the upload service in Europe") == "claim_cache_size_upload_service_europe"
    assert name_of("B") == "claim_b"


# Real conversations


def test_customers_of_an_airline_decide_little(data: Path) -> None:
    """Of an airline's customers' messages one in twenty-five at most names a choice, and one in twelve decides."""
    runs = json.loads((data / "tau-bench" / "airline_even_tasks.json").read_text())
    turns = [turn for run in runs for turn in run["traj"] if turn["role"] == "user"]
    claims = [claim for at, turn in enumerate(turns) for claim in find([ClaimSource(at, U, turn["content"])])]
    choices = [claim for claim in claims if claim.text.startswith("Decision: use ")]
    assert 0 < len(choices) * 25 < len(turns), [claim.text for claim in choices]
    assert len(choices) <= len(claims) and len(claims) * 12 < len(turns), [claim.text for claim in claims]


def test_a_change_of_another_subject_leaves_a_claim() -> None:
    """The same value decided of another subject supersedes nothing."""
    known = (KnownClaim("claim_tours_freeze", "tours freeze", "Decision: use Thursday for the tours freeze"),)
    text = "No more debates on the shop freeze, please: the shop freeze is Thursday from now on."
    assert [claim.supersedes for claim in find([ClaimSource(9, Role.USER, text)], known=known)] in ([], [""])
