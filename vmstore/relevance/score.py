"""The score of texts for a question: a weighted sum of their features, `score@2`.

The weights lie in `weights.json` beside the recipe's name (tools/relevance_weights.py learns them). A score is told
with its version, and an old version stays: `score@1` is BM25 of the text alone.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vmstore.relevance.features import FEATURES, Floats, candidates, features, lookup
from vmstore.relevance.query import WordQuery
from vmstore.relevance.question import Question, question_of
from vmstore.relevance.texts import Texts

VERSION = "score@2"
CANDIDATES = 400  # rows that are scored for one question, where that many are not asked for
WEIGHTS = Path(__file__).with_name("weights.json")


class ScoredRow(NamedTuple):
    """A row with its score, and what each feature adds to it."""

    row: int
    score: float
    parts: dict[str, tuple[float, float]]
    """By feature: its value, and what it adds to the score."""


class Ranked(NamedTuple):
    """An answer: rows best first, and how many texts have any of the asked words or another spelling of one."""

    rows: list[ScoredRow]
    total: int
    version: str = VERSION


@cache
def weights(version: str = VERSION) -> dict[str, float]:
    """What each feature weighs."""
    told: dict[str, Any] = json.loads(WEIGHTS.read_text("utf-8"))
    return {name: float(value) for name, value in told[version]["weights"].items()}


def score(texts: Texts, query: WordQuery, *, now_us: int | None = None, limit: int | None = None) -> Ranked:
    """The texts that answer a query best, best first; `now_us` is when it is asked, by default at the last text."""
    question = question_of(query, _last(texts) if now_us is None else now_us)
    if not texts.count or not question.needles:
        return Ranked([], 0)
    rows, values, total = scored(texts, question, None if limit is None else max(CANDIDATES, 2 * limit))
    weight = np.array([weights()[name] for name in FEATURES])
    sums = values @ weight
    order = np.lexsort((rows, -np.round(sums, 9)))[:limit]
    names = list(FEATURES)
    return Ranked(
        [
            ScoredRow(
                int(rows[at]),
                float(sums[at]),
                {name: (float(v), float(v * w)) for name, v, w in zip(names, values[at], weight, strict=True) if v},
            )
            for at in order.tolist()
        ],
        total,
    )


def scored(texts: Texts, question: Question, most: int | None) -> tuple[Any, Floats, int]:
    """The candidates for a question with their features, and how many texts have an asked word."""
    found = lookup(texts, question)
    rows, total = candidates(texts.count, found, most)
    return rows, features(texts, question, found, rows), total


def _last(texts: Texts) -> int:
    return int(texts.columns(np.array([texts.count - 1], np.int32)).at_us[0]) if texts.count else 0
