"""Moments of questions: a turn, a call, a position, one of two clocks, or the head.

A turn stands for its end, a call for the moment of its pack. Whether the moment exists is for
the views to say; here it only has a valid form.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import UTC, datetime
from types import FrameType
from typing import TypeAlias, TypedDict

import msgspec

from vmstore.core.text.suggest import suggest
from vmstore.core.times import iso, microseconds
from vmstore.errors import InputError

NUMBER_MAX = 2**63 - 1
TIME_MAX = microseconds(datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC))
assert TIME_MAX < NUMBER_MAX, "a table holds every time that can be asked for"


class Turn(msgspec.Struct, frozen=True, gc=False):
    """The end of a turn; 0 is before the first."""

    number: int

    def __post_init__(self) -> None:
        _check("turn", self.number, NUMBER_MAX)

    def __str__(self) -> str:
        return f"turn {self.number}"


class Call(msgspec.Struct, frozen=True, gc=False):
    """The moment of a call's pack, before its response."""

    number: int

    def __post_init__(self) -> None:
        _check("call", self.number, NUMBER_MAX)

    def __str__(self) -> str:
        return f"call {self.number}"


class Position(msgspec.Struct, frozen=True, gc=False):
    """A mutation of the session, that one included."""

    number: int

    def __post_init__(self) -> None:
        _check("position", self.number, NUMBER_MAX)

    def __str__(self) -> str:
        return f"position {self.number}"


class Time(msgspec.Struct, frozen=True, gc=False):
    """The last position by when things happened, in microseconds since 1970 UTC."""

    at: int

    def __post_init__(self) -> None:
        _check("time", self.at, TIME_MAX)

    def __str__(self) -> str:
        return f"time {iso(self.at)}"


class LoggedTime(msgspec.Struct, frozen=True, gc=False):
    """The last position by when things were logged, in microseconds since 1970 UTC."""

    at: int

    def __post_init__(self) -> None:
        _check("logged time", self.at, TIME_MAX)

    def __str__(self) -> str:
        return f"logged time {iso(self.at)}"


class Head(msgspec.Struct, frozen=True, gc=False):
    """The end of the session as it stands."""

    def __str__(self) -> str:
        return "head"


AsOf: TypeAlias = Turn | Call | Position | Time | LoggedTime | Head
When: TypeAlias = AsOf | int
"""A moment as a caller writes it: an int is a call."""


class Moment(TypedDict, total=False):
    """A moment by name: one of a turn, a call, a position, a time or a time of logging."""

    turn: int | None
    call: int | None
    position: int | None
    time: int | datetime | str | None
    logged_time: int | datetime | str | None


def as_of(
    *,
    turn: int | None = None,
    call: int | None = None,
    position: int | None = None,
    time: int | datetime | str | None = None,
    logged_time: int | datetime | str | None = None,
) -> AsOf:
    """The one moment named, the head where none is.

    A time is microseconds since 1970, a datetime or ISO 8601 text; without a zone it is UTC.
    """
    given = {"turn": turn, "call": call, "position": position, "time": time, "logged_time": logged_time}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(
            f"{' and '.join(named)} are different moments; ask of one of them at a time", code="two-moments"
        )
    if turn is not None:
        return Turn(turn)
    if call is not None:
        return Call(call)
    if position is not None:
        return Position(position)
    if time is not None:
        return Time(_microseconds("time", time))
    if logged_time is not None:
        return LoggedTime(_microseconds("logged time", logged_time))
    return Head()


def one_moment(at: When | None, moment: Moment) -> AsOf:
    """The moment given, as a value or by name, but not both; the head where none is.

    `moment` is what a public method took by keyword; TypeError names that method where a keyword is none.
    """
    if not moment.keys() <= Moment.__annotations__.keys():
        raise TypeError(_unknown_keyword(moment))
    if at is None:
        return as_of(**moment)
    if moment:
        raise InputError(
            "give one moment: either `at` or one of turn, call, position, time, logged_time", code="two-moments"
        )
    if isinstance(at, int):
        return Call(at)
    if not isinstance(at, AsOf):
        raise InputError(
            f"{at!r:.60} is no moment; give a call's number, or turn=, call=, position= or time=", code="not-a-moment"
        )
    return at


def _unknown_keyword(moment: Mapping[str, object]) -> str:
    """Names the method that was called with an unknown keyword, and the keyword that was likely meant.

    Methods pass their keywords on to each other; the outermost one that took this keyword is what was called.
    """
    wrong = next(name for name in moment if name not in Moment.__annotations__)
    frame: FrameType | None = inspect.currentframe()
    called = None
    while frame is not None:
        taken = frame.f_locals.get("moment")
        if isinstance(taken, dict) and wrong in taken and frame.f_code.co_flags & inspect.CO_VARKEYWORDS:
            called = frame.f_code
        frame = frame.f_back
    if called is None:
        return f"a moment has no {wrong!r}; it is one of {', '.join(Moment.__annotations__)}"
    arguments = called.co_argcount + called.co_kwonlyargcount
    names = [*Moment.__annotations__, *called.co_varnames[:arguments]]
    meant = suggest(wrong, [name for name in names if name != "self"])
    remedy = f"; did you mean {meant!r}?" if meant else f"; a moment is one of {', '.join(Moment.__annotations__)}"
    return f"{called.co_qualname}() got an unexpected keyword argument {wrong!r}{remedy}"


def _check(what: str, number: object, limit: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"{what} {number!r} is not a whole number; pass an int from 0 up", code="not-a-moment")
    if number < 0:
        raise InputError(f"{what} {number} is before the beginning; pass an int from 0 up", code="not-a-moment")
    if number > limit:
        raise InputError(f"{what} {number} is past what can be stored; the largest is {limit}", code="not-a-moment")


def _microseconds(what: str, moment: int | datetime | str) -> int:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InputError(
                f"{what} {moment!r} is not ISO 8601; write it like 2026-11-21T22:55:01Z", code="not-a-moment"
            ) from None
    if isinstance(moment, datetime):
        return microseconds(moment)
    return moment
