"""What a summary may not lose: exact numbers, names and states of the texts it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable

APPENDED_MAX = 24
APPENDED_CHARS_MAX = 400
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NUMBER = re.compile(
    r"[$€£]?\b\d[\d.,:/x-]*\d\b\s?%?|[$€£]\d+\b|\b\d+\s?%|\b\d+\s?(?:ms|s|min|h|kb|mb|gb|tb|km|kg|px)\b", re.I
)
_NAME = re.compile(r"(?<![.!?\n]\s)(?<!^)\b[A-Z][\w-]*[a-z]\w*(?:\s[A-Z][\w-]+)*")
_SYMBOL = re.compile(r"\b[a-z]+_[a-z_0-9]+\b|\b[a-z]+[A-Z]\w+\b|(?:[\w.-]+/)+[\w.-]+|\b[A-Z]{2,}[A-Z0-9_]*\b")
_STATE = re.compile(
    r"\b(?:is|are|was|were|now|still|not|remains?)\s+(?:yet\s+)?"
    r"(?:done|open|closed|blocked|pending|merged|failing|passing|broken|fixed|deployed|cancelled|approved|rejected)\b",
    re.I,
)


def missing(texts: Iterable[str], summary: str) -> list[str]:
    """The numbers, names and states of texts that a summary does not hold, in their order, each once."""
    there = _folded(summary)
    found: dict[str, str] = {}
    for text in texts:
        for sentence in _SENTENCE.split(text):
            for pattern in (_NUMBER, _NAME, _SYMBOL):
                for match in pattern.findall(sentence):
                    word = match.strip(" .,:;-")
                    if len(word) > 1 and _folded(word) not in there:
                        found.setdefault(_folded(word), word)
            for match in _STATE.finditer(sentence):
                words = sentence[max(0, match.start() - 40) : match.end()].split()[-6:]
                said = " ".join(words)
                if _folded(match[0]) not in there:
                    found.setdefault(_folded(said), said)
    return list(found.values())


def completed(texts: Iterable[str], summary: str) -> str:
    """A summary with what it lost of the exact, as far as there is room for it."""
    lost, kept, room = missing(texts, summary), [], APPENDED_CHARS_MAX
    for word in lost[:APPENDED_MAX]:
        room -= len(word) + 2
        if room < 0:
            break
        kept.append(word)
    return f"{summary.rstrip()}\nAlso: {'; '.join(kept)}" if kept else summary


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
