"""The words of a text, said at a moment, as expressions of time are read in them: numbers, months, years, tenses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import NamedTuple

from vmstore.relevance.time.intervals import DAY, MONTHS, PARTS, Interval, hours, midnight, time_of_day
from vmstore.relevance.time.tense import tense
from vmstore.relevance.time.time_words import NUMBERS, SHORT_MONTHS, VAGUE

YEARS = range(1900, 2101)


class Expression(NamedTuple):
    """An expression: where the words after it begin, its interval, whether it names its year."""

    end: int
    interval: Interval
    dated: bool = False


class TimeSentence:
    """Words of one text, said at a moment of the speaker's clock."""

    def __init__(self, tokens: Sequence[str], words: Sequence[str], at: datetime, question: bool, zone: tzinfo) -> None:
        self._tokens = tokens
        self._words = words
        self._at = at
        self._question = question
        self._zone = zone
        self._spoken: Interval | None = None  # the last one read: what "three days later" counts from
        self._year: int | None = None  # said with the end of a range, for its begin

    # The words around a place.

    def _word(self, place: int) -> str:
        return self._words[place] if 0 <= place < len(self._words) else ""

    def _tense(self, start: int, stop: int) -> int:
        return tense(self._words, start, stop, self._question)

    def _number(self, place: int) -> int | None:
        """A day of the month, as '7' or '7th'."""
        word = self._word(place)
        if word[-2:] in ("st", "nd", "rd", "th"):
            word = word[:-2]
        return int(word) if word.isascii() and word.isdigit() and len(word) < 3 and 1 <= int(word) <= 31 else None

    def _month(self, place: int) -> int | None:
        word = self._word(place)
        return MONTHS.get(word) or SHORT_MONTHS.get(word)

    def _year_at(self, place: int) -> tuple[int, int] | None:
        """A year that stands at a place, 'of' and a comma before it or not, and where the words after it begin."""
        if self._word(place) in ("of", ",", "in"):
            place += 1
        word = self._word(place)
        if word.isascii() and word.isdigit() and len(word) == 4 and int(word) in YEARS:
            return int(word), place + 1
        if word[:1] == "'" and word[1:].isdigit():
            return int(word[1:]) + (2000 if int(word[1:]) < self._at.year % 100 + 20 else 1900), place + 1
        step = {"last": -1, "this": 0, "next": 1}.get(word)
        if step is not None and self._word(place + 1) == "year":
            return self._at.year + step, place + 2
        return None

    def _quantity(self, place: int) -> tuple[float, int, int] | None:
        """How many, by how much more or fewer, and where the words after it begin."""
        word = self._word(place)
        if word in ("a", "an") and self._word(place + 1) in ("couple", "few", "dozen", "half"):
            place, word = place + 1, self._word(place + 1)
        if word in VAGUE:
            place += self._word(place + 1) == "of"
            return (*VAGUE[word], place + 1)
        if word == "half":
            return 0.5, 0, place + (2 if self._word(place + 1) in ("a", "an") else 1)
        if word in NUMBERS:
            return NUMBERS[word], 0, place + 1
        return (int(word), 0, place + 1) if word.isascii() and word.isdigit() and len(word) < 5 else None

    # Which year, which day of the clock.

    def _yearless(self, make: Callable[[int], Interval], start: int, stop: int) -> Interval:
        """What comes each year, in the year that the sentence means."""
        if self._year is not None:
            return make(self._year)
        near = [each for each in (_made(make, self._at.year + shift) for shift in range(-4, 5)) if each is not None]
        direction = self._tense(start, stop)
        if direction < 0:
            return max(each for each in near if each.start <= self._at)
        if direction > 1 and not self._recent(start):
            return min(each for each in near if each.stop > self._at)
        return min(near, key=lambda each: abs(each.start + (each.stop - each.start) / 2 - self._at))

    def _recent(self, start: int) -> bool:
        return self._word(start - 1) == "since"

    def _within_day(self, spoken: Expression) -> Expression:
        """A day narrowed to the part of it, or the hour, that follows it in the text."""
        interval = spoken.interval
        if interval.stop - interval.start != DAY or interval.start != midnight(interval.start):
            return spoken
        word = self._word(spoken.end)
        if word in PARTS:
            return spoken._replace(end=spoken.end + 1, interval=hours(interval.start, *PARTS[word]))
        if word in ("at", "around", ",", "@"):
            clock = self._clock(spoken.end + 1)
            if clock is not None:
                return spoken._replace(end=clock[1], interval=time_of_day(interval.start, clock[0]))
        return spoken

    def _clock(self, place: int) -> tuple[tuple[int, int], int] | None:
        """A time of day in minutes, with how long it may mean, and where the words after it begin."""
        word = self._word(place)
        if word in ("noon", "midnight"):
            return (720 if word == "noon" else 0, 60), place + 1
        match = re.match(r"(\d\d?)(?::(\d\d))?(am|pm)?$", word)
        if match is None:
            return None
        hour, minute, half, end = int(match[1]), int(match[2] or 0), match[3], place + 1
        if half is None and self._word(end) in ("am", "pm"):
            half, end = self._word(end), end + 1
        if minute > 59 or hour > (23 if half is None else 12) or (half is None and match[2] is None):
            return None
        if half is not None:
            hour = hour % 12 + (12 if half == "pm" else 0)
        return (hour * 60 + minute, 1 if match[2] else 60), end


def _made(make: Callable[[int], Interval], year: int) -> Interval | None:
    try:
        return make(year)
    except (OverflowError, ValueError):  # 29 February, which not each year has
        return None
