"""Searching by words and closeness together, and by reciprocal rank fusion."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest

import vmstore
from tests.embedders.test_store import Recorder, page
from vmstore.core.mutation import Annotate
from vmstore.errors import InputError
from vmstore.relevance import rrf
from vmstore.relevance.closeness import WEIGHT
from vmstore.search.blend import SCORES

TEXTS = ["the cat sat on the mat", "we ship on Friday", "postgres holds the orders", "the release train leaves", "tea"]
MEANINGS = {
    "animals": ("cat", "feline", "pet"),
    "shipping": ("ship", "release", "deploy", "rollout"),
    "storage": ("postgres", "database", "orders"),
    "drinks": ("tea", "beverage"),
}


def meaning(texts: list[str]) -> list[list[float]]:
    """A vector of four meanings, by a table of words: an embedder whose judgement a test can write down."""
    return [[1.0 * any(word in text.lower() for word in words) for words in MEANINGS.values()] for text in texts]


EMBEDDER = vmstore.FunctionEmbedder("meanings@1", meaning, 4)


def filled(embedder: object = EMBEDDER, embed: bool = True) -> vmstore.Store:
    """A store whose session `s` says the texts."""
    store = vmstore.memory_store(embedder=embedder)
    for text in TEXTS:
        page(store, "s", text)
    if embed:
        store.index.embed()
    return store


def pages(store: vmstore.Store, query: str, **more: Any) -> list[str]:
    """The pages that a search finds, best first."""
    return [hit.page for hit in store.session("s").search(query, **more)]


def test_closeness_finds_what_no_word_does() -> None:
    """A text that says the same in other words is found with an embedder, and without one it is not."""
    store = filled()
    assert pages(store, "deploy") == ["p3", "p5"]
    assert [hit.page for hit in store.search("deploy")] == ["p3", "p5"]
    assert [row[0] for row in store.query("SEARCH 'deploy'", session="s")] == ["p3", "p5"]
    store.embedder = None
    assert pages(store, "deploy") == []


def test_words_and_closeness_add_up() -> None:
    """A hit's score is its share of the best BM25 and its closeness times its weight."""
    store = filled()
    hits = {hit.page: hit.score for hit in store.session("s").search("release")}
    assert list(hits) == ["p5", "p3"] and math.isclose(hits["p5"] - hits["p3"], 1.0, abs_tol=1e-6)
    cosines = [0.0, 1.0, 0.0, 1.0, 0.0]
    mean = sum(cosines) / 5
    away = (1 - mean) / math.sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / 5)
    assert math.isclose(hits["p3"], WEIGHT * away / 6, abs_tol=0.01)


def test_without_an_embedder_nothing_changes() -> None:
    """Scores, order and notes of a store whose texts are embedded are those of one without, where none is at hand."""
    plain, embedded = filled(None, embed=False), filled()
    embedded.embedder = None
    for query in ("cat", "the", "orders on friday", "nothing"):
        first, other = (store.session("s").search(query) for store in (plain, embedded))
        assert [hit.page for hit in first] == [hit.page for hit in other] and first.notes == other.notes
        assert all(math.isclose(a.score, b.score, abs_tol=1e-4) for a, b in zip(first, other, strict=True))


def test_a_question_without_a_word_is_answered_by_closeness() -> None:
    """What has no word an embedder may still place; without one nothing is found."""
    by_sign = vmstore.FunctionEmbedder(
        "signs", lambda texts: [[1.0, 0.0] if text == "?!" or "cat" in text else [0.0, 1.0] for text in texts]
    )
    store = filled(by_sign)
    assert pages(store, "?!") == ["p2"]
    store.embedder = None
    assert pages(store, "?!") == []


def test_how_much_is_embedded_is_told() -> None:
    """An answer says how many of the texts have vectors while some have none, and finds the others by words."""
    store = filled(embed=False)
    hits = store.session("s").search("cat")
    assert hits.notes == ["no text here has a vector of meanings@1 yet (`vmstore embed`): answered by words alone"]
    store.index.embed(limit=2)
    hits = store.session("s").search("postgres deploy")
    assert [hit.page for hit in hits] == ["p4", "p3"]
    assert hits.notes == ["2 of 5 texts have a vector of meanings@1"]
    store.index.embed()
    assert store.session("s").search("cat").notes == []


