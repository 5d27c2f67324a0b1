"""Days of `remember_when` are those of a time zone: UTC, or the one that is named."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import vmstore
from vmstore.core.clock import ManualClock
from vmstore.core.times import iso, microseconds, zone_of
from vmstore.errors import InputError
from vmstore.store.recall.periods import period

BERLIN, HONOLULU = "Europe/Berlin", "Pacific/Honolulu"
NOW = datetime(2026, 3, 30, 0, 30, tzinfo=UTC)  # Monday 02:30 in Berlin, Sunday 14:30 in Honolulu


def memory_of(*lines: tuple[datetime, str]) -> vmstore.SessionMemory:
    """The memory of a session in which lines were said when they were."""
    store = vmstore.memory_store(clock=ManualClock(microseconds(NOW), 1))
    messages = []
    for at, line in lines:
        messages.append({"role": "user", "content": line})
        store.record("s", {"model": "m", "messages": messages}, None, at_us=microseconds(at))
    return store.session("s").memory


def texts(answer: vmstore.RecallAnswer) -> list[str]:
    """What an answer holds."""
    return [text.text for passage in answer.passages for text in passage.texts if text.found]


def test_a_day_ends_where_its_zone_says() -> None:
    """What was said shortly before midnight in UTC was said the next day in Berlin, and the answer names the zone."""
    memory = memory_of(
        (datetime(2026, 3, 28, 23, 30, tzinfo=UTC), "The late line."),
        (datetime(2026, 3, 29, 12, 0, tzinfo=UTC), "The line at noon."),
        (datetime(2026, 3, 29, 22, 30, tzinfo=UTC), "The last line."),
    )
    here = memory.remember_when(preset="yesterday")
    assert (here.zone, texts(here)) == ("UTC", ["The line at noon.", "The last line."])
    there = memory.remember_when(preset="yesterday", zone=BERLIN)
    assert (there.zone, texts(there)) == (BERLIN, ["The late line.", "The line at noon."])
    assert (iso(there.from_us or 0), iso(there.to_us or 0)) == ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
    assert texts(memory.remember_when(preset="today", zone=BERLIN)) == ["The last line."]
    assert texts(memory.remember_when("late", start="2026-03-29", end="2026-03-29", zone=BERLIN)) == ["The late line."]
    assert texts(memory.remember_when("late", start="2026-03-29", end="2026-03-29")) == []


def test_times_in_texts_are_those_of_the_zone() -> None:
    """A text that speaks of a day is found by the day of the zone that is asked in."""
    memory = memory_of((datetime(2026, 3, 10, 23, 30, tzinfo=UTC), "The museum closes tomorrow."))
    assert texts(memory.remember_when("museum", start="2026-03-12", end="2026-03-12", zone=BERLIN))
    assert not texts(memory.remember_when("museum", start="2026-03-12", end="2026-03-12"))
    assert texts(memory.remember_when("museum", start="2026-03-11", end="2026-03-11"))


@pytest.mark.parametrize(
    ("words", "zone", "begins", "ends"),
    [
        ("today", "UTC", "2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("today", HONOLULU, "2026-03-29T10:00:00Z", "2026-03-30T10:00:00Z"),
        ("yesterday", BERLIN, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),  # 23 hours: clocks were put forward
        ("this_week", HONOLULU, "2026-03-23T10:00:00Z", "2026-03-30T10:00:00Z"),
        ("last_month", BERLIN, "2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z"),
    ],
)
def test_presets_are_of_the_zone(words: str, zone: str, begins: str, ends: str) -> None:
    """A preset begins and ends at midnight there, also where clocks were put forward."""
    asked = period(words, None, None, microseconds(NOW), zone_of(zone))
    assert (iso(asked.from_us or 0), iso(asked.to_us or 0)) == (begins, ends)


def test_a_moment_that_says_its_zone_keeps_it() -> None:
    """A bound with an offset, a moment or a number means the same in every zone."""
    bounds = ("2026-03-29T10:00:00Z", datetime(2026, 3, 29, 10, tzinfo=UTC), microseconds(datetime(2026, 3, 29, 10)))
    for start in bounds:
        asked = {period(None, start, None, microseconds(NOW), zone_of(zone)).from_us for zone in ("UTC", BERLIN)}
        assert asked == {microseconds(datetime(2026, 3, 29, 10))}


@pytest.mark.parametrize("zone", ["Berlin", "", "../etc/passwd", "Europe", "\0"])
def test_a_zone_there_is_none_of_is_refused(zone: str) -> None:
    """A name that is no time zone is refused with one that is."""
    with pytest.raises(InputError, match="is no time zone; name one like 'Europe/Berlin'"):
        memory_of((NOW, "one")).remember_when(preset="today", zone=zone)
