"""Natural-looking text from a seed, about as compressible as what real agents' pages hold.

Nobody's words: a vocabulary of made-up words with the frequencies words have, said in sentences,
with the paths, names and repeated lines that tool output is full of. The shares are set so that
zstd finds in it what it finds in the pages of an imported coding session (specs/performance.md).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import cache

POOL_BYTES = 4 << 20
POOL_SEED = 5
REGION_BYTES = 14_000  # how long one subject is talked about
VOCABULARY = 6_000
SUBJECT_WORDS = 160
AGAIN = 0.60  # share of lines said before on the same subject, all or in part
BYTES_MIN, BYTES_MEAN, BYTES_MAX = 200, 1_000, 4_096

_SOUNDS = "b c d f g h k l m n p r s t v w br ch cl cr dr fl gr pl pr sh sl sp st str th tr", "a e i o u ai ea ee io ou"
_ONSETS, _VOWELS = (sounds.split() for sounds in _SOUNDS)
_ENDS = ["", "", "", "n", "r", "s", "t", "l", "nd", "ng", "rt", "ck", "ss", "st", "tion", "ing", "ed", "er", "ly"]


def vocabulary(chance: random.Random) -> list[str]:
    """Made-up words, the short ones first, as in any language."""
    words: set[str] = set()
    while len(words) < VOCABULARY:
        syllables = chance.choice((1, 1, 2, 2, 2, 3))
        body = "".join(chance.choice(_ONSETS) + chance.choice(_VOWELS) for _ in range(syllables))
        words.add(body + chance.choice(_ENDS))
    return sorted(words, key=lambda word: (len(word) + 4 * chance.random(), word))


class Writer:
    """Writes lines about one subject after the other."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._words = vocabulary(self._chance)
        self._weights = [1 / (rank + 2.7) for rank in range(VOCABULARY)]

    def region(self) -> str:
        """Some thousand bytes about one subject: prose, lines of tool output, what was said before."""
        chance = self._chance
        common = chance.choices(self._words, self._weights, k=SUBJECT_WORDS)
        paths = ["/".join(chance.sample(common, 3)) + chance.choice((".py", ".ts", ".md")) for _ in range(6)]
        lines: list[str] = []
        size = 0
        while size < REGION_BYTES:
            draw = chance.random()
            if lines and draw < AGAIN:
                line = self._again(lines)
            elif draw < AGAIN + 0.17:
                line = self._output(common, paths)
            else:
                line = self._sentence(common)
            lines.append(line)
            size += len(line) + 1
        return "\n".join(lines)

    def _again(self, lines: list[str]) -> str:
        line = self._chance.choice(lines[-40:])
        if self._chance.random() < 0.5:
            return line
        start = self._chance.randrange(max(1, len(line) // 2))
        return line[start:] + " " + str(self._chance.randrange(1000))

    def _sentence(self, common: list[str]) -> str:
        words = self._chance.choices(common, k=self._chance.randrange(6, 18))
        return " ".join(words).capitalize() + self._chance.choice(".....,?:")

    def _output(self, common: list[str], paths: list[str]) -> str:
        chance = self._chance
        name, path = chance.choice(common), chance.choice(paths)
        number = chance.randrange(1, 900)
        kinds = (
            f"{path}:{number}: {name} = {chance.choice(common)}({chance.choice(common)})",
            f"    def {name}_{chance.choice(common)}(self, {chance.choice(common)}: int) -> None:",
            f'  "{name}": "{chance.choice(common)} {number}",',
            f"-rw-r--r-- 1 {number * 37} {path}",
        )
        return chance.choice(kinds)


@cache
def pool() -> bytes:
    """The text that all contents are cut from."""
    writer = Writer(POOL_SEED)
    parts: list[str] = []
    size = 0
    while size < POOL_BYTES:
        parts.append(writer.region())
        size += len(parts[-1]) + 1
    return "\n".join(parts).encode("ascii")


class Texts:
    """Contents cut one after the other from the pool: 200 B to 4 KB, about 1 KB in the mean."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._pool = pool()
        self._sizes = [_size(self._chance) for _ in range(4096)]

    def __iter__(self) -> Iterator[bytes]:
        pool, at, turn = self._pool, self._chance.randrange(POOL_BYTES // 2), 0
        while True:
            size = self._sizes[turn & 4095]
            if at + size > len(pool):
                at = self._chance.randrange(BYTES_MAX)  # another cut of the same text
            yield pool[at : at + size]
            at += size
            turn += 1


def _size(chance: random.Random) -> int:
    size = 0.77 * BYTES_MEAN * math.exp(0.7 * chance.gauss(0, 1))
    return int(min(BYTES_MAX, max(BYTES_MIN, size)))
