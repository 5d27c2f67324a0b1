"""The score: what its features say, and that it is of the moment and the same with numpy and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vmstore
from vmstore.core.mutation import Create, Message
from vmstore.core.page import Modality, PageType, Role, Slot
from vmstore.errors import InputError
from vmstore.relevance import measures, naive, score, weights
from vmstore.relevance.query import parse_query
from vmstore.search.naive import NaiveTexts
from vmstore.search.rank import ranked
from vmstore.store.session import Session

DAY_US = 86_400_000_000
AT = 1_700_000_000_000_000
WORDS = (
    "kyoto",
    "nara",
    "trains",
    "the",
    "snake_case",
    "painting",
    "Ann",
    "I",
    "7",
    "yesterday",
    "kyoot",
    "?",
    "error",
)
lines = st.lists(
    st.tuples(
        st.sampled_from(("user", "assistant")),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join),
        st.sampled_from((60_000_000, 6 * 3_600_000_000, DAY_US)),
        st.sampled_from((None, "Ann", "Ben")),
    ),
    min_size=1,
    max_size=14,
)
questions = st.lists(st.sampled_from((*WORDS, "when", "how many", "in November 2023")), min_size=1, max_size=6).map(
    " ".join
)


def talk(store: vmstore.Store, rows: list[tuple[str, str, int, str | None]], name: str = "s") -> Session:
    """A conversation of one call whose request holds all lines; a call for each, so that each has its time."""
    messages: list[dict[str, Any]] = []
    at = AT
    for role, text, pause, speaker in rows:
        at += pause
        messages.append({"role": role, "content": text} | ({"name": speaker} if speaker else {}))
        store.record(name, {"model": "m", "messages": messages}, None, at_us=at)
    return store.session(name)


def both(session: Session, question: str, limit: int | None = None) -> tuple[Any, Any]:
    """What the index and every text read answer, by row."""
    ns = session._ns
    moments = [(session._lane(), session.info().position)]
    with ns.asking():
        texts, right = ns.texts(moments), NaiveTexts(ns.log, ns.views, moments)
        asked = parse_query(question, texts.analyzer)
        return score.score(texts, asked, limit=limit), naive.score(right, asked, limit=limit)


def rounded(answer: weights.Ranked) -> Any:
    """An answer as far as two ways of adding agree."""
    rows = {
        page.row: (round(page.score, 6), {name: round(v, 6) for name, (v, _) in page.parts.items() if abs(v) > 1e-9})
        for page in answer.rows
    }
    return answer.total, rows


@settings(max_examples=40, deadline=None)
@given(rows=lines, question=questions)
def test_the_score_is_the_same_without_numpy(rows: list[tuple[str, str, int, str | None]], question: str) -> None:
    """Whatever is said and asked, reading every text in plain Python gives each row the same features and score."""
    with vmstore.memory_store() as store:
        actual, right = both(talk(store, rows), question)
        assert rounded(actual) == rounded(right)
        assert [round(row.score, 6) for row in actual.rows] == [round(row.score, 6) for row in right.rows]


@settings(max_examples=25, deadline=None)
@given(rows=lines, later=lines, question=questions)
def test_what_is_written_later_changes_no_score(
    rows: list[tuple[str, str, int, str | None]], later: list[tuple[str, str, int, str | None]], question: str
) -> None:
    """An answer as of a moment is the one that was given at that moment, whatever is said afterwards."""
    with vmstore.memory_store() as store:
        session = talk(store, rows)
        end = session.info().position
        try:
            before = session.search(question)
        except InputError:
            return
        talk(store, later, "elsewhere")
        for role, text, _, _ in later:
            store.record(
                "s", {"model": "m", "messages": [{"role": role, "content": text}]}, None, at_us=AT + 10 * DAY_US
            )
        assert session.search(question, position=end) == before


def test_a_score_is_the_sum_of_what_its_features_add() -> None:
    """Each hit's parts add up to its score, and every feature has a weight and a description."""
    rows = [("user", "Where did Ann paint the harbour?", 1, "Ben"), ("assistant", "In Nara, last summer.", 1, "Ann")]
    with vmstore.memory_store() as store:
        projector, _ = both(talk(store, [(*line,) for line in rows]), "Where did Ann paint the harbour?")
    assert projector.version == "score@5" and len(projector.rows) == 2
    for page in projector.rows:
        assert page.score == pytest.approx(sum(by for _, by in page.parts.values()), abs=1e-6)
    some = {*weights.weights(), *weights.weights(work=True), *weights.weights("score@3")}
    assert some == set(measures.FEATURES) - set(measures.AMONG)
    assert set(weights.weights(several=True)) == set(measures.FEATURES)


def test_the_line_after_a_question_answers_it() -> None:
    """A line without any asked word is found where it follows the question that has them."""
    rows: list[tuple[str, str, int, str | None]] = [
        ("user", f"Nothing much happened on day {n}.", 60, None) for n in range(12)
    ]
    rows[5:5] = [
        ("user", "Which instrument does your sister play?", 60, None),
        ("assistant", "The cello, since March.", 60, None),
    ]
    with vmstore.memory_store() as store:
        hits = talk(store, rows).search("What instrument does the sister play?", limit=2)
        assert [hit.text for hit in hits] == [rows[5][1], rows[6][1]] or [hit.text for hit in hits] == [
            rows[6][1],
            rows[5][1],
        ]


