"""The shapes that tell why a search answers: a score by its features, asked words by where they were found.

They stand apart from what fills them, so that an answer's shapes load without a search.
"""

from __future__ import annotations

import msgspec


class FeatureShare(msgspec.Struct, frozen=True):
    """A feature's share of a score: its value times its weight."""

    value: float
    weight: float
    adds: float


class MatchedWord(msgspec.Struct, frozen=True):
    """An asked word that a text has, or that one `away` texts before (less than 0) or after it has: `page` is that one.

    `how` is stem, whole, part, prefix, either, signs, stop word, typo or alike; `term` is what stands there.
    """

    word: str
    how: str
    term: str
    page: str
    away: int = 0


class AskedWord(msgspec.Struct, frozen=True):
    """A word as it was looked for: by which terms, how many texts of the moment have it, what it weighs among them.

    `alike` are other spellings, each with how alike it is.
    """

    word: str
    how: str
    terms: list[str]
    texts: int
    weight: float
    alike: dict[str, float] = {}


class SearchExplanation(msgspec.Struct, frozen=True):
    """The grounds of a search: the score's name, how many texts there were, how many terms they have on average.

    `required` and `excluded` are what a text must have and must not have; `speakers` those named, whose texts
    count more and whose names are not looked for; `vectors` how much has vectors, where an embedder was asked.
    """

    score: str
    texts: int
    mean_length: float
    words: list[AskedWord]
    required: list[str] = []
    excluded: list[str] = []
    speakers: list[str] = []
    vectors: str | None = None
