"""Closeness: which vectors the texts of a moment have, and how far each stands out for a question."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vmstore
from tests.embedders.test_store import Recorder, page
from vmstore.core.vectors import Quantisation, packed_vector
from vmstore.namespace.closeness import QuestionVector
from vmstore.relevance.closeness import CLOSENESS_MAX, NEIGHBOUR, SPREAD, Closeness, RowVectors, VectorMatrix
from vmstore.search.vectors import unpacked
from vmstore.views.branch import NEVER, Branch

TEXTS = ["the cat sat on the mat", "deploying on Friday", "postgres holds the orders", "deployed databases"]


def close(store: vmstore.Store, session: str, words: str, position: int = NEVER) -> tuple[Closeness | None, str | None]:
    """How close the texts of a session are to a question at a position."""
    asked = store._ns.closeness.question(words)
    with store._ns.asking():
        lane = Branch(store.admin.views, store._ns.key(session) or 0)
        return store._ns.closeness.of(asked, [(lane, position)], store._ns.texts([(lane, position)]))


def naive(store: vmstore.Store, texts: list[str], words: str) -> list[float]:
    """The cosine of each text and a question, as the embedder says it."""
    *vectors, question = store.embedder.embed([*texts, words])  # type: ignore[union-attr]
    return [sum(a * b for a, b in zip(vector, question, strict=True)) for vector in vectors]


def filled(texts: list[str] = TEXTS, dimension: int = 64) -> vmstore.Store:
    """A store whose session `s` says the texts, embedded by hashed grams."""
    store = vmstore.memory_store(embedder=vmstore.HashGrams(dimension))
    for text in texts:
        page(store, "s", text)
    store.index.embed(quantisation="float16")
    return store


def test_closeness_is_the_embedders() -> None:
    """Cosines are those of the embedder's own vectors, and the closest text is the one it says."""
    store = filled()
    closeness, note = close(store, "s", "deploy")
    assert closeness is not None and note is None
    expected = naive(store, TEXTS, "deploy")
    assert np.allclose(closeness.cosines(np.arange(4)), expected, atol=2e-3)
    order = sorted(range(4), key=lambda at: -expected[at])
    assert list(closeness.nearest(1)) == order[:1]
    values = closeness.of(np.arange(4))
    assert all(0 <= value <= CLOSENESS_MAX for value in values) and values.argmax() == order[0]
    assert np.allclose(values, standing_out(expected), atol=1e-2)


def standing_out(cosines: list[float]) -> list[float]:
    """How far each of the texts of one lane stands out with what its neighbours add."""
    own = [0.0, *(cosine - sum(cosines) / len(cosines) for cosine in cosines), 0.0]
    both = [own[at] + NEIGHBOUR * (max(own[at - 1], 0) + max(own[at + 1], 0)) for at in range(1, len(own) - 1)]
    mean = sum(both) / len(both)
    spread = math.sqrt(sum((value - mean) ** 2 for value in both) / len(both))
    return [min(max((value - mean) / spread / SPREAD, 0.0), CLOSENESS_MAX) for value in both]


def test_a_neighbour_counts_in_its_own_lane_alone() -> None:
    """What is said beside a close text is lifted in its own session alone, and never found by that alone."""
    store = vmstore.memory_store(embedder=vmstore.HashGrams(64))
    for session, text in (
        ("a", "cats sit on mats"),
        ("a", "deploying on Friday"),
        ("b", "horses eat hay"),
        ("b", "owls"),
    ):
        page(store, session, text)
    store.index.embed(quantisation="float16")
    with store._ns.asking():
        moments = [(Branch(store.admin.views, store._ns.key(session) or 0), NEVER) for session in "ab"]
        asked = store._ns.closeness.question("deploying on Friday")
        closeness, _ = store._ns.closeness.of(asked, moments, store._ns.texts(moments))
    assert closeness is not None
    apart = RowVectors(VectorMatrix(closeness.vectors._matrix.plain().numbers), np.arange(4), np.arange(4), 4, "m")
    assert list(closeness.nearest(1)) == [1]
    assert list(closeness.vectors.joined) == [True, False, True]
    assert list(apart.joined) == [True, True, True]
    assert 2 not in closeness.nearest(4) and 0 not in closeness.nearest(4)