def test_the_tools_of_a_memory_recall_by_closeness() -> None:
    """What a session's memory recalls for a prompt is found by closeness too, with its note."""
    store = filled(embed=False)
    store.index.embed(limit=4)
    answer = store.session("s").memory.recall("rollout", tokens=200)
    shown = {text.page for passage in answer.passages for text in passage.texts}
    assert {"p3", "p5"} <= shown and answer.note == "4 of 5 texts have a vector of meanings@1"
    store.embedder = None
    assert store.session("s").memory.recall("rollout", tokens=200).passages == []


def test_explain_says_how_much_is_embedded() -> None:
    """EXPLAIN of a search says how many texts have vectors, or why it is answered by words."""
    store = filled(embed=False)
    text = "EXPLAIN SEARCH 'cat'"

    def steps() -> list[str]:
        return [row["detail"] for row in store.query(text, session="s").to_dicts() if row["step"] == "vectors"]

    assert steps() == ["no text here has a vector of meanings@1 yet (`vmstore embed`): answered by words alone"]
    store.index.embed()
    assert steps() == ["5 of 5 texts have a vector of meanings@1"]
    store.embedder = None
    assert steps() == []


def test_a_failing_embedder_leaves_the_words() -> None:
    """A search whose embedder fails or hangs is answered by words, and says so."""
    embedder = Recorder()
    store = filled(embedder)
    embedder.wrong = lambda texts, value: 1 / 0
    hits = store.session("s").search("postgres")
    assert [hit.page for hit in hits] == ["p4"] and "ZeroDivisionError" in hits.notes[0]
    assert [row[0] for row in store.query("SEARCH 'postgres'", session="s")] == ["p4"]


def test_nobody_waits_for_a_slow_embedder_but_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """While an embedder thinks about a question, other threads ask and write."""
    gate, begun = threading.Event(), threading.Event()

    def slow(texts: Any, actual: Any) -> Any:
        begun.set()
        gate.wait(20)
        return actual

    embedder = Recorder()
    store = filled(embedder)
    embedder.wrong = slow
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(store.session("s").search("cat")))
    thread.start()
    assert begun.wait(10)
    page(store, "s", "written meanwhile")
    assert len(list(store.query("PAGES", session="s"))) == 6
    gate.set()
    thread.join(10)
    assert answers and answers[0][0].page == "p2"


def test_a_past_moment_is_searched_as_it_was() -> None:
    """A search as of a position has the vectors logged by then, whatever is embedded later."""
    store = filled(embed=False)
    end = store.session("s").info().position
    store.index.embed()
    assert pages(store, "deploy", position=end) == []
    fork = store.session("s").fork("f", position=end)
    assert fork.search("deploy") == []
    store.index.embed("f", inherited=True)
    assert [hit.page for hit in fork.search("deploy")] == ["p3", "p5"]


def test_fusion_by_name() -> None:
    """`rrf@1` gives the fused score of the rankings by tags, words and closeness, with its filters."""
    store = filled()
    with store.session("s").batch() as batch:
        batch.add(Annotate(3, tags=batch.cell(b'["release-train"]')))
    hits = store.session("s").search("release train", score="rrf@1")
    assert [hit.page for hit in hits] == ["p3", "p5"]
    gains = {hit.page: hit.score for hit in hits}
    assert math.isclose(gains["p5"], rrf.WORDS / 61 + rrf.EMBEDDING / 62, abs_tol=1e-6)
    hub = 1 - (1 / 5 - rrf.HUB_SHARE) / (1 - rrf.HUB_SHARE) * (1 - rrf.HUB_LEAST)
    tagged = (rrf.TAGS / 61 + rrf.EMBEDDING / 61) * hub * rrf.RESOLUTION
    assert math.isclose(gains["p3"], tagged, abs_tol=1e-6), "a claim bears the tag, and one of five texts is many"
    store.embedder = None
    assert pages(store, "postgres", score="rrf@1") == ["p4"]
    assert SCORES == ("score@5", "score@4", "score@3", "score@2", "score@1", "rrf@1")
    with pytest.raises(InputError, match=r"score@5, score@4, score@3, score@2, score@1, rrf@1"):
        pages(store, "cat", score="magic@9")


def test_an_erased_text_is_not_close_to_anything() -> None:
    """After an erasure neither words nor closeness find the text."""
    store = filled()
    assert pages(store, "feline") == ["p2"]
    store.trust.erase(page="s/p2")
    assert pages(store, "feline") == [] and pages(store, "cat") == []
