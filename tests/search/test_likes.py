"""Other spellings of a word, picked out of a vocabulary at once."""

from __future__ import annotations

import random

import pytest

np = pytest.importorskip("numpy")

from vmstore.relevance.likeness import halves, likest, turned  # noqa: E402
from vmstore.search.likes import TermSpelling, perhaps_alike  # noqa: E402


def vocabulary(words: list[str]) -> tuple[TermSpelling, list[bytes]]:
    """Words as a segment has them."""
    terms = sorted({word.encode() for word in words})
    return TermSpelling(np.frombuffer(b"".join(term + b"\n" for term in terms), np.uint8)), terms


def test_no_spelling_is_missed() -> None:
    """What is picked out at once are all spellings that are found word by word, and few that are none."""
    chance = random.Random(17)
    picked = right = 0
    for _ in range(150):
        letters = chance.choice(("ab", "abcde", "abcé", "etaoinshr", "日本語ab", "ab1"))
        words = ["".join(chance.choices(letters, k=chance.randrange(1, 14))) for _ in range(200)]
        for word in [*chance.sample(words, 3), "".join(chance.choices(letters, k=6))]:
            if len(word) < 4:
                continue
            begin = halves(word)[0].encode()
            asked = []
            for half in (words[:90], words[90:]):
                spelling, terms = vocabulary(half)
                first = next((at for at, term in enumerate(terms) if term >= begin), len(terms))
                begun = [at for at, term in enumerate(terms) if term.startswith(begin)]
                asked.append((spelling, range(first, first + len(begun))))
            perhaps = perhaps_alike(word, asked) | {turned(word)} & {*words}
            expected = likest(word, {*words}, len(words))
            assert likest(word, perhaps, len(words)) == expected
            picked, right = picked + len(perhaps), right + len(expected)
    assert right > 500 and picked < 6 * right
