"""A moment has one form, and what has none is refused with the remedy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from vmstore.core.asof import Call, Head, LoggedTime, Position, Time, Turn, as_of
from vmstore.errors import InputError

AT = 1_795_301_701_000_007  # 2026-11-21T22:55:01.000007Z


@pytest.mark.parametrize(
    ("asked", "moment", "text"),
    [
        ({}, Head(), "head"),
        ({"turn": 42}, Turn(42), "turn 42"),
        ({"turn": 0}, Turn(0), "turn 0"),
        ({"call": 7}, Call(7), "call 7"),
        ({"position": 99}, Position(99), "position 99"),
        ({"time": AT}, Time(AT), "time 2026-11-21T22:55:01.000007Z"),
        ({"logged_time": 0}, LoggedTime(0), "logged time 1970-01-01T00:00:00Z"),
    ],
)
def test_each_moment_has_its_type_and_words(asked: dict[str, Any], moment: object, text: str) -> None:
    """Every way to ask gives its own type, and says itself in words."""
    actual = as_of(**asked)
    assert (actual, str(actual)) == (moment, text)


@pytest.mark.parametrize(
    "time",
    [
        AT,
        "2026-11-21T22:55:01.000007Z",
        "2026-11-21T22:55:01.000007",
        "2026-11-21T23:55:01.000007+01:00",
        datetime(2026, 11, 21, 22, 55, 1, 7),
        datetime(2026, 11, 21, 22, 55, 1, 7, UTC),
        datetime(2026, 11, 21, 17, 55, 1, 7, timezone(timedelta(hours=-5))),
    ],
)
def test_a_time_is_the_same_in_every_spelling(time: Any) -> None:
    """Microseconds, datetimes and ISO text of one moment are one moment, UTC where no zone is given."""
    assert as_of(time=time) == Time(AT)
    assert as_of(logged_time=time) == LoggedTime(AT)


@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.none() | st.timezones()))
def test_datetimes_lose_no_microsecond(moment: datetime) -> None:
    """The whole microseconds of any datetime since 1970 come back from its time."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        utc = aware.astimezone(UTC)
    except OverflowError:
        return
    if utc.year >= 1970:
        actual = as_of(time=moment)
        assert isinstance(actual, Time)
        assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=actual.at) == utc


def test_two_moments_at_once_are_refused() -> None:
    """A question is asked of one moment, and the refusal names the two."""
    with refused("two-moments", InputError):
        as_of(turn=1, call=2)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"turn": -1}, "turn -1 is before the beginning"),
        ({"call": True}, "call True is not a whole number"),
        ({"position": 1.0}, "position 1.0 is not a whole number"),
        ({"turn": "4"}, "turn '4' is not a whole number"),
        ({"position": 2**63}, "largest is 9223372036854775807"),
        ({"time": False}, "time False is not a whole number"),
        ({"time": "yesterday"}, "'yesterday' is not ISO 8601"),
        ({"time": datetime(1969, 12, 31)}, "before the beginning"),
        ({"time": datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))}, "before the beginning"),
        ({"logged_time": 2**62}, "logged time 4611686018427387904 is past"),
        ({"logged_time": -5}, "logged time -5 is before"),
    ],
)
def test_what_is_no_moment_is_refused_by_name(asked: dict[str, Any], text: str) -> None:
    """Negatives, booleans, fractions and words that are no time are refused, each by name."""
    with pytest.raises(InputError, match=text):
        as_of(**asked)


def test_moments_of_different_kinds_are_different() -> None:
    """The same number of another kind is another moment."""
    assert len({Turn(3), Call(3), Position(3), Time(3), LoggedTime(3)}) == 5
    assert Turn(3) != Call(3)
