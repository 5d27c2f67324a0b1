"""The times that texts name, held against sentences whose meaning was written down before the resolver."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from vmstore.core.times import microseconds, moment_of
from vmstore.relevance.time.times import times_in

Spans = list[tuple[datetime, datetime]]
AT = microseconds(datetime(2023, 5, 25, 14, tzinfo=UTC))


def _sentences(name: str) -> list[tuple[datetime, str, str]]:
    lines = Path(__file__).with_name(name).read_text().splitlines()
    rows = [line.split(" | ") for line in lines if not line.startswith("#")]
    return [(datetime.fromisoformat(at), sentence, meant) for at, sentence, meant in rows]


def _meant(text: str) -> Spans:
    return [] if text == "-" else [_interval(each) for each in text.split("; ")]


def _interval(text: str) -> tuple[datetime, datetime]:
    first, _, last = text.partition("..")
    return _ends(first)[0], _ends(last or first)[1]


def _ends(text: str) -> tuple[datetime, datetime]:
    if "T" in text:
        return datetime.fromisoformat(text), datetime.fromisoformat(text)
    year, month, day = (*map(int, text.split("-")), 0, 0)[:3]
    if day:
        return datetime(year, month, day), datetime(year, month, day) + timedelta(days=1)
    if month:
        return datetime(year, month, 1), datetime(year + month // 12, month % 12 + 1, 1)
    return datetime(year, 1, 1), datetime(year + 1, 1, 1)


def _resolved(at: datetime, sentence: str) -> Spans:
    question = sentence.startswith("Q: ")
    spans = times_in(sentence.removeprefix("Q: "), microseconds(at), question=question)
    return [tuple(moment_of(each).replace(tzinfo=None) for each in (s.from_us, s.to_us)) for s in spans]


def _wrong(name: str) -> list[str]:
    faults = []
    for at, sentence, meant in _sentences(name):
        spans = _resolved(at, sentence)
        if spans != _meant(meant):
            faults.append(f"{sentence} meant {meant}, not {[' to '.join(map(str, each)) for each in spans]}")
    return faults


def test_open_sentences() -> None:
    """Every sentence of the half that was looked at gives the intervals that a reader meant."""
    assert _wrong("times_open.txt") == []


def test_held_sentences() -> None:
    """Of the half that was never looked at, at least nine sentences in ten give what a reader meant."""
    sentences = _sentences("times_held.txt")
    assert len(_wrong("times_held.txt")) * 10 <= len(sentences)
    assert len(sentences) > 60


@pytest.mark.parametrize(
    ("sentence", "precision"),
    [
        ("an hour ago", "instant"),
        ("yesterday", "day"),
        ("two weeks ago", "week"),
        ("last month", "month"),
        ("last summer", "season"),
        ("ten years ago", "year"),
    ],
)
def test_precision(sentence: str, precision: str) -> None:
    """What was said vaguely is as long as it is vague."""
    assert [span.precision for span in times_in(sentence, AT)] == [precision]


def test_where() -> None:
    """A time says where in the text it stands."""
    text = "Well — we met last Saturday, and again yesterday evening."
    assert [text[span.start : span.end] for span in times_in(text, AT)] == ["last Saturday", "yesterday evening"]


def test_zone() -> None:
    """A day is the day of the speaker's zone, also where its clock is put on."""
    zone = ZoneInfo("Europe/Berlin")
    late = microseconds(datetime(2024, 3, 31, 22, 30, tzinfo=UTC))  # half past midnight of 1 April in Berlin
    (span,) = times_in("It broke yesterday.", late, zone=zone)
    assert moment_of(span.from_us) == datetime(2024, 3, 31, tzinfo=zone)
    assert span.to_us - span.from_us == 23 * 3600 * 1_000_000


@pytest.mark.parametrize(
    "text",
    ["", " ", "👍", "\0", "999 decades ago and 2023-02-30", "on 31 June", "9999999999 years ago", "２０２２", "in the"],
)
def test_no_time(text: str) -> None:
    """What no calendar has is no time, and no error."""
    assert times_in(text, AT) == []


@pytest.mark.parametrize("at", [-(10**18), 10**18, 253402300799_000000, -62135596800_000000])
def test_far_moments(at: int) -> None:
    """At the ends of the calendar a text names no time that lies beyond them."""
    for span in times_in("yesterday, tomorrow, last year, next decade", at):
        assert span.from_us < span.to_us


@pytest.mark.parametrize(
    "piece", ["7-7-7-", "the week before ", "on the 7th, ", "Monday, ", "from May to ", "in 2 weeks ", "/a.b_c-d", "'"]
)
def test_linear(piece: str) -> None:
    """Twice the text is at most about twice the work, counted in function calls."""
    once, twice = (_calls(piece * (size // len(piece))) for size in (4_000, 8_000))
    assert twice <= 2.2 * once + 100


def _calls(text: str) -> int:
    count = 0

    def step(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(step)
    try:
        times_in(text, AT)
    finally:
        sys.setprofile(None)
    return count
