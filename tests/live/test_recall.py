"""Recall: before a message is answered, the pages that it needs come back from wherever they went."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.decision import Use
from vmstore.core.mutation import Evict, Prefetch, Reference
from vmstore.live.runtime import Runtime
from vmstore.store.live.live_session import Live
from vmstore.testing.live_laws import mutations
from vmstore.vm.claims.claims import KnownClaim

BUDGET = 4_000


def talk(store: vmstore.Store, first: list[tuple[str, str]], turns: int = 40, **settings: object) -> Live:
    """A session whose beginning has left the prompt."""
    session = store.live_session("talk", l0_tokens_max=BUDGET, system="You help.", **settings)
    for user, assistant in [*first, *[(f"Station {n}? " + "tracks " * 60, "platform " * 80) for n in range(turns)]]:
        session.user(user)
        session.pack()
        session.assistant(assistant)
    for page in session.pages(tier="L0"):
        if page.type == "transcript" and page.role != "system" and page.created_turn <= len(first):
            session.evict(page.page)  # a batch leaves what stands first where it is: it is cheap to keep
    return session


def shown(session: Live, question: str) -> str:
    """What the model is shown when it is asked."""
    session.user(question)
    return session.pack().text


def test_a_page_of_long_ago_comes_back() -> None:
    """What was said before hundreds of other pages comes back by other forms of its words."""
    with vmstore.memory_store() as store:
        session = talk(store, [("The sessions expire after nine hours.", "Noted.")], turns=300)
        assert "nine hours" not in session.pack().text
        assert "nine hours" in shown(session, "When does a session expire?")


def test_a_page_that_was_pinned_at_first_is_found() -> None:
    """A page that was pinned when it came is found by a search like any other once it was let go and left."""
    with vmstore.memory_store() as store:
        session = store.live_session("talk", l0_tokens_max=BUDGET, system="You help.")
        page = session.claim("The sessions expire after nine hours.", name="expiry")
        session.pin(page)
        talk(store, [])
        assert "nine hours" in session.pack().text
        session.unpin(page)
        session.evict(page)
        assert "nine hours" not in session.pack().text
        assert session.lineage.position_of(page) in dict(session._ranked("When does a session expire?", 5)[0])


def test_what_a_page_said_before_weighs_nothing() -> None:
    """A file that says something else now is found by that, with the score it has in a fresh process."""
    with vmstore.memory_store() as store:
        session = store.live_session("talk", l0_tokens_max=BUDGET)
        page = session.attach(b"The zebra escaped. " * 90, "text/plain", name="notes.txt")
        session.user("I saw a zebra and a giraffe.")
        assert next(item for item, _ in session._ranked("zebra escaped", 5)[0]) == session.lineage.position_of(page)
        session.update(page, "The giraffe slept.")
        lived = session._ranked("zebra", 5)[0], session._ranked("giraffe", 5)[0]
        store._ns.live.clear()
        assert lived == (session._ranked("zebra", 5)[0], session._ranked("giraffe", 5)[0])
        assert session.lineage.position_of(page) in dict(lived[1]) and session.lineage.position_of(page) not in dict(
            lived[0]
        )


def test_an_agreement_comes_with_what_it_agrees_to() -> None:
    """A proposal that is asked for brings the answer that settled it."""
    with vmstore.memory_store() as store:
        first = [("Where do sessions go?", "Dragonfly would keep the sessions well."), ("hm, ok then", "Fine.")]
        text = shown(talk(store, first), "Remind me where the sessions are kept.")
        assert "Dragonfly would keep" in text and "hm, ok then" in text


def test_what_is_cold_makes_room() -> None:
    """A wish takes the place of pages nothing holds, within its share, and the prompt stays within the budget."""
    with vmstore.memory_store() as store:
        session = talk(store, [("The sessions expire after nine hours.", "Noted.")])
        before = mutations(session)[-1][0]
        packed = shown(session, "When does a session expire?")
        value = [mutation for position, mutation in mutations(session) if position > before]
        assert "nine hours" in packed and any(isinstance(item, Prefetch) for item in value)
        assert session.pack().tokens <= BUDGET


def test_without_a_share_nothing_leaves_for_a_wish() -> None:
    """Where the share is none, as in older logs, no page gives way for one that is wished for."""
    with vmstore.memory_store() as store:
        session = talk(store, [("The sessions expire after nine hours.", "Noted.")], recall_share=0.0)
        before = mutations(session)[-1][0]
        session.user("When does a session expire?")
        value = [mutation for position, mutation in mutations(session) if position > before]
        fetched = [item for item in value if isinstance(item, Prefetch)]
        gone = [item for item in value if isinstance(item, Evict) and item.why is not None and item.why.winner]
        assert not gone and all(
            item.why.used + item.tokens <= session.look(lambda run: run.state.high) for item in fetched
        )


def test_a_wish_says_why() -> None:
    """The reference that wishes for a page has the words it was found by, and its score."""
    with vmstore.memory_store() as store:
        session = talk(store, [("The sessions expire after nine hours.", "Noted.")])
        session.user("When does a session expire?")
        wishes = [
            mutation
            for _, mutation in mutations(session)
            if isinstance(mutation, Reference) and mutation.evidence is not None
        ]
        assert wishes


def test_what_holds_comes_and_what_was_replaced_does_not() -> None:
    """Of a decision and the one before it only that which holds is brought back as a claim."""
    with vmstore.memory_store() as store:
        first = [
            ("Let's use Redis for the session store.", "Noted."),
            ("Actually, let's use Garnet instead for the session store.", "Changed."),
        ]
        text = shown(talk(store, first), "What do we use for the session store?")
        assert "Decision: use Garnet" in text and "Decision: use Redis" not in text


def test_the_past_comes_when_it_is_asked_for() -> None:
    """Who asks what held before is shown the message that said it, beside the one that changed it."""
    with vmstore.memory_store() as store:
        first = [
            ("Let's use Redis for the session store.", "Noted."),
            ("Actually, let's use Garnet instead for the session store, since Redis lost keys.", "Changed."),
        ]
        text = shown(talk(store, first), "What did we use for the session store before, and why did that change?")
        assert "use Redis for" in text and "Redis lost keys" in text


def test_the_memorys_own_answers_are_not_found() -> None:
    """What a search answered is no page anybody looks for."""
    with vmstore.memory_store() as store:
        session = talk(store, [("The sessions expire after nine hours.", "Noted.")], turns=3)
        asked = {
            "id": "c1",
            "type": "function",
            "function": {"name": "search_pages", "arguments": '{"query": "zebra"}'},
        }
        session.assistant({"role": "assistant", "content": None, "tool_calls": [asked]})
        session.tool("c1", '{"results": [{"hint": "zebra"}]}')
        session.user("zebra?")
        ranked = session.look(lambda run: _ranked(run))
        assert all("results" not in session.content(item).decode() for item in ranked)


def _ranked(runtime: object) -> list[int]:
    run = runtime
    run.index.follow(run.state, run.spoken, run.forms)  # type: ignore[attr-defined]
    return [row.page for row in run.index.ranked({"zebra": 1.0}, lambda page: True)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_a_share(share: float) -> None:
    """A share outside 0 to 1 is refused by name."""
    with vmstore.memory_store() as store, refused("not-a-setting", vmstore.InputError):
        store.live_session("bad", l0_tokens_max=BUDGET, recall_share=share)


DECIDED = ("We'll go with Kafka for the billing queue.", "Noted.")
TAKEN_BACK = ("Kafka never worked out for the billing queue. Everything goes over NATS, we want peace.", "Right.")


def test_a_decision_does_not_stand_without_what_was_said_against_it_later() -> None:
    """Where the finder missed a change, the claim gives way to the messages: what was decided, and what came later."""
    with vmstore.memory_store() as store:
        text = shown(talk(store, [DECIDED, *[("Fine weather.", "Yes.")] * 9, TAKEN_BACK]), "What is the billing queue?")
        assert "over NATS" in text and "We'll go with Kafka" in text
        assert text.index("We'll go with Kafka") < text.index("over NATS")
        assert "Decision: use Kafka" not in text


def test_what_was_superseded_brings_its_successor() -> None:
    """A message whose decision was taken back comes with the claim that holds now."""
    with vmstore.memory_store() as store:
        session = talk(store, [DECIDED, ("Actually, let's use NATS instead for the billing queue.", "Changed.")])
        pages = session.look(lambda run: [page for page in run.spoken.pages if run.spoken.successors(page)])
        newer = session.look(lambda run: {successor for page in pages for successor in run.spoken.successors(page)})
        contents = [session.content(f"p{page}") for page in pages]
        assert DECIDED[0].encode() in contents
        assert [session.content(f"p{item}") for item in newer] == [b"Decision: use NATS for the billing queue"]


def test_a_search_answers_with_what_is_not_seen_yet() -> None:
    """What stands in the prompt comes after what does not, so that a model that searches reads something new."""
    with vmstore.memory_store() as store:
        session = talk(store, [("The sessions expire after nine hours.", "Noted.")])
        session.user("When do sessions expire? I mean how sessions expire.")
        first, *_ = (page for page, _ in session._ranked("sessions expire", 5)[0])
        here = session.look(lambda run: [page for page, item in run.state.here.items() if not item.level])
        pages = [page for page, _ in session._ranked("sessions expire nine hours", 10)[0]]
        seen = [page in here for page in pages]
        assert first and seen == sorted(seen) and True in seen


def test_words_that_all_have_find_nothing() -> None:
    """A question in words that every message has, and in none of its own, wishes for no page."""
    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=BUDGET)
        for number in range(80):
            session.user(f"What do the files of step {number} say?")
            session.pack()
            session.assistant("platform " * 60)
        wishes = [
            mutation
            for _, mutation in mutations(session)
            if isinstance(mutation, Reference) and mutation.use == Use.SIGNAL
        ]
        assert not wishes


def test_a_task_is_not_wished_for() -> None:
    """Of a decision and a task in the same words only the decision comes back."""
    with vmstore.memory_store() as store:
        first = [("List the open tickets of the archive.", "Done."), ("The archive closes at nine.", "Noted.")]
        text = shown(talk(store, first), "When does the archive close?")
        assert "at nine" in text and "open tickets" not in text


def test_a_long_page_comes_back_for_what_it_has_of_the_question() -> None:
    """A page that is long beside what it has of the question stays out, and a short one that says as much comes."""
    long = "The sessions expire after nine hours. " + "Nobody has looked at any clock of the hall since. " * 60
    for expected, comes in ((long, False), ("The sessions expire after nine hours.", True)):
        with vmstore.memory_store() as store:
            session = talk(store, [(expected, "Noted.")])
            assert "nine hours" not in session.pack().text
            assert ("nine hours" in shown(session, "When does a session expire, at noon?")) is comes


def test_a_summary_that_came_back_for_nothing_is_not_wished_for_again() -> None:
    """The summary of a segment comes back with a message once, and again only where it was used meanwhile."""
    with vmstore.memory_store() as store:
        session = store.live_session("talk", l0_tokens_max=BUDGET)
        session.user("Which train goes to the coast?")
        session.pack()
        session.assistant("The one at noon, from the last platform.")
        session.segment("The coast", summary="The coast: nothing was booked.")
        summary = "summary_1"
        wished = []
        for used in (False, False, True):
            if used:
                session.page_fault(summary)
            if summary in session.pack().pages:
                session.evict(summary)
            session.user("Whatever.")
            wished.append(summary in session.pack().pages)
            session.assistant("Yes.")
        assert wished == [True, False, True]


def test_a_question_in_other_words_finds_what_was_decided_of_its_thing() -> None:
    """It shares with the decision the name of the thing alone, which many messages have, and the rest with others."""
    with vmstore.memory_store() as store:
        live = store.live_session("s", l0_tokens_max=1_500)
        texts = ["Let's take Borg for the forum backup."]
        numbers = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
        texts += [f"restic saves copies of the ledger{number} every night" for number in numbers]
        texts += [f"Count the errors of the forum on line {n}." for n in range(40)]
        for text in texts:
            live.user(text)
            live.pack()
            live.assistant("Noted. " + "platform " * 30)
        live.user("Who saves copies of the forum every night?")
        assert "Borg" in str(live.pack().request)


def test_a_claim_gives_way_to_a_statement_that_no_claim_was_found_in() -> None:
    """A newer statement of the same thing takes a claim's place in the prompt, and one that names another does not."""

    def first_alone(turn: list[dict[str, object]], before: object) -> list[dict[str, object]]:
        postgres = [record for record in turn if "Postgres" in str(record["text"])]
        return [
            {"text": "Decision: use Postgres for the billing database", "name": "claim_billing_database",
             "topic": "billing database", "sources": [text["page"]]}
            for text in postgres
        ]  # fmt: skip

    for thing, gone in (("the billing", True), ("the harbour", False)):
        with vmstore.memory_store() as store:
            rows = [("Let's use Postgres for the billing database.", "Noted.")]
            rows += [(f"We prefer Heron for {thing}.", "Right.")]
            text = shown(talk(store, rows, finder=first_alone), "Where does billing keep its rows?")
            assert ("prefer Heron" in text) == gone and ("Decision: use Postgres" not in text) == gone


