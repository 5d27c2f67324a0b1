"""Days, weeks, months, seasons and years as intervals of a calendar; pure, and in no zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)
MONTHS: Final = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6,
    "july": 7, "august": 8, "september": 9, "october": 10, "november": 11, "december": 12,
}  # fmt: skip
DAYS: Final = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6
}  # fmt: skip
SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month each begins with, three months long, as in the northern half of the world."""
HOLIDAYS: Final = {
    "christmas": (12, 25),
    "christmas eve": (12, 24),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "new year's": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "valentine's": (2, 14),
}

PARTS: Final = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
"""The hours of a part of the day; a night ends with the next day's morning."""

_HALVES: Final = {
    "hour": (30, "minute"), "day": (12, "hour"), "month": (2, "week"), "year": (6, "month"), "decade": (5, "year")
}  # fmt: skip


class Interval(NamedTuple):
    """From a moment to another, which no longer belongs to it; both of one calendar."""

    start: datetime
    stop: datetime

    def wider(self, by: timedelta) -> Interval:
        """The interval, by so much longer on both sides."""
        return Interval(self.start - by, self.stop + by)


def midnight(moment: datetime) -> datetime:
    """When its day began."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def day(moment: datetime, shift: int = 0) -> Interval:
    """The day of a moment, or one so many days later."""
    start = midnight(moment) + shift * DAY
    return Interval(start, start + DAY)


def week(moment: datetime, shift: int = 0) -> Interval:
    """The week of a moment, from Monday, or one so many weeks later."""
    start = midnight(moment) - moment.weekday() * DAY + shift * WEEK
    return Interval(start, start + WEEK)


def weekend(moment: datetime, shift: int = 0) -> Interval:
    """Saturday and Sunday of the week of a moment, or of one so many weeks later."""
    start = week(moment, shift).start + 5 * DAY
    return Interval(start, start + 2 * DAY)


def months(year: int, month: int, count: int = 1) -> Interval:
    """So many whole months from one on; `month` counts on over the end of its year, and back."""
    return Interval(_first(year, month), _first(year, month + count))


def _first(year: int, month: int) -> datetime:
    years, rest = divmod(month - 1, 12)
    return datetime(year + years, rest + 1, 1)


def season(name: str, year: int) -> Interval:
    """The season that begins in a year."""
    return months(year, SEASONS[name], 3)


def years(year: int, count: int = 1) -> Interval:
    """So many whole years from one on."""
    return Interval(datetime(year, 1, 1), datetime(year + count, 1, 1))


def holiday(name: str, year: int) -> Interval:
    """The day of a holiday in a year."""
    if name == "easter":
        return day(_easter(year))
    if name == "thanksgiving":
        first = datetime(year, 11, 1)
        return day(first, (3 - first.weekday()) % 7 + 21)
    month, number = HOLIDAYS[name]
    return day(datetime(year, month, number))


def _easter(year: int) -> datetime:
    """Easter Sunday of the Gregorian calendar, by the method of Meeus, Jones and Butcher."""
    century, rest = divmod(year, 100)
    lunar = (19 * (year % 19) + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekly = (32 + 2 * (century % 4) + 2 * (rest // 4) - lunar - rest % 4) % 7
    late = (year % 19 + 11 * lunar + 22 * weekly) // 451
    month, number = divmod(lunar + weekly - 7 * late + 114, 31)
    return datetime(year, month, number + 1)


def part(of: Interval, third: int) -> Interval:
    """The first, middle or last third of an interval (0, 1, 2): by months where it has at least three, else by days."""
    days = (of.stop - of.start) // DAY
    if days > 80:
        whole = (of.stop.year - of.start.year) * 12 + of.stop.month - of.start.month
        cuts = [months(of.start.year, of.start.month + whole * cut // 3).start for cut in range(4)]
        return Interval(cuts[third], cuts[third + 1])
    return Interval(of.start + days * third // 3 * DAY, of.start + days * (third + 1) // 3 * DAY)


def nth(of: Interval, number: int, unit: str) -> Interval | None:
    """The so-manieth day, week, weekend or weekday of an interval, -1 for the last; None where it has not as many."""
    if unit in ("day", "week"):
        size = DAY if unit == "day" else WEEK
        start = of.start + (number - 1) * size if number > 0 else of.stop - size
        piece = Interval(start, start + size)
    else:
        weekday = 5 if unit == "weekend" else DAYS[unit]
        size = 2 * DAY if unit == "weekend" else DAY
        if number > 0:
            start = of.start + ((weekday - of.start.weekday()) % 7 + 7 * (number - 1)) * DAY
        else:
            start = of.stop - (1 + (of.stop.weekday() - 1 - weekday) % 7) * DAY
        piece = Interval(start, start + size)
    return piece if of.start <= piece.start < of.stop else None


def hours(start: datetime, first: int, last: int) -> Interval:
    """The hours of a day from one to another, which may be of the next day."""
    return Interval(start + timedelta(hours=first), start + timedelta(hours=last))


def time_of_day(start: datetime, minutes: tuple[int, int]) -> Interval:
    """So many minutes of a day, from one on."""
    begin = start + timedelta(minutes=minutes[0])
    return Interval(begin, begin + timedelta(minutes=minutes[1]))


def same_day(at: datetime, sign: int, number: float, unit: str) -> Interval:
    """The day of so many months or years before or after, the last one of a shorter month."""
    size = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
    month = months(at.year, at.month + sign * round(number * size))
    return day(min(month.start + (at.day - 1) * DAY, month.stop - DAY))


def moved(base: Interval, sign: int, number: float, spread: int, unit: str, exact: bool = False) -> Interval:
    """What lies so many units before or after an interval; as vague as the unit, unless it is meant to the day."""
    if number == 0.5:
        if unit not in _HALVES:
            raise ValueError(f"nobody halves a {unit}")
        number, unit = _HALVES[unit]
    count = int(number)
    anchor = base.start if sign < 0 or base.start == base.stop or exact else base.stop - timedelta(microseconds=1)
    if unit in ("second", "minute", "hour"):
        size = timedelta(**{f"{unit}s": 1})
        return Interval(*(anchor + sign * count * size,) * 2).wider(size / 2 + spread * size)
    if unit in ("week", "fortnight"):
        days = 7 if unit == "week" else 14
        about = day(anchor, sign * count * days)
        return about if exact else about.wider((3 + spread * days) * DAY)
    if unit in ("month", "quarter"):
        size_months = 1 if unit == "month" else 3
        shift = sign * count * size_months - spread * size_months
        return months(anchor.year, anchor.month + shift, 1 + 2 * spread * size_months)
    if unit in ("year", "decade"):
        around = spread if unit == "year" else 1
        return years(anchor.year + sign * count * (1 if unit == "year" else 10) - around, 1 + 2 * around)
    if unit in SEASONS or unit in DAYS or unit in ("weekend", "night"):
        return _named(anchor, sign, count, unit)
    return day(anchor, sign * count).wider(spread * DAY)


def _named(anchor: datetime, sign: int, count: int, unit: str) -> Interval:
    if unit == "weekend":
        return weekend(anchor, sign * count)
    if unit == "night":
        return hours(midnight(anchor) + sign * count * DAY, *PARTS["night"])
    if unit in DAYS:
        past = (anchor.weekday() - DAYS[unit] - 1) % 7 + 1
        return day(anchor, -past - 7 * (count - 1)) if sign < 0 else day(anchor, 7 * count - past % 7)
    near = [season(unit, anchor.year + each) for each in range(-count - 2, count + 3)]
    if sign < 0:
        return sorted(each for each in near if each.stop <= anchor)[-count]
    return sorted(each for each in near if each.start > anchor)[count - 1]


def holding(base: Interval, unit: str) -> Interval | None:
    """The unit that a day lies in."""
    if base.stop - base.start > 7 * DAY:
        return base if unit in ("month", "year") else None
    if unit == "week":
        return week(base.start)
    if unit == "weekend":
        return weekend(base.start)
    return base if unit == "day" else None


def neighbour(base: Interval, unit: str, after: bool) -> Interval | None:
    """The unit that stands before an interval, or after it."""
    edge = base.stop - timedelta(microseconds=1) if after else base.start
    if unit == "day":
        return day(edge, 1 if after else -1)
    if unit == "week":
        start = midnight(edge) + DAY if after else midnight(edge) - 7 * DAY
        return Interval(start, start + 7 * DAY)
    if unit == "month":
        return months(edge.year, edge.month + (1 if after else -1))
    if unit == "year":
        return years(edge.year + (1 if after else -1))
    if unit in PARTS:
        return hours(midnight(edge) + (DAY if after else -DAY), *PARTS[unit])
    number = 5 if unit == "weekend" else DAYS.get(unit, 0)
    days = 2 if unit == "weekend" else 1
    if after:
        start = midnight(edge) + ((number - edge.weekday() - 1) % 7 + 1) * DAY
    else:
        start = midnight(edge) - ((edge.weekday() - number - days) % 7 + days) * DAY
    return Interval(start, start + days * DAY)
