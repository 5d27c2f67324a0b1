"""Reciprocal rank fusion of three rankings, with three filters after it: `rrf@1`.

A candidate at place r of a ranking (from 1) gains the ranking's weight over K + r. The rankings are those by tags, by
words and by an embedder's closeness; one that a candidate is not in gives it nothing. Then

- gravity: what only the embedder found, and no word or tag supports, counts half;
- hub: a candidate all of whose shared tags are frequent is held back, the more so the more frequent they are;
- resolution: a candidate with a tag that has facts is lifted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

SCORE = "rrf@1"
K = 60
TAGS, WORDS, EMBEDDING = 0.50, 0.30, 0.20
GRAVITY = 0.5
HUB_SHARE = 0.15  # of all texts that have a tag, from which on it is frequent
HUB_LEAST = 0.5  # what is left of a candidate whose tags all texts have
RESOLUTION = 1.25

Key = TypeVar("Key", int, str)


class FusedRank(NamedTuple, Generic[Key]):
    """A candidate with its score, what it gained from each ranking, and which filters changed it."""

    key: Key
    score: float
    tags: float
    words: float
    embedding: float
    filters: tuple[str, ...]

    @property
    def parts(self) -> dict[str, tuple[float, float]]:
        """What the score is made of: 1 / (K + place) in each ranking, and that times its weight; what filters changed.

        The value beside the filters is what they left of the sum, less one.
        """
        gains = {"tags": (self.tags, TAGS), "words": (self.words, WORDS), "closeness": (self.embedding, EMBEDDING)}
        parts = {name: (gain / weight, gain) for name, (gain, weight) in gains.items() if gain}
        if self.filters:
            total = self.tags + self.words + self.embedding
            parts[" and ".join(self.filters)] = (self.score / total - 1, self.score - total)
        return parts


def tag_overlap(
    asked: Collection[str], tagged: Mapping[Key, Collection[str]], frequency: Mapping[str, int], count: int
) -> list[Key]:
    """The candidates that share a tag with a question, best first: the rarer a shared tag, the more it counts.

    `frequency` says how many of the `count` texts have a tag. A shared tag weighs ln(1 + count / frequency).
    """
    scores = {
        key: sum(math.log1p(count / max(frequency.get(tag, 1), 1)) for tag in sorted(set(tags) & set(asked)))
        for key, tags in tagged.items()
    }
    return sorted((key for key, score in scores.items() if score > 0), key=lambda key: (-scores[key], key))


def fused(
    by_tags: Sequence[Key],
    by_words: Sequence[Key],
    by_embedding: Sequence[Key],
    *,
    hubs: Mapping[Key, float] | None = None,
    resolved: Collection[Key] = (),
) -> list[FusedRank[Key]]:
    """The candidates of three rankings, each best first, by their fused score, best first.

    `hubs` says of a candidate which share of all texts has the rarest tag that it shares with the question;
    `resolved` are those with a tag that has facts.
    """
    gains: dict[Key, list[float]] = {}
    for place, (ranking, weight) in enumerate(((by_tags, TAGS), (by_words, WORDS), (by_embedding, EMBEDDING))):
        for rank, key in enumerate(dict.fromkeys(ranking), 1):
            gains.setdefault(key, [0.0, 0.0, 0.0])[place] = weight / (K + rank)
    resolved, hubs = frozenset(resolved), hubs or {}
    found = []
    for key, (tags, words, embedding) in gains.items():
        score, filters = tags + words + embedding, []
        if embedding and not (tags or words):
            score, filters = score * GRAVITY, ["gravity"]
        if (share := hubs.get(key, 0.0)) > HUB_SHARE and not words:
            score *= max(HUB_LEAST, 1 - (share - HUB_SHARE) / (1 - HUB_SHARE) * (1 - HUB_LEAST))
            filters.append("hub")
        if key in resolved:
            score *= RESOLUTION
            filters.append("resolution")
        found.append(FusedRank(key, score, tags, words, embedding, tuple(filters)))
    return sorted(found, key=lambda one: (-one.score, one.key))