def test_the_models_search_forgives_a_typo_and_finds_the_answer_to_a_question() -> None:
    """`search_pages` ranks as every search does: by other spellings, and by what was asked right before."""
    with vmstore.memory_store() as store:
        first = [("Where shall the Wanderers camp this year?", "Behind the old quarry."), ("Fine.", "Yes.")]
        session = talk(store, first)
        answer = next(page.page for page in session.pages() if session.content(page.page) == b"Behind the old quarry.")
        texts = [f"p{page}" for page, _ in session._ranked("Where do the Wandrers camp?", 3)[0]]
        assert answer in texts
        pages = session.memory.search_pages("Where do the Wandrers camp?", limit=3)
        assert texts[0] == pages.results[0].page_id


def test_a_search_leaves_out_what_was_replaced() -> None:
    """The model's search finds the claim that holds, and what it replaced where the past is asked for."""
    with vmstore.memory_store() as store:
        first = [
            ("Let's use Redis for the session store.", "Noted."),
            ("Actually, let's use Garnet instead for the session store, since Redis lost keys.", "Changed."),
        ]
        session = talk(store, first)
        claims = {session.content(page.page).decode(): page.page for page in session.pages(type="claim")}
        old, new = (next(page for text, page in claims.items() if word in text) for word in ("use Redis", "use Garnet"))
        for query, holds in (("session store", True), ("Why was the session store changed?", False)):
            texts = [f"p{page}" for page, _ in session._ranked(query, 10)[0]]
            assert old not in texts and (new in texts or not holds)


def test_the_topic_of_a_page_is_found_without_a_look_through_all_claims() -> None:
    """What a page is about is known by the claims that were found in it, however many others hold."""

    class Unread(dict[str, KnownClaim]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("all claims are looked through")

    with vmstore.memory_store() as store:
        session = store.live_session("talk", l0_tokens_max=BUDGET)
        session.user("Let's use Redis for the session store.")
        session.user("Let's use Kafka for the billing queue.")
        session.user("Fine weather.")

        def asked(run: Runtime) -> list[tuple[str, list[int], bool]]:
            spoken = run.spoken
            spoken.claims = Unread(spoken.claims)
            return [(spoken.topic(page), spoken.claims_of(page), spoken.claimed(page)) for page in spoken.pages]

        value = session.look(asked)
        claims = [page.position for page in session.pages(type="claim")]
    assert value == [
        ("session store", claims[:1], True), ("session store", [], False),
        ("billing queue", claims[1:], True), ("billing queue", [], False), ("", [], False),
    ]  # fmt: skip
