"""Which time is asked about: a preset, bounds, or words like 'the week before 9 June', resolved against now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from vmstore.core.text.suggest import suggest
from vmstore.core.times import iso, microseconds, moment_of
from vmstore.errors import InputError
from vmstore.relevance.time.times import TimeSpan, times_in

PRESETS: Final = (
    "today", "yesterday", "this_week", "last_week", "last_7_days", "this_month", "last_month", "last_30_days",
    "this_year", "last_year", "between_dates",
)  # fmt: skip
BETWEEN: Final = "between_dates"
Bound = str | int | datetime
"""Microseconds, a moment, ISO 8601, or an expression of time."""


_STATED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)\s*$")  # a moment that says its own zone


class Period(NamedTuple):
    """From a moment to before another; None where it is open. `zone` is where days begin and end."""

    from_us: int | None
    to_us: int | None
    zone: tzinfo = UTC

    def holds(self, from_us: int, to_us: int) -> bool:
        """Whether an interval has a part of it."""
        return (self.to_us is None or from_us < self.to_us) and (self.from_us is None or to_us > self.from_us)

    def named_in(self, text: str, at_us: int) -> bool:
        """Whether a text names a time that has a part of it, as seen from when it was said."""
        return any(self.times_in(text, at_us))

    def times_in(self, text: str, at_us: int) -> Iterator[TimeSpan]:
        """The times a text names that have a part of it, as seen from when it was said."""
        return (span for span in _spans(text, at_us, self.zone) if self.holds(span.from_us, span.to_us))


def _there(at_us: int, zone: tzinfo) -> int:
    """What a clock of a zone shows at a moment, as if it were UTC."""
    moment = datetime.fromtimestamp(at_us // 1_000_000, UTC)
    shift = moment.astimezone(zone).utcoffset() or timedelta()
    return at_us + shift // timedelta(microseconds=1)


def _moment(shown_us: int, zone: tzinfo) -> int:
    """The moment at which a clock of a zone shows a time; the first of two where it is put back."""
    local = moment_of(shown_us).replace(tzinfo=zone)
    return microseconds(local)


def _spans(text: str, at_us: int, zone: tzinfo, *, question: bool = False) -> Iterator[TimeSpan]:
    """The times a text names, as seen from a moment in a zone."""
    for time in times_in(text, _there(at_us, zone), question=question):
        if zone is UTC or _STATED.search(text[time.start : time.end]):
            yield time
        else:
            yield time._replace(from_us=_moment(time.from_us, zone), to_us=_moment(time.to_us, zone))


def period(preset: str | None, start: Bound | None, end: Bound | None, now_us: int, zone: tzinfo = UTC) -> Period:
    """The time that is asked about; InputError where nobody can say which it is.

    A bound that is a day is that whole day in the zone, so `end` is included.
    """
    if preset is not None and preset != BETWEEN:
        if start is not None or end is not None:
            raise InputError(f"{preset!r:.60} and bounds say two times; give one, or {BETWEEN!r} with start and end")
        return _worded(preset, now_us, zone)
    if preset == BETWEEN and (start is None or end is None):
        raise InputError(f"{BETWEEN!r} needs start and end, like start='2026-06-01', end='2026-06-30'")
    first = None if start is None else _bound("start", start, now_us, zone)[0]
    last = None if end is None else _bound("end", end, now_us, zone)[1]
    if first is not None and last is not None and last <= first:
        raise InputError(f"the end, {iso(last)}, is not after the start, {iso(first)}; turn them round")
    return Period(first, last, zone)


def _worded(words: str, now_us: int, zone: tzinfo) -> Period:
    found = [*_spans(words.replace("_", " "), now_us, zone, question=True)] if isinstance(words, str) else []
    if len(found) != 1:
        near = suggest(str(words), PRESETS)
        hint = f"did you mean {near!r}? The presets are" if near else "the presets are"
        raise InputError(f"{words!r:.60} is no time; {hint} {', '.join(PRESETS)}, and words like 'in August' do too")
    return Period(found[0].from_us, found[0].to_us, zone)


def _bound(name: str, value: Bound, now_us: int, zone: tzinfo) -> tuple[int, int]:
    if isinstance(value, datetime):
        return microseconds(value), microseconds(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value, value
    found = [*_spans(value, now_us, zone, question=True)] if isinstance(value, str) else []
    if len(found) != 1:
        raise InputError(f"{name} {value!r:.60} is no time; write it like '2026-06-01' or 'last Monday'")
    return found[0].from_us, found[0].to_us
