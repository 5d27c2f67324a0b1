"""The labelled set: lines of text in which every secret is marked, and how well somebody finds them.

A marked secret stands between brackets, after its kind. A bar in it is taken out when the set is
read, so that nobody who scans this repository takes it for a real one; `\\n` is a line end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

MARKED = re.compile("\u27e8([A-Z_]+)\\|(.*?)\u27e9", re.DOTALL)
Pair = tuple[int, int]
SET = Path(__file__).with_name("labelled.txt")


class Line(NamedTuple):
    """A text and the stretches of it that are secret, each with its kind."""

    text: str
    secrets: list[tuple[int, int, str]]


class Score(NamedTuple):
    """How many secrets were found whole, of how many; how many finds were secrets, of how many."""

    found: int
    secrets: int
    right: int
    finds: int
    missed: list[str]
    alarms: list[str]

    @property
    def recall(self) -> float:
        """The share of secrets that were found."""
        return self.found / self.secrets

    @property
    def precision(self) -> float:
        """The share of finds that were secrets."""
        return self.right / self.finds


def lines() -> list[Line]:
    """The set, headings left out."""
    return [
        line(each_line)
        for each_line in SET.read_text(encoding="utf-8").splitlines()
        if not each_line.startswith("# ----")
    ]


def line(marked: str) -> Line:
    """A line of the set."""
    marked = marked.replace("\u00a6", "").replace("\\n", "\n")
    text, secrets, done = "", [], 0
    for match in MARKED.finditer(marked):
        text += marked[done : match.start()]
        secrets.append((len(text), len(text) + len(match[2]), match[1]))
        text, done = text + match[2], match.end()
    return Line(text + marked[done:], secrets)


def score(find: Callable[[str], Iterable[Pair]], lines: Iterable[Line]) -> Score:
    """A secret counts as found where finds cover all of it; a find is right where it touches a secret."""
    number = secrets = right = finds = 0
    missed, alarms = [], []
    for text, marked in lines:
        pairs = list(find(text))
        hidden = {place for start, end in pairs for place in range(start, end)}
        for start, end, kind in marked:
            whole = hidden.issuperset(range(start, end))
            number += whole
            missed += [] if whole else [f"{kind}: {text}"]
        for start, end in pairs:
            touches = any(start < last and first < end for first, last, _ in marked)
            right += touches
            alarms += [] if touches else [f"{text[start:end]!r}: {text}"]
        secrets, finds = secrets + len(marked), finds + len(pairs)
    return Score(number, secrets, right, finds, missed, alarms)


SECOND = Path(__file__).with_name("second.jsonl")


def second(half: str) -> list[Line]:
    """Half of a set whose author had not seen the detectors, `tune` or `test`: they were mended by both."""
    return [_barred(row) for row in _rows(SECOND) if row["half"] == half]


THIRD = Path(__file__).with_name("third.jsonl")


def third() -> list[Line]:
    """A set by another author still: nobody who mended the detectors read it."""
    return [_barred(row) for row in _rows(THIRD)]


def _rows(path: Path) -> list[Any]:
    return [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]


def _barred(row: Any) -> Line:
    """A text without its bars, in which the offsets of its secrets are."""
    return Line(row["text"].replace("\u00a6", ""), [(start, end, "") for start, end in row["secrets"]])
