"""The worth of recalls: the pages each gave, and which of them later answers used.

One tally for all who tell it: it is fed from the views, from a log as it is folded, and from a session decided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from vmstore.core.decision import Use

USED_IN = 2  # turns: that of the recall, and the next, which one before a message is for
USES = frozenset({int(Use.FAULT), int(Use.TOOL), int(Use.QUOTE), int(Use.REUSE)})
"""How an answer uses a page, beside citing it."""


PPM = 1_000_000
SCORE_MAX = 1 << 50


def ppm(score: float) -> int:
    """A score in parts per million, within what a log holds."""
    return max(-SCORE_MAX, min(SCORE_MAX, round(score * PPM)))


class TalliedRecall(msgspec.Struct):
    """A recall: where it was asked, how, the pages it gave, the best first, and the tokens of what it gave.

    `used` says of the pages that were used at which position first, `scores` what they were returned with, where that
    was logged, in parts per million.
    """

    position: int
    turn: int
    recaller: int
    pages: tuple[int, ...]
    tokens: int
    used: dict[int, int] = {}
    scores: dict[int, int] = {}


class RecallTally:
    """Recalls in the order of a session, and what was used of them."""

    def __init__(self) -> None:
        self.recalls: list[TalliedRecall] = []
        self._over = 0  # how many of them were given too long ago to be used

    def recalled(self, position: int, turn: int, recaller: int, pages: Iterable[int], tokens: int) -> TalliedRecall:
        """Adds a recall, and gives it back."""
        recall = TalliedRecall(position, turn, recaller, tuple(dict.fromkeys(pages)), tokens)
        self.recalls.append(recall)
        return recall

    def used(self, position: int, turn: int, page: int) -> None:
        """Adds that an answer used a page: of each recall that gave it in this turn or the one before."""
        while self._over < len(self.recalls) and turn >= self.recalls[self._over].turn + USED_IN:
            self._over += 1
        for number in range(self._over, len(self.recalls)):
            recall = self.recalls[number]
            if page in recall.pages:
                recall.used.setdefault(page, position)


def each_once(pages: Sequence[int], scores: Sequence[float]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pages that an answer may name several times, each once, with its first score in parts per million."""
    first: dict[int, float] = {}
    for page, score in zip(pages, scores, strict=True) if scores else ():
        first.setdefault(page, score)
    return tuple(dict.fromkeys(pages)), tuple(map(ppm, first.values()))
