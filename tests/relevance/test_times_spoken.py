"""The times that real conversations name, held against what a reader meant who had not seen the resolver."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import DATA
from vmstore.core.times import microseconds, moment_of
from vmstore.relevance.time.times import times_in

LABELS = Path(__file__).with_name("times_spoken.txt")
DATE = "%I:%M %p on %d %B, %Y"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real conversations are not there")


@cache
def turns() -> dict[tuple[str, str], tuple[str, datetime]]:
    """What was said in each turn, and when."""
    turns_by_place = {}
    for sample in json.loads(next((DATA / "locomo").glob("*.json")).read_text("utf-8")):
        talk = sample["conversation"]
        for name in (name for name in talk if name.startswith("session_") and name[8:].isdigit()):
            at = datetime.strptime(talk[f"{name}_date_time"], DATE).replace(tzinfo=UTC)
            turns_by_place |= {(sample["sample_id"], turn["dia_id"]): (turn["text"], at) for turn in talk[name]}
    return turns_by_place


def misread(half: str) -> tuple[list[str], int]:
    """What is read otherwise than a reader did, and how many expressions there are."""
    lines = [line.split(" | ") for line in LABELS.read_text("utf-8").splitlines() if not line.startswith("#")]
    asked = [rest for kind, *rest in lines if kind == half]
    wrong = [" is ".join((place, words, meant)) for place, words, meant in asked if not as_meant(place, words, meant)]
    return wrong, len(asked)


def as_meant(place: str, words: str, meant: str) -> bool:
    """Whether the words of a turn give the interval that was meant, or none where none was."""
    conversation, turn = place.split()
    text, at = turns()[conversation, turn]
    first = text.lower().index(words.lower())
    spans = [span for span in times_in(text, microseconds(at)) if span.start < first + len(words) and first < span.end]
    if meant == "-":
        return not spans
    *vague, low, high = meant.split()
    wanted = [datetime.fromisoformat(each) for each in (low, high)]
    bounds = [[moment_of(each).replace(tzinfo=None) for each in (span.from_us, span.to_us)] for span in spans]
    if vague:
        twice = 2 * (wanted[1] - wanted[0])
        return any(a < wanted[1] and wanted[0] < b and b - a <= twice for a, b in bounds)
    return wanted in bounds


def test_times_that_were_looked_at() -> None:
    """Of the half that may be tuned on all but four, the same times in other bounds, are read as they were meant."""
    wrong, many = misread("open")
    assert many == 35 and len(wrong) <= 4, wrong


def test_times_that_were_not_looked_at() -> None:
    """Of the other half at least 31 are."""
    wrong, many = misread("held")
    assert many == 35 and len(wrong) <= 4
