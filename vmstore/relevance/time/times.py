"""The times a text speaks of: 'yesterday', 'last month', 'the week before 9 June', as intervals; pure.

A time is resolved against the moment its text was said. What it gives is as long as what was said is
vague: a day for 'yesterday', a month for 'last month'. English; a text without such words names no time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from vmstore.core.times import microseconds, moment_of
from vmstore.relevance.time.expressions import STARTS, ExpressionReader
from vmstore.relevance.time.time_sentence import Expression

CHARS_MAX: Final = 1_000_000  # of a text; what stands after them is not read

_TOKEN: Final = re.compile(
    r"(?<![\w./:-])\d{4}-\d\d?-\d\d?(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w/-])"
    r"|(?<![\w./:-])(?:\d{4}/\d\d?/\d\d?|\d\d?/\d\d?/\d{4}|\d\d?\.\d\d?\.\d{4})(?![\w/-])"
    r"|(?<![\w.:])\d\d?:\d\d(?![\w:])"
    r"|\d+(?:[.,]\d+)+\w*|[@#$/\\=]\w[\w.-]*|['’]\d\d(?!\w)|\w+(?:['’]\w+)*|\n|[^\w\s]"
)
_PRECISIONS: Final = (
    ("instant", timedelta(hours=1)),
    ("day", timedelta(hours=25)),
    ("week", timedelta(days=7, hours=1)),
    ("month", timedelta(days=31, hours=1)),
    ("season", timedelta(days=92, hours=1)),
)


class TimeSpan(NamedTuple):
    """A time a text names: where it stands in the text, and from when to before when it is."""

    start: int
    end: int
    from_us: int
    to_us: int

    @property
    def precision(self) -> str:
        """How exactly the time is known: the smallest of instant, day, week, month, season, year that holds it."""
        length = timedelta(microseconds=self.to_us - self.from_us)
        return next((name for name, longest in _PRECISIONS if length <= longest), "year")


def times_in(text: str, at_us: int, *, question: bool = False, zone: tzinfo = UTC) -> list[TimeSpan]:
    """The times that a text names, in their order, as seen from the moment it was said, in its speaker's zone.

    A question asks of the past unless it says otherwise: 'in August' is the last August. A time that no
    calendar has is none. Takes time linear in the length of the text.
    """
    places = [(match.group(), *match.span()) for match in _TOKEN.finditer(text, 0, CHARS_MAX)]
    words = [token.lower().replace("’", "'") for token, _, _ in places]
    if not any(word in STARTS or word[0].isdigit() for word in words):
        return []
    try:
        at = moment_of(at_us).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        return []
    expressions = ExpressionReader([token for token, _, _ in places], words, at, question, zone)
    spans = []
    place = 0
    while place < len(words):
        spoken = expressions.read(place) if words[place] in STARTS or words[place][0].isdigit() else None
        if spoken is None:
            place += 1
            continue
        span = _span(spoken, places[place][1], places[spoken.end - 1][2], zone)
        spans += [] if span is None else [span]
        place = spoken.end
    return spans


def _span(spoken: Expression, start: int, end: int, zone: tzinfo) -> TimeSpan | None:
    try:
        first, last = (microseconds(_aware(moment, zone)) for moment in spoken.interval)
    except (OverflowError, ValueError):
        return None
    return TimeSpan(start, end, first, last) if first < last else None


def _aware(moment: datetime, zone: tzinfo) -> datetime:
    return moment.replace(tzinfo=zone)
