"""The score of texts for a question: a weighted sum of their features, `score@5` or an older one, by numpy."""

from __future__ import annotations

import numpy as np

from vmstore.relevance.candidates import Floats, Found, Rows, candidates, distinct
from vmstore.relevance.features import Lookup, around, at_work, features, lookup, several
from vmstore.relevance.measures import DATED_US, FEATURES
from vmstore.relevance.query import WordQuery
from vmstore.relevance.question import Question, question_of, spoken_names, words_of
from vmstore.relevance.texts import Texts
from vmstore.relevance.weights import (
    DATED_AMONG,
    DATED_SHARE,
    DIGITS,
    VERSION,
    Ranked,
    ScoredRow,
    ScoredWord,
    most_candidates,
    weights,
)


def score(
    texts: Texts, query: WordQuery, *, now_us: int | None = None, limit: int | None = None, version: str = VERSION
) -> Ranked:
    """The texts that answer a query best, best first; `now_us` is when it is asked, by default at the last text."""
    question = question_of(query, last_us(texts) if now_us is None else now_us)
    if not texts.count or not question.needles:
        return Ranked([], 0)
    looked, rows, total = chosen(texts, question, most_candidates(limit))
    near = around(texts, rows)
    values = features(texts, question, looked, near)
    known = weights(version, question.sentence and at_work(near), several(texts, rows))
    weight = np.array([known.get(name, 0.0) for name in FEATURES])
    sums = np.round(values @ weight, DIGITS)
    order = np.lexsort((rows, -sums))[:limit].tolist()
    parts = (
        {name: (one, by) for name, one, by in zip(FEATURES, value, value_by, strict=True) if one and name in known}
        for value, value_by in zip(values[order].tolist(), (values[order] * weight).tolist(), strict=True)
    )
    scored_rows = zip(rows[order].tolist(), sums[order].tolist(), parts, strict=True)
    words = tuple(ScoredWord(one.needle, len(one.rows), one.weight) for one in looked.found)
    return Ranked([ScoredRow(*one) for one in scored_rows], total, version, words)


def scored(texts: Texts, question: Question, most: int | None) -> tuple[Rows, Floats, bool]:
    """The candidates for a question with their features, and whether they are weighed as work with tools or code."""
    looked, rows, _ = chosen(texts, question, most)
    near = around(texts, rows)
    return rows, features(texts, question, looked, near), question.sentence and at_work(near)


def chosen(texts: Texts, question: Question, most: int | None) -> tuple[Lookup, Rows, int]:
    """What is looked for among some texts, the candidates, and how many texts have an asked word."""
    spoken = spoken_names(texts, question)
    looked = lookup(texts, question, spoken)
    rows, total = candidates(texts.count, looked.found, question.sentence, most)
    if spoken and spoken != (there := spoken & _speakers(texts, rows)):
        # Some are named who say nothing among the candidates, or speak only later: they are words like others.
        looked = lookup(texts, question, there)
        rows, total = candidates(texts.count, looked.found, question.sentence, most)
    if question.spans and most is not None:
        rows = distinct(np.append(rows, _dated(texts, question, looked.found, rows, most)))
    return looked, rows, total


def _dated(texts: Texts, question: Question, found: list[Found], rows: Rows, most: int) -> Rows:
    """More rows, written in or soon after a time that the question names; none where the time narrows nothing.

    What was said then seldom repeats the words of a question that names its time.
    """
    wide, _ = candidates(texts.count, found, question.sentence, DATED_AMONG * most)
    others = wide[~np.isin(wide, rows)]
    at_us = texts.columns(others, ("at_us",)).at_us
    then = np.zeros(len(others), np.bool_)
    for from_us, to_us in question.spans:
        then |= (at_us >= from_us) & (at_us < to_us + DATED_US)
    return others[then] if np.count_nonzero(then) <= most // DATED_SHARE else others[:0]


def _speakers(texts: Texts, rows: Rows) -> set[str]:
    """The words of the names of those who wrote some rows."""
    names = texts.names("speaker")
    speakers = distinct(texts.columns(rows, {"speaker"}).speaker).tolist()
    return {word for number in speakers for word in words_of(names[number])}


def last_us(texts: Texts) -> int:
    """When the last of some texts was written."""
    return int(texts.columns(np.array([texts.count - 1], np.int32), {"at_us"}).at_us[0]) if texts.count else 0
