"""RECALLS, METRICS, `worth` and what-ifs tell one and the same of what a session's recalls were worth."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from vmstore.core.decision import Cite
from vmstore.store.store import Store

TOPICS = ("the ferry to Naxos leaves at seven", "the invoice of March is unpaid", "postgres holds the orders")


def lived(budget: int = 4_000) -> Store:
    """A live session that recalls thrice: what it uses in the same turn, what it uses too late, and nothing."""
    store = vmstore.memory_store()
    live = store.live_session("live", l0_tokens_max=budget)
    for number in range(6):
        live.user(f"Note {number}: {TOPICS[number % 3]}. " + "And so it goes on. " * 20)
        live.pack()
        live.assistant("Noted.")
    for query in ("ferry to Naxos", "unpaid invoice"):
        live.user(f"What of the {query}?")
        live.pack()
        answer = live.memory.recall(query, tokens=400)
        if query == "ferry to Naxos":
            cite(live, page_with(answer, "Naxos"))
        live.assistant("So it is.")
    late = page_with(answer, "invoice")
    for _ in range(2):
        live.user("Go on.")
        live.pack()
        live.assistant("Yes.")
    cite(live, late)
    live.memory.recall("zzyzx", tokens=100)
    return store


def page_with(answer: vmstore.RecallAnswer, word: str) -> str:
    """The first page that was given and has a word."""
    return next(text.page for passage in answer.passages for text in passage.texts if word in text.text)


def cite(live: Any, page: str) -> None:
    """Logs that an answer cites a page."""
    last = int(live.pages()[-1].page[1:])
    with live.batch() as batch:
        batch.add(Cite(int(page[1:]), last))


def rows(store: Store, text: str = "RECALLS IN SESSION live") -> list[dict[str, Any]]:
    """What a query answers."""
    return store.query(text).to_dicts()


@pytest.fixture(scope="module")
def store() -> Store:
    """One such store, for who only reads."""
    return lived()


def test_each_page_that_was_given_has_a_row(store: Store) -> None:
    """A recall is told with its words, its pages by rank, what it cost, and which of them an answer used in time."""
    records = rows(store)
    asked = list(dict.fromkeys((row["position"], row["query"]) for row in records))
    assert [query for _, query in asked] == ["ferry to Naxos", "unpaid invoice", "zzyzx"]
    for position, _ in asked[:2]:
        own = [row for row in records if row["position"] == position]
        assert [row["rank"] for row in own] == list(range(1, len(own) + 1)) and own[0]["recaller"] == "recall"
        assert all(row["total"] > 0 and row["given"] == own[0]["given"] > 0 for row in own)
        assert all(row["tokens"] == store.session("live").page(row["page"]).tokens for row in own)
    used = [row for row in records if row["used"]]
    assert [(row["query"], row["rank"]) for row in used] == [("ferry to Naxos", 1)]
    assert used[0]["used_at"] > used[0]["position"]
    (nothing,) = [row for row in records if row["query"] == "zzyzx"]
    assert nothing["page"] is None and nothing["rank"] is None and nothing["total"] == 0


def test_every_door_tells_the_same(store: Store) -> None:
    """`memory.worth`, RECALLS, METRICS and the stats count the same recalls, pages, uses and tokens."""
    live = store.session("live")
    (worth,) = live.memory.worth()
    records = rows(store)
    fields = {row["position"]: row["given"] for row in records}
    counts = (len(fields), sum(row["page"] is not None for row in records), sum(row["used"] for row in records))
    assert (worth.searches, worth.pages, worth.used) == counts
    assert worth.tokens == sum(fields.values())
    names = ("searches", "searched_pages", "searched_used", "searched_used_share", "searched_tokens")
    metrics = {row["metric"]: row["value"] for row in rows(store, "METRICS metric, value IN SESSION live")}
    stats = live.stats()  # type: ignore[attr-defined]
    assert [metrics[name] for name in names] == [getattr(stats, name) for name in names]
    assert [metrics[name] for name in names] == [*counts, round(counts[2] / counts[1], 6), worth.tokens]
    (run,) = rows(store, "REPLAY SESSION live")
    assert [run[f"searched_{name}"] for name in ("pages", "used", "tokens")] == [*counts[1:], worth.tokens]


def test_recalls_are_as_of_the_moment() -> None:
    """A use that came later does not count before it, and a fork has the recalls it inherits."""
    store = lived()
    used = next(row for row in rows(store) if row["used"])
    before = rows(store, f"RECALLS IN SESSION live AS OF POSITION {used['used_at'] - 1}")
    assert before and not any(row["used"] for row in before)
    store.session("live").fork("fork", vmstore.Position(used["used_at"]))
    inherited = rows(store, "RECALLS IN SESSION fork")
    assert {row["query"] for row in inherited} == {"ferry to Naxos"} and any(row["used"] for row in inherited)
    assert rows(store, "RECALLS count(*) ACROSS SESSIONS")[0]["count(*)"] == len(rows(store))


def test_a_what_if_says_which_pages_would_have_been_there_anyway() -> None:
    """With room for everything all that recall gave is in the prompt already; with little of it less is."""
    store = lived(budget=1_000)
    recorded, wide = rows(store, "REPLAY SESSION live WITH budget = 100000")
    assert wide["searched_in_prompt"] == wide["searched_pages"] == recorded["searched_pages"]
    assert recorded["searched_in_prompt"] < recorded["searched_pages"]
    stats = store.session("live").stats()
    assert recorded["searched_in_prompt"] == stats.searched_in_prompt  # type: ignore[attr-defined]


def test_an_erased_question_is_told_no_more() -> None:
    """After the erasure of its session no recall says what was asked."""
    store = lived()
    vmstore.erase(store, session="live")
    assert {row["query"] for row in rows(store, "RECALLS ACROSS SESSIONS")} <= {"[erased]"}


@pytest.mark.parametrize(
    "text", ["RECALLS query, count(*) BY query", "RECALLS WHERE used = TRUE", "RECALLS SINCE TURN 7"]
)
def test_recalls_are_chosen_and_summed(store: Store, text: str) -> None:
    """Conditions, sums and moments hold of recalls as of other rows."""
    actual_rows = store.query(text, session="live").to_dicts()
    every = rows(store)
    if "BY" in text:
        assert {row["query"]: row["count(*)"] for row in actual_rows} == {
            query: sum(row["query"] == query for row in every) for query in {row["query"] for row in every}
        }
    elif "used" in text:
        assert actual_rows == [row for row in every if row["used"]]
    else:
        assert actual_rows == [row for row in every if row["turn"] > 7]


def test_recalls_have_the_scores_they_were_returned_with(store: Store) -> None:
    """Each page of an answer has the relevance that its caller was given, the best one 1; what found nothing none."""
    with lived() as made:
        live = made.live_session("live")
        hits = live.search("the ferry to Naxos")
        pages = live.memory.search_pages("unpaid invoice")
        asked = rows(
            made,
            "RECALLS recaller, page, score IN SESSION live "
            "WHERE recaller IN (search, search_pages) OR query = 'zzyzx' ORDER BY position, rank",
        )
    listed = {kind: [(row["page"], row["score"]) for row in asked if row["recaller"] == kind] for kind in KINDS}
    assert listed["search"] == [(hit.page, pytest.approx(hit.score, abs=1e-6)) for hit in hits]
    assert listed["search_pages"] == [(page.page_id, pytest.approx(page.relevance)) for page in pages.results]
    assert listed["recall"] == [(None, None)] and listed["search_pages"][0][1] == 1.0
    assert {
        row["score"] is not None for row in rows(store, "RECALLS score IN SESSION live WHERE query = 'ferry to Naxos'")
    } == {True}


KINDS = ("search", "recall", "search_pages")
