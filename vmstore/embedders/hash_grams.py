"""An embedder without weights: runs of four characters, hashed. It knows spelling and no meaning.

For tests, demonstrations and machines without a model: texts that share words and parts of words are close, texts
that say the same in other words are not.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter

DIMENSION = 256
GRAM = 4
_WORD = re.compile(r"[^\W_]+")


class HashGrams:
    """A text's runs of four characters, each counted at a place that its hash says; the same on every machine."""

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension
        self.name = f"hash-4grams@1/{dimension}"

    def embed(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, of length 1; all zeros where it has no letter or digit."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        grams = Counter[str]()
        for word in _WORD.findall(text.casefold()):
            marked = f" {word} "
            grams.update(marked[at : at + GRAM] for at in range(max(1, len(marked) - GRAM + 1)))
        numbers = [0.0] * self.dimension
        for gram, times in grams.items():
            place = zlib.crc32(gram.encode("utf-8", "surrogatepass"))
            numbers[(place >> 1) % self.dimension] += math.sqrt(times) * (1 if place & 1 else -1)
        norm = math.hypot(*numbers)
        return [number / norm for number in numbers] if norm else numbers