@given(
    st.lists(st.lists(st.floats(-1, 1, width=16), min_size=3, max_size=3), min_size=1, max_size=20),
    st.data(),
)
def test_a_row_is_as_close_as_its_closest_chunk(vectors: list[list[float]], data: st.DataObject) -> None:
    """Of a row with several vectors the best counts, one with none is at 0, and `nearest` is sorted."""
    rows = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(vectors), max_size=len(vectors))), np.int64)
    matrix = np.array(vectors, np.float32)
    question = [0.5, -0.25, 1.0]
    closeness = RowVectors(VectorMatrix(matrix), np.arange(len(matrix)), rows, 10, "m").to(question)
    for row in range(10):
        own = [float(np.dot(vector, question)) for vector, of in zip(vectors, rows, strict=True) if of == row]
        assert math.isclose(closeness.cosines(np.array([row]))[0], max(own, default=0.0), abs_tol=1e-4)
    nearest = list(closeness.nearest(3))
    own = [float(closeness.cosines(np.array([row]))[0]) for row in sorted(set(rows.tolist()))]
    near = {row for row, cosine in zip(sorted(set(rows.tolist())), own, strict=True) if cosine > np.mean(own) + 1e-6}
    values = {row: float(closeness.of(np.array([row]))[0]) for row in near}
    actual = [values.get(row, 0.0) for row in nearest]
    assert np.allclose(actual, sorted((v for v in values.values() if v > 0), reverse=True)[:3], atol=1e-5)


@pytest.mark.parametrize("form", Quantisation)
def test_vectors_are_unpacked_as_they_were_packed(form: Quantisation) -> None:
    """What was packed for the log comes back as numbers, vector by vector."""
    rows = [[0.5, -1.0, 0.25], [0.0, 0.0, 0.0], [1.0, 0.125, -0.5]]
    packed = b"".join(packed_vector(vector, form) for vector in rows)
    assert np.allclose(unpacked(packed, form, 3).plain().numbers, rows, atol=0.005)


def test_products_are_those_of_the_floats() -> None:
    """Products made of bytes, some rows at a time, are those of the floats they stand for, of all rows or some."""
    random = np.random.default_rng(0)
    numbers = random.integers(-127, 128, (3_000, 5)).astype(np.int8)
    scales = random.random(3_000).astype(np.float32)
    question = random.random(5).astype(np.float32)
    packed, some = VectorMatrix(numbers, scales), np.array([2_999, 0, 1_024, 7])
    expected = (numbers * scales[:, None]) @ question
    assert np.allclose(packed.dot(question), expected, atol=1e-2)
    assert np.allclose(packed.dot(question, some), expected[some], atol=1e-2)
    both = VectorMatrix(numbers[:0], scales[:0]).beside([packed, packed.plain()])
    assert both.scales is None and np.allclose(both.dot(question), [*expected, *expected], atol=1e-2)
    assert len(packed.beside([packed])) == 6_000 and packed.beside([packed]).scales is not None


def test_vectors_of_both_forms_are_compared() -> None:
    """Where some texts were embedded as int8 and some as float16 all are compared."""
    store = filled()
    page(store, "s", "deployment plans")
    store.index.embed(quantisation="int8")
    closeness, _ = close(store, "s", "deployment plans")
    assert closeness is not None and list(closeness.nearest(1)) == [4] and closeness.vectors.embedded == 5


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(["say", "embed", "update", "fork"]), max_size=8))
def test_a_past_moment_is_not_moved(deeds: list[str]) -> None:
    """How close texts are as of a position is the same whatever is said, embedded, changed or forked later."""
    store = filled()
    end = store.session("s").info().position
    before = close(store, "s", "deploy", end)[0]
    for deed in deeds:
        if deed == "say":
            page(store, "s", "deploy deploy deploy")
        elif deed == "embed":
            store.index.embed()
        elif deed == "fork" and not [session for session in store.sessions() if session.session == "f"]:
            store.session("s").fork("f", position=end)
    after = close(store, "s", "deploy", end)[0]
    assert before is not None and after is not None
    assert np.array_equal(before.of(np.arange(9)), after.of(np.arange(9)))


def test_a_fork_sees_what_it_saw() -> None:
    """A fork is as close as its past was, has its own vectors besides, and its parent has none of those."""
    store = filled()
    store.session("s").fork("f", position=store.session("s").info().position)
    page(store, "f", "deploying deployments")
    page(store, "s", "deploy twice")
    closeness, note = close(store, "f", "deploy")
    assert closeness is not None and note == "4 of 5 texts have a vector of hash-4grams@1/64"
    store.index.embed()
    closeness, note = close(store, "f", "deploy")
    assert note is None and closeness is not None and list(closeness.nearest(1)) == [4]
    mine = close(store, "s", "deploy")[0]
    assert mine is not None and mine.vectors.embedded == 5