def test_one_typo_is_forgiven() -> None:
    """A word that no text has is taken for the one it is a typo of."""
    with vmstore.memory_store() as store:
        session = talk(store, [("user", "The reimbursement form is due on Friday.", 1, None)])
        assert [hit.text for hit in session.search("reimbursment")] == ["The reimbursement form is due on Friday."]


def test_a_time_in_the_question_prefers_what_was_written_then() -> None:
    """Of two lines alike, the one written in the month that is asked about comes first."""
    rows = [("user", "We went hiking again, it was lovely.", pause * DAY_US, None) for pause in (1, 60, 60)]
    with vmstore.memory_store() as store:
        session = talk(store, rows)
        first = [hit.page for hit in session.search("Who went hiking in January 2024, was it lovely?")]
        pages = [page.page for page in session.pages()]
        assert first[0] == pages[1]


def test_what_was_written_then_is_among_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where many texts say the words better, one of the time that is named is scored too, with numpy and without."""
    monkeypatch.setattr(weights, "CANDIDATES", 4)
    other_rows = [("user", "The museum shop has a museum door.", DAY_US, None)] * 12
    other_rows += [("user", "The museum was long ago.", 60 * DAY_US, None), ("user", "Rain.", 60 * DAY_US, None)]
    with vmstore.memory_store() as store:
        session = talk(store, other_rows)
        question = "What of the museum shop door on 24 January 2024?"
        actual, right = both(session, question, 2)
        assert rounded(actual) == rounded(right) and actual.rows[0].row == 12
        rows = [row.row for row in both(session, "What of the museum shop door?", 2)[0].rows]
        assert 12 not in rows
        for broad in ("November 2023", "2023"):
            actual, right = both(session, f"What of the museum shop door in {broad}?", 2)
            assert rounded(actual) == rounded(right)
        for module in (score, naive):
            monkeypatch.setattr(module, "DATED_AMONG", 1)
        assert 12 not in [row.row for row in both(session, question, 2)[0].rows]


def test_the_old_score_stays_and_another_is_refused() -> None:
    """`score@1` is still BM25, and a score nobody has is named in the error."""
    with vmstore.memory_store() as store:
        session = talk(store, [("user", "Kyoto", 1, None), ("user", "Kyoto and Nara", 1, None)])
        ns = session._ns
        with ns.asking():
            texts = ns.texts([(session._lane(), session.info().position)])
            assert [hit.parts for hit in ranked(texts, "nara", score="score@1")] == [{}]
            with pytest.raises(InputError, match="score@0"):
                ranked(texts, "nara", score="score@0")


def test_what_is_excluded_or_required_is_so() -> None:
    """A phrase must stand in a hit, and what has a minus must not."""
    rows = [("user", text, 1, None) for text in ("the red car", "a car that is red", "the red car is old")]
    with vmstore.memory_store() as store:
        session = talk(store, rows)
        assert {hit.text for hit in session.search('"red car"')} == {"the red car", "the red car is old"}
        assert {hit.text for hit in session.search("car red -old")} == {"the red car", "a car that is red"}


def test_the_spec_lists_every_feature() -> None:
    """The table of features in the spec is that of the code, in its words."""
    spec = (Path(__file__).resolve().parents[2] / "specs" / "search.md").read_text("utf-8")
    for name, meaning in measures.FEATURES.items():
        assert f"| `{name}` | {meaning} |" in spec


def fences(name: str, role: Role, store: vmstore.Store) -> Session:
    """A session of forty lines, every second of them of a role."""
    session = store.session(name, create=True)
    with session.batch() as batch:
        for n in range(40):
            text = f"the {'painted' if n % 7 == 0 else 'plain'} fence of {'Ann' if n % 5 == 1 else 'Ben'}".encode()
            wrote = role if n % 2 else Role.USER
            message = batch.add(Message(wrote, Slot.MESSAGES, batch.cell(b"{}"), 0))
            cell = batch.cell(text)
            batch.add(Create(PageType.TRANSCRIPT, Modality.TEXT, wrote, message, 0, cell, len(text), 5))
    return session


def test_work_is_scored_by_weights_of_its_own() -> None:
    """Where no tool works the newer scores are equal in every hit; beside tools each differs from the one before."""
    store = vmstore.memory_store()
    talk, agent = (
        [
            [(hit.page, hit.score) for hit in session.search("What did Ann paint?", limit=20, score=score)]
            for score in ("score@4", "score@3", "score@2")
        ]
        for session in (fences("talk", Role.ASSISTANT, store), fences("agent", Role.TOOL, store))
    )
    assert talk[0] == talk[1] == talk[2] and talk[0]
    assert agent[0] != agent[1] != agent[2]


def test_of_work_the_same_is_answered_without_numpy() -> None:
    """In a session with a tool, who and what was last is asked for alike with the index and by reading every text."""
    with vmstore.memory_store() as store:
        session = fences("agent", Role.TOOL, store)
        for question in ("What did the user paint?", "Which fence was painted last?", "painted"):
            actual, right = both(session, question)
            assert rounded(actual) == rounded(right)
            assert [round(row.score, 6) for row in actual.rows] == [round(row.score, 6) for row in right.rows]
        actual, _ = both(session, "Which fence that the user painted was the last one?")
        assert any("user_asked" in row.parts for row in actual.rows)
        ends = [row.parts["end_asked"][0] for row in sorted(actual.rows) if "end_asked" in row.parts]
        assert ends == sorted(ends) and ends[-1] == 1.0
