"""How like two words are: within one typo, or by the runs of four characters that they share."""

from __future__ import annotations

GRAM = 4
LIKE_CHARS_MIN = 4  # shorter words have too many neighbours
LIKE_SHARE = 0.5


def near(one: str, other: str) -> bool:
    """Whether one typo makes one word of the other: a letter more, less or other, or two that changed places."""
    if one == other:
        return True
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1:
        return False
    at = next((n for n, letter in enumerate(one) if letter != other[n]), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    if one[at + 1 :] == other[at + 1 :]:
        return True
    return one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]


def gram_share(one: str, other: str) -> float:
    """The part of the runs of four characters of two words that both have."""
    grams, others = _grams(one), _grams(other)
    return len(grams & others) / len(grams | others) if grams or others else 0.0


def _grams(word: str) -> set[str]:
    return {word[at : at + GRAM] for at in range(len(word) - GRAM + 1)}
