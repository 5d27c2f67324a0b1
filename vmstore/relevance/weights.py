"""An answer to a question, and the weights its scores were made with.

The weights lie in `weights.json` beside the name of the recipe that learns them. A score is reported with its version,
and an old version stays: `score@5` adds to the weights where several sessions are searched, `score@4` weighs sentences
asked of work with tools and code by a set of its own, `score@3` has one set, `score@2` knows nothing of tools beside a
text, `score@1` is BM25 of the text alone (`vmstore/search/rank.py`).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.relevance.question import Needle

VERSION = "score@5"
CANDIDATES = 400  # rows that are scored for one question, where not more are asked for
DATED_AMONG = 5  # times as many are looked at for those of a time that the question names
DATED_SHARE = 2  # of a time that fits more than one in so many of the places, it says nothing
WEIGHTS = Path(__file__).with_name("weights.json")
DIGITS = 9  # of a score, to which two are alike


class ScoredRow(NamedTuple):
    """A row with its score, and what each feature adds to it."""

    row: int
    score: float
    parts: dict[str, tuple[float, float]]
    """By feature: its value, and that times its weight."""


class ScoredWord(NamedTuple):
    """A needle as it was looked for: how many texts have it, and what it weighs among them."""

    needle: Needle
    texts: int
    weight: float


class Ranked(NamedTuple):
    """An answer: rows best first, how many texts have any of the asked words, and the words as they were looked for."""

    rows: list[ScoredRow]
    total: int
    version: str = VERSION
    words: tuple[ScoredWord, ...] = ()


@cache
def weights(version: str = VERSION, work: bool = False, several: bool = False) -> dict[str, float]:
    """What each feature weighs.

    If `work`, where a sentence is asked of work with tools or code; if `several`, where several sessions are searched.
    """
    recipe: dict[str, Any] = json.loads(WEIGHTS.read_text("utf-8"))[version]
    one = recipe["work" if work and "work" in recipe else "weights"]
    more = recipe.get("several", {}) if several else {}
    return {name: float(one.get(name, 0.0)) + float(more.get(name, 0.0)) for name in {**one, **more}}


def most_candidates(limit: int | None) -> int | None:
    """How many rows are scored for an answer of some length."""
    return None if limit is None else max(CANDIDATES, 2 * limit)
