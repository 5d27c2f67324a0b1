"""Why a search answers what it does: the same from Python and VMQL, with and without the index, as of the moment."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from tests.embedders.test_store import page
from vmstore.core.mutation import Create
from vmstore.core.page import Modality, PageType, Role
from vmstore.namespace.results import to_json
from vmstore.search.blend import SCORES, answers
from vmstore.search.explanation import FLOOR, explained
from vmstore.search.naive import NaiveTexts
from vmstore.store.reads.search import everywhere

TEXTS = [
    "The museum closes at six.",
    "Is the museum open on Monday?",
    "It was closed when we came, and the postgresql talk fell out.",
    "retry_with_backoff raised in src/app/main.py at d8b066f0aa",
    "A necessary walk through the old town.",
]


def filled(embedder: Any = None) -> vmstore.Store:
    """A store whose session `s` says the texts."""
    store = vmstore.memory_store(embedder=embedder)
    for text in TEXTS:
        page(store, "s", text)
    if embedder is not None:
        store.index.embed()
    return store


@pytest.mark.parametrize("embedder", [None, vmstore.HashGrams(64)], ids=["words", "vectors"])
@pytest.mark.parametrize("score", [None, *SCORES])
def test_a_score_is_the_sum_of_its_features(score: str | None, embedder: Any) -> None:
    """What features add makes up each score, whichever is asked, with an embedder and without one."""
    hits = filled(embedder).session("s").search("when does the museum close", explain=True, score=score)
    assert hits and hits.explanation is not None and hits.explanation.score == (score or SCORES[0])
    assert (hits.explanation.vectors is None) == (embedder is None)
    for hit in hits:
        adds = [feature.adds for feature in hit.features.values()]
        assert math.isclose(sum(adds), hit.score, abs_tol=1e-4)
        assert adds == sorted(adds, key=abs, reverse=True)
        assert all(math.isclose(part.value * part.weight, part.adds, abs_tol=1e-4) for part in hit.features.values())
        if embedder is not None and score == SCORES[0]:
            assert "closeness" in hit.features and FLOOR in hit.features
    plain = filled(embedder).session("s").search("when does the museum close", score=score)
    assert plain.explanation is None and [hit.score for hit in plain] == [hit.score for hit in hits]


def test_each_way_a_word_is_found_has_its_name() -> None:
    """A stem, a beginning, a name as a whole and by its parts, a typo and a word beside the text are told apart."""
    trip = filled().session("s")

    def ways(query: str, best: str) -> set[tuple[str, str, str, str, int]]:
        (hit,) = (hit for hit in trip.search(query, explain=True) if hit.page == best)
        return {(word.word, word.how, word.term, word.page, word.away) for word in hit.words}

    assert ways("closing", "p2") == {("closing", "stem", "close", "p2", 0)}
    assert ways("postgres*", "p4") == {("postgres*", "prefix", "postgresql", "p4", 0)}
    assert ways("d8b066f", "p5") == {("d8b066f", "prefix", "d8b066f0aa", "p5", 0)}
    assert ways("neccessary", "p6") == {("neccessary", "typo", "necessari", "p6", 0)}
    assert ("retry_with_backoff", "whole", "retrywithbackoff", "p5", 0) in ways("retry_with_backoff", "p5")
    assert ("retri", "part", "retri", "p5", 0) in ways("retry_with_backoff", "p5")
    assert ways("is the museum closed on monday", "p4") == {
        ("closed", "stem", "close", "p4", 0),
        ("museum", "stem", "museum", "p3", -1),
        ("monday", "stem", "monday", "p3", -1),
    }


def test_what_must_and_must_not_be_there_is_told() -> None:
    """Phrases, exclusions and named speakers stand beside the words that were looked for."""
    about = filled().session("s").search('"the museum" open -monday', explain=True).explanation
    assert about is not None
    assert (about.required, about.excluded, about.speakers) == (['"the museum"'], ["monday"], [])
    assert [(word.word, word.how, word.texts) for word in about.words] == [("museum", "stem", 2), ("open", "stem", 1)]
    store = vmstore.memory_store()
    lines = (("Ann", "We walked by the river."), ("Bob", "The river was cold."))
    with store.session("s", create=True).batch() as batch:
        for who, line in lines:
            named_by = batch.cell(json.dumps({"actor": who}).encode())
            content = (Role.USER, 0, 0, batch.cell(line.encode()), len(line), 5)
            batch.add(Create(PageType.CLAIM, Modality.TEXT, *content, labels=named_by))
    named = store.session("s").search("Where did Ann walk?", explain=True)
    assert named.explanation is not None
    assert (named.explanation.speakers, [word.word for word in named.explanation.words]) == (["Ann"], ["walk"])
    assert "speaker" in named[0].features


def test_statistics_are_those_of_the_moment() -> None:
    """What is written later changes no word of an explanation."""
    store = filled()
    then = vmstore.Position(3)
    before = store.session("s").search("museum closed", then, explain=True)
    assert before.explanation is not None and before.explanation.texts == 2
    page(store, "s", "Another museum closed for ever.")
    after = store.session("s").search("museum closed", then, explain=True)
    assert (list(after), after.explanation) == (list(before), before.explanation)


def test_the_index_and_reading_every_text_explain_alike() -> None:
    """Without numpy the same is told of the same words and features."""
    store = filled()
    ns = store._ns
    with ns.asking():
        lanes = [(lane, position) for _, lane, position in everywhere(ns)]
        plain = NaiveTexts(ns.log, ns.views, lanes)
        for query in ("museum closing", "is the museum open neccessary", "retry_with_backoff OR walk", '"old town"'):
            items = []
            for texts in (ns.texts(lanes), plain):
                hits = answers(texts, lanes, query, 10)  # type: ignore[arg-type]
                items.append(explained(texts, query, hits, 10, None, None))
            assert items[0][0] == items[1][0]
            for first, other in zip(items[0][1], items[1][1], strict=True):
                assert first.words == other.words and first.features.keys() == other.features.keys()
                for name, feature in first.features.items():
                    assert feature.adds == pytest.approx(other.features[name].adds, abs=2e-6)


def test_vmql_tells_the_same_as_python() -> None:
    """SEARCH has features and words as columns, EXPLAIN draws them; both are what Python is told."""
    store = filled()
    hits = store.session("s").search("when does the museum close", explain=True)
    rows = store.query("SEARCH 'when does the museum close' page, features, words, features.near.adds", session="s")
    other_rows = rows.to_dicts()
    assert [row["page"] for row in other_rows] == [hit.page for hit in hits]
    for row, hit in zip(other_rows, hits, strict=True):
        assert row["features"] == to_json(hit)["features"] and row["words"] == to_json(hit)["words"]
        assert row["features.near.adds"] == hit.features["near"].adds
    inside = store.query("SEARCH 'museum' page, features WITHIN 200 TOKENS", session="s").to_dicts()
    assert [row["features"] is None for row in inside] == [row["page"] == "p4" for row in inside]
    for text in ("EXPLAIN SEARCH 'when does the museum close' LIMIT 2", "EXPLAIN ANALYZE SEARCH 'museum'"):
        steps = store.query(text, session="s").to_dicts()
        assert next(row["detail"] for row in steps if row["step"] == "score").startswith("score@5 over 5 texts of ")
        shown = [row["detail"] for row in steps if row["step"] == "hit"]
        assert shown[0].startswith(f"{hits[0].page}: ") and len(shown) == 2
    share = hits[0].features["near_exact"]
    drawn = f"near_exact {share.value:.3f} x {share.weight:.3f} = {share.adds:.3f}"
    steps = store.query("EXPLAIN SEARCH 'when does the museum close'", session="s").to_dicts()
    assert drawn in [row["detail"] for row in steps if row["step"] == "feature"]


class Watched:
    """An embedder that looks whether another thread can ask the store while it is asked."""

    name, dimension = "watched", 4

    def __init__(self) -> None:
        self.free: Callable[[], bool] = lambda: True
        self.asked: list[str] = []
        self.held: list[str] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Vectors, after a look."""
        self.asked += texts
        if not self.free():
            self.held += texts
        return [[1.0, 0.0, 0.0, float(len(text) % 3)] for text in texts]


