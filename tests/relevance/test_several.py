"""The score where several sessions are searched: of which session a text is counts, and one session ranks as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benches.parts.everywhere import everywhere, looks
from hypothesis import given, settings

import vmstore
from tests.conftest import DATA
from tests.relevance.test_score import both, lines, questions, rounded, talk
from vmstore.relevance import measures, naive, score
from vmstore.relevance.query import parse_query
from vmstore.search.naive import NaiveTexts
from vmstore.search.rank import by_words, ranked

Spoken = list[tuple[str, str, int, str | None]]


def of_all(store: vmstore.Store, question: str) -> tuple[Any, Any]:
    """What the index and every text read answer over all sessions, by row."""
    sessions = [store.session(info.session) for info in store.sessions()]
    moments = [(session._lane(), session.info().position) for session in sessions]
    ns = store._ns
    with ns.asking():
        texts, right = ns.texts(moments), NaiveTexts(ns.log, ns.views, moments)
        asked = parse_query(question, texts.analyzer)
        return score.score(texts, asked), naive.score(right, asked)


@settings(max_examples=25, deadline=None)
@given(rows=lines, others=lines, question=questions)
def test_over_several_sessions_the_same_is_answered_without_numpy(rows: Spoken, others: Spoken, question: str) -> None:
    """Whatever two sessions say, each text has the same features and score by the index and by reading every text."""
    with vmstore.memory_store() as store:
        talk(store, rows, "one")
        talk(store, others, "two")
        actual, right = of_all(store, question)
        assert rounded(actual) == rounded(right)


def conversations(tmp_path: Path, store: vmstore.Store, **speakers: tuple[str, str]) -> None:
    """A session for each name, in which two people say the same as in every other."""
    samples = []
    for name, (first, second) in speakers.items():
        talk_lines = [(first, "The puppy has a name now."), (second, "And what is it?"), (first, "You will laugh.")]
        talk = [{"speaker": who, "dia_id": f"D1:{n}", "text": text} for n, (who, text) in enumerate(talk_lines, 1)]
        conversation = {"speaker_a": first, "speaker_b": second, "session_1_date_time": "1:56 pm on 8 May, 2023"}
        samples.append({"sample_id": name, "conversation": {**conversation, "session_1": talk}})
    (tmp_path / "talks.json").write_text(json.dumps(samples))
    store.import_file(tmp_path / "talks.json")


def test_who_is_named_is_looked_for_where_they_speak(tmp_path: Path) -> None:
    """Of lines alike, those of the session in which the person speaks whom the question names come first."""
    with vmstore.memory_store() as store:
        conversations(tmp_path, store, one=("Eve", "Ben"), two=("Ann", "Zoe"))
        for name, session in (("Ann", "two"), ("Zoe", "two"), ("Eve", "one"), ("Ben", "one")):
            question = f"What is the name of {name}'s puppy?"
            actual, right = of_all(store, question)
            assert rounded(actual) == rounded(right)
            assert actual.rows[0].parts["session_speaker"][0] == 1
            assert store.search(question)[0].session == session


def test_in_one_session_nothing_differs() -> None:
    """A session alone has none of the features of several, and each hit the score of the version before."""
    with vmstore.memory_store() as store:
        session = talk(store, [("user", "Ann paints the harbour.", 1, "Ben"), ("assistant", "In Nara.", 1, "Ann")])
        actual, _ = both(session, "Where did Ann paint?")
        assert actual.rows and not any(name in row.parts for row in actual.rows for name in measures.AMONG)
        new, old = (session.search("Where did Ann paint?", score=name) for name in ("score@5", "score@4"))
        assert [(hit.page, hit.score) for hit in new] == [(hit.page, hit.score) for hit in old]


@pytest.mark.skipif(not DATA.is_dir(), reason="the real sessions are not there")
@pytest.mark.parametrize("questions_too", [False, True])
def test_what_a_person_wants_is_the_first_hit_oftener_than_by_bm25(questions_too: bool) -> None:
    """Over all real sessions, of the looks that taught no weight at least two in three have a wanted page first."""
    asked = looks(everywhere(questions=questions_too), held_out=True)
    firsts = {"ours": 0, "plain": 0}
    for look in asked.recalls:
        firsts["ours"] += ranked(asked.texts, look.question, 1)[0].row in look.rows  # type: ignore[arg-type]
        firsts["plain"] += by_words(asked.texts, look.question, 1)[0].row in look.rows  # type: ignore[arg-type]
    assert len(asked.recalls) == 30
    assert firsts["ours"] >= 20 and firsts["ours"] > firsts["plain"]
