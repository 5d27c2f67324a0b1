"""Expressions of time in the words of a text, read from one place on; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from vmstore.relevance.time import intervals
from vmstore.relevance.time.intervals import (
    DAY,
    DAYS,
    MONTHS,
    PARTS,
    Interval,
    day,
    holding,
    hours,
    midnight,
    months,
    moved,
    neighbour,
    same_day,
    time_of_day,
    week,
    weekend,
    years,
)  # fmt: skip
from vmstore.relevance.time.time_sentence import Expression, TimeSentence
from vmstore.relevance.time.time_words import (
    AFTER_A_DAY,
    AT,
    BESIDE,
    CLEAR_MONTHS,
    DATES,
    END_IN_S,
    GENERIC,
    GLUE,
    LAST,
    NEXT,
    NOT_HOLIDAYS,
    NUMBERS,
    ORDINALS,
    SHORT_DAYS,
    SHORT_MONTHS,
    TENS,
    THIRDS,
    TO,
    UNITS,
    VAGUE,
    VERBS,
)  # fmt: skip

DEPTH_MAX = 4  # of expressions in one another: the day before the Friday before the week of 9 June


class ExpressionReader(TimeSentence):
    """Reads expressions in the words of one text, said at a moment of the speaker's clock."""

    def read(self, place: int, depth: int = 0) -> Expression | None:
        """The expression that begins with a word, the longest first; None where none does."""
        word = self._word(place)
        rules = _RULES.get(word, _NUMERIC if word[:1].isdigit() else ())
        for rule in rules if depth < DEPTH_MAX else ():
            try:
                spoken = rule(self, place, depth)
            except (OverflowError, ValueError):  # no calendar has it
                continue
            if spoken is not None:
                spoken = self._within_day(spoken)
                self._spoken = spoken.interval
                return spoken
        return None

    # The rules: each reads one kind of expression, or gives None.

    def _today(self, place: int, depth: int) -> Expression | None:
        shift = {"yesterday": -1, "tomorrow": 1}.get(self._word(place), 0)
        if self._word(place) == "tonight":
            return Expression(place + 1, hours(midnight(self._at), 18, 30))
        return Expression(place + 1, day(self._at, shift))

    def _written(self, place: int, depth: int) -> Expression | None:
        """A date in figures, with its time or without."""
        token = self._tokens[place]
        for form, year_first in DATES:
            match = form.match(token)
            if match is not None:
                first, second, third = map(int, match.groups())
                if year_first:
                    return Expression(place + 1, day(datetime(first, second, third)), True)
                month, number = (first, second) if first <= 12 and "/" in token else (second, first)
                return Expression(place + 1, day(datetime(third, month, number)), True)
        if len(token) < 16 or token[4] != "-":
            return None
        moment = datetime.fromisoformat(token.replace(",", "."))
        if moment.tzinfo is not None:
            moment = moment.astimezone(self._zone).replace(tzinfo=None)
        length = timedelta(seconds=1) if token.count(":") - token[19:].count(":") > 1 else timedelta(minutes=1)
        return Expression(place + 1, Interval(moment, moment + length), True)

    def _hour(self, place: int, depth: int) -> Expression | None:
        """A time of day before its day, or one of today."""
        clock = self._clock(place)
        if clock is None:
            return None
        end = clock[1] + (self._word(clock[1]) == "on")
        spoken = self.read(end, depth + 1) if self._word(end) in STARTS else None
        if spoken is not None and spoken.interval.stop - spoken.interval.start == DAY:
            return spoken._replace(interval=time_of_day(spoken.interval.start, clock[0]))
        if self._word(place - 1) not in ("at", "by", "until", "since", "around"):
            return None
        return Expression(clock[1], time_of_day(midnight(self._at), clock[0]))

    def _day_month(self, place: int, depth: int) -> Expression | None:
        """7 May, 7th of May 2023, 3 to 7 May."""
        number = self._number(place)
        if number is None:
            return None
        last, end = number, place + 1
        if self._word(end) in TO and self._number(end + 1) is not None:
            last, end = self._number(end + 1) or 0, end + 2
        end += self._word(end) == "of"
        month = self._month(end)
        if month is None or last < number or (self._word(end) in VERBS and not self._is_date(place, end)):
            return None
        return self._dates(place, end + 1, month, number, last)

    def _is_date(self, place: int, month: int) -> bool:
        """Whether 'may' or 'march' beside a number is the month."""
        lower = self._tokens[month][:1].islower()
        return not lower or self._word(place - 1) in {*AT, "the"} or self._year_at(max(place, month) + 1) is not None

    def _dates(self, start: int, end: int, month: int, first: int, last: int) -> Expression:
        year = self._year_at(end)

        def make(of: int) -> Interval:
            days = months(of, month)
            if last > (days.stop - days.start) // DAY:
                raise ValueError(f"no month {month} of {of} has a day {last}")
            return Interval(days.start + (first - 1) * DAY, days.start + last * DAY)

        if year is not None:
            return Expression(year[1], make(year[0]), True)
        return Expression(end, self._yearless(make, start, end))

    def _month_word(self, place: int, depth: int) -> Expression | None:
        """May 7, May 3-7, May 2023, in May."""
        word, month, before = self._word(place), self._month(place) or 0, self._word(place - 1)
        after = place + 1 + (self._word(place + 1) in ("the", "."))
        number = self._number(after)
        if number is not None and self._word(after + 1) != ":" and (word not in VERBS or self._is_date(place, place)):
            last, end = number, after + 1
            if self._word(end) in TO and (self._number(end + 1) or 0) > number and self._month(end + 2) is None:
                last, end = self._number(end + 1) or 0, end + 2
            return self._dates(place, end, month, number, last)
        year = self._year_at(place + 1)
        if year is not None and (self._word(place + 1) != "in" or before in AT):
            return Expression(year[1], months(year[0], month), True)
        named = word in MONTHS and (word in CLEAR_MONTHS or before in AT)
        of_verb = word in VERBS and before in ("and", "to", "-", "on", "this", "about", "of")
        ends_range = depth > 0 and before in ("and", "to", "of")
        if not named or ((before in GENERIC or of_verb) and not ends_range):
            return None
        return Expression(place + 1, self._yearless(lambda year: months(year, month), place, place + 1))

    def _year_word(self, place: int, depth: int) -> Expression | None:
        word = self._word(place)
        decade = re.match(r"(19|20)?(\d0)s$", word)
        if decade is not None:
            if decade[1] is None and self._word(place - 1) not in ("the", "early", "mid", "late", "-"):
                return None
            return Expression(place + 1, years(int((decade[1] or "19") + decade[2]), 10), True)
        year = self._year_at(place) if word.isdigit() else None
        before, after = self._word(place - 1), self._word(place + 1)
        if year is None or before not in AT - {"by", "on", "last", "next", "this", "over", "for", "about"}:
            return None
        plural = after.endswith("s") and after not in END_IN_S
        if (
            plural
            or after in UNITS
            or after[:1] in GLUE
            or after in ("ms", "kb", "mb", "at", "%", "to", "-")
            or (before in ("or", "to") and not depth)
        ):
            return None
        if before == "of" and not depth:
            return None
        return Expression(year[1], years(year[0]), True)

    def _decade_word(self, place: int, depth: int) -> Expression | None:
        if self._word(place - 1) not in ("the", "early", "mid", "late", "-"):
            return None
        return Expression(place + 1, years(TENS[self._word(place)], 10), True)

    def _weekday(self, place: int, depth: int) -> Expression | None:
        word, before = self._word(place), self._word(place - 1)
        if before in GENERIC:
            return None
        if word in SHORT_DAYS and (self._tokens[place].islower() or before not in {*AT, "", "("} - {"of", "and", "-"}):
            return None
        number = DAYS[word] if word in DAYS else SHORT_DAYS[word]
        after = place + 1 + (self._word(place + 1) == ",")
        if self._word(after)[:1].isdigit() or self._month(after) is not None or self._word(after) == "the":
            dated = self.read(after, depth + 1)
            if (
                dated is not None
                and dated.interval.start.weekday() == number
                and dated.interval.stop - dated.interval.start <= DAY
            ):
                return dated
        past = timedelta(days=(self._at.weekday() - number - 1) % 7 + 1)
        direction = self._tense(place, place + 1)
        if direction > 0 and not self._recent(place):
            return Expression(place + 1, day(self._at - past + 7 * DAY * (1 if past.days < 7 else 2)))
        return Expression(place + 1, day(self._at - past))

    def _season(self, place: int, depth: int) -> Expression | None:
        word, before = self._word(place), self._word(place - 1)
        year = self._year_at(place + 1)
        if year is not None and self._word(place + 1) != "in" and before not in GENERIC:
            return Expression(year[1], intervals.season(word, year[0]), True)
        if before == "the":
            before = self._word(place - 2)
        after = self._tokens[place + 1] if place + 1 < len(self._tokens) else ""
        if before not in ("in", "since", "until", "till", "during", "by", "over", "throughout", "through"):
            return None
        if after[:1].isupper() and after != "I":
            return None
        return Expression(place + 1, self._yearless(lambda year: intervals.season(word, year), place, place + 1))

    def _holiday(self, place: int, depth: int) -> Expression | None:
        word, end = self._word(place), place + 1
        if word == "new":
            word, end = f"new {self._word(end)}", end + 1
        for more in ("eve", "day"):
            if self._word(end) == more:
                word, end = f"{word} {more}", end + 1
                break
        name = word.removesuffix(" day") if word.startswith(("christmas", "easter", "thanksgiving")) else word
        if (name not in intervals.HOLIDAYS and name not in ("easter", "thanksgiving")) or self._word(
            place - 1
        ) in GENERIC:
            return None
        year = self._year_at(end)
        if year is not None and self._word(end) != "in":
            return Expression(year[1], intervals.holiday(name, year[0]), True)
        if self._word(end) in NOT_HOLIDAYS:
            return None
        return Expression(end, self._yearless(lambda of: intervals.holiday(name, of), place, end))

    def _quarter(self, place: int, depth: int) -> Expression | None:
        number = int(self._word(place)[1])
        year = self._year_at(place + 1)
        if year is None and self._word(place - 1) not in AT:
            return None
        if year is not None and self._word(place + 1) != "in":
            return Expression(year[1], months(year[0], 3 * number - 2, 3), True)
        return Expression(place + 1, self._yearless(lambda of: months(of, 3 * number - 2, 3), place, place + 1))

    def _amount(self, place: int, depth: int) -> Expression | None:
        """Two weeks ago, 3 days later, an hour from now, two days before Christmas."""
        much = self._quantity(place)
        if much is None:
            return None
        number, spread, end = much
        unit = UNITS.get(self._word(end)) or (
            self._word(end).removesuffix("s") if self._word(end).removesuffix("s") in DAYS else None
        )
        if unit is None:
            return None
        tail, after = self._word(end + 1), self._word(end + 2)
        here = Interval(self._at, self._at)
        if tail in ("ago", "back"):
            return Expression(end + 2, moved(here, -1, number, spread, unit))
        if tail in ("later", "afterwards") or (tail == "after" and after == "that"):
            return Expression(end + 2 + (tail == "after"), moved(self._spoken or here, 1, number, spread, unit))
        if tail in ("earlier", "before", "prior") and after in ("", ".", ",", ";", "!", "?", "that"):
            earlier = self._spoken or here
            return Expression(end + 2 + (after == "that"), moved(earlier, -1, number, spread, unit))
        if tail == "from" and after == "now":
            return Expression(end + 3, moved(here, 1, number, spread, unit, exact=unit in ("day", "week")))
        if tail in ("from", "before", "after"):
            base = self.read(end + 2, depth + 1)
            if base is not None:
                sign = -1 if tail == "before" else 1
                return base._replace(interval=moved(base.interval, sign, number, spread, unit, exact=tail == "from"))
        return None

    def _ahead(self, place: int, depth: int) -> Expression | None:
        """In two weeks, where the sentence speaks of what will be."""
        much = self._quantity(place + 1)
        unit = UNITS.get(self._word(much[2])) if much is not None else None
        if (
            much is None
            or unit is None
            or unit in ("second", "minute", "hour", "night")
            or self._tense(place, much[2] + 1) < 1
        ):
            return None
        if self._word(much[2] + 1) in ("of", "after", "from", "before"):
            return None
        return Expression(much[2] + 1, moved(Interval(self._at, self._at), 1, much[0], much[1], unit))

    def _beside(self, place: int, depth: int) -> Expression | None:
        """The week before 9 June, the day after tomorrow, the week of 12 June, the year before last."""
        place += self._word(place) == "the"
        unit, how = self._word(place), self._word(place + 1)
        if how not in ("before", "after", "of") or not (unit in BESIDE or unit in DAYS):
            return None
        if how == "before" and self._word(place + 2) == "last":
            spoken = self._relative(unit, -2)
            return None if spoken is None else Expression(place + 3, spoken)
        base = self.read(place + 2 + (self._word(place + 2) == "the" and how != "of"), depth + 1)
        if base is None:
            return None
        interval = holding(base.interval, unit) if how == "of" else neighbour(base.interval, unit, how == "after")
        return None if interval is None else base._replace(interval=interval)

    def _which(self, place: int, depth: int) -> Expression | None:
        """Last week, this summer, next Friday, the past three days, the next morning."""
        rolling = self._word(place) == "the"
        place += rolling
        if rolling and self._word(place) == "weekend":
            return self._weekend(place)
        word, end = self._word(place), place + 1
        if word == "this" and self._word(end) in ("past", "last", "coming", "next"):
            word, end = self._word(end), end + 1
        if word not in LAST and word not in NEXT and (word != "this" or rolling):
            return None
        shift = 0 if word == "this" else -1 if word in LAST else 1
        much = self._quantity(end)
        if much is not None and shift:
            unit = UNITS.get(self._word(much[2]))
            rolled = unit is not None and unit not in intervals.SEASONS and unit not in ("night", "weekend")
            return Expression(much[2] + 1, self._rolled(shift, much[0], unit or "")) if rolled else None
        unit = self._word(end)
        if self._word(end + 1) == "of":
            return None
        if unit in ("day", "morning", "evening", "afternoon", "night") and shift > 0 and self._spoken is not None:
            after = day(self._spoken.stop - timedelta(microseconds=1), 1)
            return Expression(end + 1, after if unit == "day" else hours(after.start, *PARTS[unit]))
        if word == "following" and not self._spoken:
            return None
        if rolling and shift and unit in ("week", "month", "year", "hour", "decade", "fortnight"):
            if shift > 0 and self._spoken is not None:
                return Expression(end + 1, neighbour(self._spoken, unit, True) or self._spoken)
            return Expression(end + 1, self._rolled(shift, 1, unit))
        if word == "past" and unit == "weekend":
            rolling = False
        if (
            rolling
            and unit not in ("weekend",)
            and unit not in DAYS
            and unit not in MONTHS
            and unit not in intervals.SEASONS
        ):
            return None
        if rolling and not shift:
            return None
        spoken = self._relative(unit, shift, (place, end + 1))
        return None if spoken is None else Expression(end + 1, spoken)

    def _weekend(self, place: int) -> Expression | None:
        """The weekend: the last one, or where the sentence speaks of the future the next."""
        if self._word(place + 1) == "of":
            return None
        this = weekend(self._at)
        over = self._word(place - 2) == "over"  # "anything fun over the weekend?" asks of the last one
        if self._tense(place - 1, place + 1) > over:
            return Expression(place + 1, this if this.stop > self._at else weekend(self._at, 1))
        return Expression(place + 1, this if this.start <= self._at else weekend(self._at, -1))

    def _other_day(self, place: int, depth: int) -> Expression | None:
        """The other day: one of the seven before today."""
        if (self._word(place + 1), self._word(place + 2)) not in (("other", "day"), ("other", "night")):
            return None
        return Expression(place + 3, Interval(day(self._at, -7).start, midnight(self._at)))

    def _rolled(self, shift: int, number: float, unit: str) -> Interval:
        """The time up to now, or from now, of so many units."""
        other = moved(Interval(self._at, self._at), shift, number, 0, unit, exact=True)
        if unit in ("month", "quarter", "year", "decade"):
            other = same_day(self._at, shift, number, unit)
        return Interval(other.start, self._at) if shift < 0 else Interval(self._at, other.stop)

    def _relative(self, unit: str, shift: int, place: tuple[int, int] = (0, 0)) -> Interval | None:
        """A unit of the calendar, or a named one, so many before or after the one of now."""
        at = self._at
        if unit in ("morning", "afternoon", "evening", "night"):
            if shift > 0 or (shift < -1 and unit != "night"):
                return None
            return hours(midnight(at) + shift * DAY, *PARTS[unit])
        simple: dict[str, Callable[[], Interval]] = {
            "week": lambda: week(at, shift),
            "weekend": lambda: weekend(at, shift),
            "month": lambda: months(at.year, at.month + shift),
            "quarter": lambda: months(at.year, (at.month - 1) // 3 * 3 + 1 + 3 * shift, 3),
            "year": lambda: years(at.year + shift),
            "decade": lambda: years(at.year // 10 * 10 + 10 * shift, 10),
            "hour": lambda: Interval(at + timedelta(hours=min(shift, 0)), at + timedelta(hours=1 + max(shift, 0))),
        }
        if unit in simple:
            return simple[unit]()
        if unit in DAYS or (unit in SHORT_DAYS and unit not in ("sat", "sun", "wed")):
            return self._weekday_of(DAYS.get(unit, SHORT_DAYS.get(unit, 0)), shift, place)
        make: Callable[[int], Interval]
        if unit in MONTHS:
            make = lambda year: months(year, MONTHS[unit])  # noqa: E731
        elif unit in intervals.SEASONS:
            make = lambda year: intervals.season(unit, year)  # noqa: E731
        elif unit in intervals.HOLIDAYS or unit in ("easter", "thanksgiving"):
            make = lambda year: intervals.holiday(unit, year)  # noqa: E731
        else:
            return None
        return self._of_years(make, shift, place)

    def _weekday_of(self, number: int, shift: int, place: tuple[int, int]) -> Interval:
        past = (self._at.weekday() - number - 1) % 7 + 1
        if shift < 0:
            return day(self._at, -past + 7 * (shift + 1))
        if shift > 0:
            return day(self._at, 7 - past if past < 7 else 7)
        this = day(self._at, number - self._at.weekday())
        gone = this.stop <= self._at and self._tense(*place) >= 0
        return day(this.start, 7) if gone else this

    def _of_years(self, make: Callable[[int], Interval], shift: int, place: tuple[int, int]) -> Interval:
        """The last, next or this one of what comes each year."""
        near = [make(self._at.year + each) for each in range(-4, 3)]
        if shift < 0:
            return sorted(each for each in near if each.stop <= self._at)[shift]
        if shift > 0:
            return min(each for each in near if each.start > self._at)
        now = [each for each in near if each.start <= self._at < each.stop]
        if now:
            return now[0]
        if self._tense(*place) < 0:
            return max(each for each in near if each.start <= self._at)
        return min(each for each in near if each.start > self._at)

    def _third(self, place: int, depth: int) -> Expression | None:
        """Early 2024, mid-July, the end of the month, late last year."""
        third, end = THIRDS[self._word(place)], place + 1
        end += self._word(end) == "-"
        end += self._word(end) == "of"
        if self._word(end) in ("the", "this") and self._word(end + 1) in ("week", "month", "quarter", "year"):
            spoken: Expression | None = Expression(end + 2, self._relative(self._word(end + 1), 0) or day(self._at))
        elif self._word(place) in ("start", "end", "beginning", "middle") and self._word(end - 1) != "of":
            return None
        elif self._month(end) is not None and self._year_at(end + 1) is None and self._number(end + 1) is None:
            month = self._month(end) or 0
            whole = lambda year: intervals.part(months(year, month), third)  # noqa: E731
            return Expression(end + 1, self._yearless(whole, place, end + 1))
        else:
            spoken = self.read(end, depth + 1)
        if spoken is None or spoken.interval.stop - spoken.interval.start < 5 * DAY:
            return spoken if self._word(place) in ("early", "late") else None
        return spoken._replace(interval=intervals.part(spoken.interval, third))

    def _so_far(self, place: int, depth: int) -> Expression | None:
        """Earlier this week, later today."""
        if self._word(place + 1) not in ("this", "today", "tonight"):
            return None
        spoken = self.read(place + 1, depth + 1)
        if spoken is None:
            return None
        start, stop = spoken.interval
        interval = (
            Interval(start, min(stop, self._at))
            if self._word(place) == "earlier"
            else Interval(max(start, self._at), stop)
        )
        return spoken._replace(interval=interval) if interval.start < interval.stop else None

    def _nth(self, place: int, depth: int) -> Expression | None:
        """The first week of August, the last Friday in May."""
        place += self._word(place) == "the"
        number, unit = ORDINALS.get(self._word(place)), self._word(place + 1)
        if number is None or self._word(place + 2) not in ("of", "in"):
            return None
        if unit not in ("day", "week", "weekend", "quarter", "half") and unit not in DAYS:
            return None
        spoken = self.read(place + 3, depth + 1)
        if spoken is None:
            return None
        if unit in ("quarter", "half"):
            size = 3 if unit == "quarter" else 6
            first = (number - 1) * size if number > 0 else 12 - size
            start = spoken.interval.start
            return spoken._replace(interval=months(start.year, start.month + first, size)) if first < 12 else None
        interval = intervals.nth(spoken.interval, number, unit)
        return None if interval is None else spoken._replace(interval=interval)

    def _the_day(self, place: int, depth: int) -> Expression | None:
        """On the 7th; the 7th of May."""
        number = self._number(place + 1)
        if number is None:
            return None
        dated = self._day_month(place + 1, depth)
        if dated is not None:
            return dated
        before, after = self._word(place - 1), self._word(place + 2)
        if self._word(place + 1).isdigit() or before not in ("on", "by", "until", "from", "since", "before", "after"):
            return None
        if after and after not in AFTER_A_DAY:
            return None
        near = [months(self._at.year, self._at.month + shift) for shift in (-2, -1, 0, 1, 2)]
        days = [each.start + (number - 1) * DAY for each in near if each.start + (number - 1) * DAY < each.stop]
        if self._tense(place, place + 2) > 0:
            return Expression(place + 2, day(min(each for each in days if each + DAY > self._at)))
        return Expression(place + 2, day(max(each for each in days if each <= self._at)))

    def _range(self, place: int, depth: int) -> Expression | None:
        """Between June and August 2022, from 12 to 15 June."""
        first = self._day_month(place + 1, depth)
        if first is not None and first.interval.stop - first.interval.start > DAY:
            return first
        first = self.read(place + 1, depth + 1)
        if first is None or self._word(first.end) not in TO:
            return first
        last = self.read(first.end + 1, depth + 1)
        if last is None:
            return first
        if last.dated and not first.dated:
            kept, self._year = self._year, last.interval.start.year
            first = self.read(place + 1, depth + 1) or first
            self._year = kept
        elif first.dated and not last.dated:
            kept, self._year = self._year, first.interval.start.year
            last = self.read(first.end + 1, depth + 1) or last
            self._year = kept
        if last.interval.stop <= first.interval.start:
            return first
        return Expression(last.end, Interval(first.interval.start, last.interval.stop), first.dated or last.dated)


_Rule = Callable[[ExpressionReader, int, int], Expression | None]
_RULES: dict[str, tuple[_Rule, ...]] = {}
_NUMERIC: Final[tuple[_Rule, ...]] = (
    ExpressionReader._written,
    ExpressionReader._day_month,
    ExpressionReader._amount,
    ExpressionReader._hour,
    ExpressionReader._year_word,
)


def _on(words: Sequence[str], *rules: _Rule) -> None:
    for word in words:
        _RULES[word] = _RULES.get(word, ()) + rules


_on(["today", "yesterday", "tomorrow", "tonight"], ExpressionReader._today)
_on(
    ["the"],
    ExpressionReader._other_day,
    ExpressionReader._nth,
    ExpressionReader._beside,
    ExpressionReader._which,
    ExpressionReader._the_day,
)
_on([*ORDINALS], ExpressionReader._nth)
_on(["day", "night", *DAYS], ExpressionReader._beside)
_on([*LAST, *NEXT, "this"], ExpressionReader._which)
_on([*NUMBERS, *VAGUE, "half"], ExpressionReader._amount)
_on([*MONTHS, *SHORT_MONTHS], ExpressionReader._month_word)
_RULES["may"] = (ExpressionReader._month_word,)
_on([*DAYS, *SHORT_DAYS], ExpressionReader._weekday)
_on([*intervals.SEASONS], ExpressionReader._season)
_on(["christmas", "new", "halloween", "valentine's", "easter", "thanksgiving"], ExpressionReader._holiday)
_on([*THIRDS], ExpressionReader._third)
_on(["earlier", "later"], ExpressionReader._so_far)
_on(["in"], ExpressionReader._ahead)
_on(["between", "from"], ExpressionReader._range)
_on(["q1", "q2", "q3", "q4"], ExpressionReader._quarter)
_on([*TENS], ExpressionReader._decade_word)
_on(["noon", "midnight"], ExpressionReader._hour)
STARTS: Final = frozenset(_RULES)
"""The words an expression can begin with, beside figures."""