def test_what_was_erased_is_nowhere_at_hand() -> None:
    """After an erasure no vector of the text is in memory, and the rest is answered as before."""
    store = filled()
    assert close(store, "s", "postgres orders")[0] is not None
    vectors = store._ns.closeness._table.of("hash-4grams@1/64", 64, 10**9, 0)  # type: ignore[union-attr]
    assert len(vectors.matrix) == 4
    store.trust.erase(page="s/p4")
    assert store._ns.closeness._table is None
    closeness, _ = close(store, "s", "postgres orders")
    assert closeness is not None and closeness.vectors.embedded == closeness.vectors.count == 3


def test_new_vectors_are_taken_in() -> None:
    """Vectors that come later, of another session too, are compared with the next question."""
    store = filled()
    assert close(store, "s", "deploy")[0] is not None
    page(store, "s", "deploy it")
    page(store, "other", "deploy that")
    store.index.embed()
    closeness, _ = close(store, "s", "deploy it")
    other, _ = close(store, "other", "deploy that")
    assert closeness is not None and list(closeness.nearest(1)) == [4]
    assert other is not None and other.vectors.embedded == 1 and list(other.nearest(1)) == [], (
        "alone it stands out of nothing"
    )


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda texts, value: 1 / 0, "failed: ZeroDivisionError"),
        (lambda texts, value: [[math.nan] * 8], "not finite"),
        (lambda texts, value: [], "0 vectors for 1"),
        (lambda texts, value: [[1.0] * 9], "9 numbers where 8"),
    ],
)
def test_an_embedder_that_fails_is_told_and_left_alone(wrong: Any, text: str) -> None:
    """An embedder that fails at a question gives no closeness and a note, and is not asked again at once."""
    embedder = Recorder()
    store = vmstore.memory_store(embedder=embedder)
    page(store, "s", TEXTS[0])
    store.index.embed()
    embedder.wrong, before = wrong, embedder.calls
    for _ in range(3):
        closeness, note = close(store, "s", "cat")
        assert closeness is None and note is not None and text in note and note.endswith("answered by words alone")
    assert embedder.calls == before + 1
    embedder.wrong = None
    store._ns.closeness._silent.clear()
    assert close(store, "s", "cat")[1] is None


def test_another_embedder_is_asked_though_one_failed() -> None:
    """What one embedder did at a question is not held against another of the same name."""
    broken = Recorder()
    store = vmstore.memory_store(embedder=broken)
    page(store, "s", TEXTS[0])
    store.index.embed()
    broken.wrong = lambda texts, value: 1 / 0
    assert close(store, "s", "cat")[0] is None
    store.embedder = Recorder()
    assert close(store, "s", "cat")[1] is None


def test_a_model_that_changed_its_dimension_is_told() -> None:
    """Where the vectors of a model are of another dimension than its answer, both are told."""
    store = vmstore.memory_store(embedder=Recorder())
    page(store, "s", TEXTS[0])
    store.index.embed()
    store.embedder = vmstore.FunctionEmbedder(Recorder().name, lambda texts: [[1.0] * 9 for _ in texts])
    closeness, note = close(store, "s", "cat")
    assert closeness is None and note is not None and "9 numbers" in note and "have 8" in note


def test_a_question_is_asked_once_and_without_its_secrets() -> None:
    """The embedder is asked about a question once, and never about a secret in it."""
    embedder = Recorder()
    store = vmstore.memory_store(embedder=embedder)
    secret = "AKIAQ3EGRWVZ5XKJ" + "2M4T"
    page(store, "s", TEXTS[0])
    for _ in range(2):
        assert close(store, "s", f"who has {secret}?")[1] == (
            "no text here has a vector of recorder yet (`vmstore embed`): answered by words alone"
        )
    assert embedder.asked == ["who has [secret]?"]


def test_without_an_embedder_nothing_is_asked() -> None:
    """A store without an embedder has no closeness and no note, and loads nothing for it."""
    store = vmstore.memory_store()
    page(store, "s", TEXTS[0])
    assert store._ns.closeness.question("cat") is None
    assert close(store, "s", "cat") == (None, None)
    assert store._ns.closeness.of(QuestionVector(None, "m", "why"), [], store._ns.texts([])) == (None, "why")