def test_no_question_holds_the_views_while_it_waits_for_an_embedder() -> None:
    """Search, memory, VMQL, EXPLAIN and a live session's tools ask the embedder first, and hold the views after."""
    embedder = Watched()
    store = vmstore.memory_store(embedder=embedder)
    live = store.live_session("live", l0_tokens_max=4_000)
    live.user("The museum closes at six.")
    live.pack()
    live.assistant("Noted.")
    store.index.embed()

    def free() -> bool:
        items: list[bool] = []

        def look() -> None:
            with store._ns.views_lock:
                items.append(True)

        other = threading.Thread(target=look, daemon=True)
        other.start()
        other.join(1)
        return bool(items)

    embedder.free = free
    asked: list[Callable[[str], object]] = [
        live.search,
        store.search,
        live.memory.recall,
        live.memory.search_pages,
        live.memory.find_quote,
        lambda query: live.memory.remember_when(query, preset="this_year"),
        lambda query: list(store.query("SEARCH $q", q=query, session="live")),
        lambda query: list(store.query("SEARCH $q WITHIN 100 TOKENS", q=query, session="live")),
        lambda query: list(store.query("EXPLAIN SEARCH $q", q=query, session="live")),
        lambda query: list(store.query("EXPLAIN ANALYZE SEARCH $q features", q=query, session="live")),
    ]
    for number, ask in enumerate(asked):
        ask(f"museum closed {number}")
        assert embedder.asked[-1] == f"museum closed {number}"
    assert embedder.held == []
