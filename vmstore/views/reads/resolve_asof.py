"""Resolving the moment of a question: a turn, call, position or time becomes a basis.

A moment that does not exist is an error that names the nearest that does (law 9).
"""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Position, Time, Turn
from vmstore.errors import UnknownError
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import CallRow, last_call


class ResolvedMoment(NamedTuple):
    """The moment an answer holds for; given back, it repeats the answer."""

    position: int
    turn: int
    call: int


class LastMoment(NamedTuple):
    """The last position, turn and call of a session."""

    position: int
    turn: int
    call: int


assert ResolvedMoment._fields == LastMoment._fields, "the head's basis is where the session stands"


def last(lane: Branch) -> LastMoment:
    """The last position, call and turn of a session."""
    row = lane.db.execute("SELECT position, turns, calls FROM sessions WHERE session = ?", (lane.session,)).get
    return LastMoment(*row)


def moment_at(lane: Branch, position: int) -> tuple[int, int]:
    """The turn and the call in force at a position; 0 before the first."""
    stretch = lane.at(position)
    here = (stretch.session, position)
    turn: int | None = lane.db.execute(_TURN, here).get
    call: int | None = lane.db.execute(_CALL, here).get
    return stretch.turn if turn is None else turn, stretch.call if call is None else call


def begin_of(lane: Branch, position: int) -> int:
    """The first position of the commit that holds a position."""
    found: int = lane.db.execute(_BEGIN, (lane.at(position).session, position)).get
    return found


def end_of(lane: Branch, position: int) -> int:
    """The last position of the commit that holds a position: forks and rewinds refer to it."""
    found: int = lane.db.execute(_END, (lane.at(position).session, position)).get
    return found


def basis(lane: Branch, as_of: AsOf) -> ResolvedMoment:
    """The basis of a question about pages, turns or calls as they stood at a moment."""
    end = last(lane)
    if isinstance(as_of, Head):
        return ResolvedMoment(*end)
    position = _position(lane, as_of, end)
    return ResolvedMoment(position, *moment_at(lane, position))


def packed(lane: Branch, as_of: AsOf) -> CallRow:
    """The call that a context shows: a turn's is its last, a position's the last before it."""
    position = _position(lane, as_of, last(lane))
    call = last_call(lane, position)
    if isinstance(as_of, Turn) and (call is None or call.turn != as_of.number):
        raise UnknownError(f"turn {as_of.number} made no call; {_nearest_turn(lane, as_of.number)}", code="no-call-yet")
    if call is None:
        first = _first_call(lane)
        raise UnknownError(
            f"there was no model call at or before position {position}, so there is no context; "
            + (f"the first call is at position {first}" if first else "`vmstore pages` lists the session's messages"),
            code="no-call-yet",
        )
    return call


def _position(lane: Branch, as_of: AsOf, end: LastMoment) -> int:
    """The last position of a moment; raises UnknownError where there is no such moment."""
    match as_of:
        case Head():
            return end.position
        case Position(number):
            _within("position", number, end.position)
            return number
        case Turn(number):
            _within("turn", number, end.turn, first=0)
            return turn_end(lane, number, end)
        case Call(number):
            return call_position(lane, number, end)
        case Time(at):
            return _at_time(lane, "at_max", at, "time")
        case LoggedTime(at):
            return _at_time(lane, "logged_max", at, "logged time")


def turn_end(lane: Branch, turn: int, end: LastMoment) -> int:
    """The last position of a turn."""
    if turn == end.turn:
        return end.position
    stretch = next(s for s in lane.stretches if turn + 1 > s.turn)
    opened: int | None = lane.db.execute(_OPENED, (stretch.session, turn + 1)).get
    assert opened is not None, f"turn {turn + 1} opened somewhere on the lane"
    return opened - 1


def call_position(lane: Branch, call: int, end: LastMoment) -> int:
    """The position of a call's pack."""
    _within("call", call, end.call)
    stretch = next(s for s in lane.stretches if call > s.call)
    packed: int | None = lane.db.execute(_PACKED, (stretch.session, call)).get
    assert packed is not None, f"call {call} was packed somewhere on the lane"
    return packed


def _within(what: str, number: int, end: int, first: int = 1) -> None:
    if end < first:
        raise UnknownError(f"{what} {number} does not exist: the session has no {what} yet", code="no-call")
    if not first <= number <= end:
        nearest = min(max(number, first), end)
        raise UnknownError(
            f"{what} {number} does not exist: the nearest is {what} {nearest} ({first} to {end})", code="no-call"
        )


def _nearest_turn(lane: Branch, turn: int) -> str:
    turns: set[int] = set()
    for stretch in lane.stretches:
        rows = lane.db.execute(
            "SELECT DISTINCT turn FROM calls WHERE session = ? AND position <= ?",
            (stretch.session, stretch.high),
        )
        turns.update(row[0] for row in rows)
    if not turns:
        return "the session has no call yet"
    return f"the nearest turn with one is turn {min(turns, key=lambda t: (abs(t - turn), t))}"


def _first_call(lane: Branch) -> int | None:
    positions = [
        row[0]
        for stretch in lane.stretches
        for row in lane.db.execute(
            "SELECT min(position) FROM calls WHERE session = ? AND position <= ?",
            (stretch.session, stretch.high),
        )
        if row[0] is not None
    ]
    return min(positions, default=None)


def _at_time(lane: Branch, column: str, at: int, word: str) -> int:
    """The last position whose running maximum of a clock is not later than a time."""
    found: list[int] = []
    for stretch in lane.stretches:
        row = lane.db.execute(
            f"SELECT max(last) FROM commits WHERE session = ? AND {column} <= ? AND last <= ?",
            (stretch.session, at, stretch.high),
        ).get
        if row is not None:
            found.append(int(row))
    if not found:
        raise UnknownError(
            f"nothing of the session had happened at that {word}; ask for a later one", code="before-the-first"
        )
    return max(found)


def happened_at(lane: Branch, position: int) -> int:
    """When what stands at a position happened."""
    found: int = lane.db.execute(_HAPPENED, (lane.owner(position), position)).get
    return found


def logged_at(lane: Branch, position: int) -> int:
    """The time of logging of a position, in microseconds; 0 where nothing was logged."""
    at: int | None = lane.db.execute(_LOGGED, (lane.at(position).session, position)).get
    return at or 0


_TURN = "SELECT turn FROM turns WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
_CALL = "SELECT call FROM calls WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
_OPENED = "SELECT position FROM turns WHERE session = ? AND turn = ?"
_PACKED = "SELECT position FROM calls WHERE session = ? AND call = ?"
_BEGIN = "SELECT first FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
_END = "SELECT last FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
_LOGGED = "SELECT logged_max FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
_HAPPENED = "SELECT at FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
