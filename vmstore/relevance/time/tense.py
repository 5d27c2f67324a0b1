"""Whether a sentence speaks of what was or of what will be, by the words nearest to a place in it; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vmstore.relevance.time.time_words import IS, NOT_PARTICIPLES, WAS, WILL

WINDOW = 30  # words to each side of the place
_ENDS: Final = frozenset(".!?;\n")


def tense(words: Sequence[str], start: int, stop: int, question: bool) -> int:
    """-1 where a sentence speaks of the past around its words `start` to `stop`, 2 of the future, 0 where it is open.

    The nearest word that tells decides; 1 where only words of the present do, which may mean what is to come.
    """
    nearest, direction, present = WINDOW + 1, 0, False
    for step, place in ((-1, start - 1), (1, stop)):
        for away in range(1, WINDOW + 1):
            word = words[place] if 0 <= place < len(words) else "."
            if word in _ENDS:
                present = present or (word == "?" and not question)
                break
            speaks = _direction(word, words[place - 1] if place else "")
            if speaks and away < nearest:
                nearest, direction = away, speaks
            present = present or word in IS
            place += step
    return direction or (1 if present else -1 if question else 0)


def _direction(word: str, before: str) -> int:
    if word in WILL or word.endswith("'ll"):
        return 2
    if word in WAS:
        return -1
    participle = len(word) > 3 and word.endswith("ed") and word not in NOT_PARTICIPLES
    return -1 if participle and before not in IS else 0  # what is booked, is so now
