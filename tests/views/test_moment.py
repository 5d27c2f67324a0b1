"""Moments: a turn, call, position or time becomes a basis, or an error that names the nearest."""

from __future__ import annotations

import pytest

from tests.refusals import refused
from tests.views.pen import Pen
from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Position, Time, Turn
from vmstore.errors import UnknownError
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.resolve_asof import packed as packed_call


def packed(lane: Branch, as_of: AsOf) -> tuple[int, int, int]:
    """Position, turn and number of the call that a context shows."""
    call = packed_call(lane, as_of)
    return call.position, call.turn, call.call


@pytest.fixture
def pen() -> Pen:
    """Three turns, the second without a call; the third call happened before the second."""
    pen = Pen()  # open at 1
    pen.turn(at=100)  # 2
    page = pen.page("a", at=100)  # message 3, page 4
    pen.pack(page, at=200)  # call 1 at 5
    pen.turn(at=300)  # 6
    pen.turn(at=400)  # 7
    pen.pack(page, at=500)  # call 2 at 8
    pen.pack(page, at=50)  # call 3 at 9
    return pen


RIGHT: list[tuple[AsOf, tuple[int, int, int]]] = [
    (Head(), (9, 3, 3)),
    (Position(1), (1, 0, 0)),
    (Position(4), (4, 1, 0)),
    (Position(9), (9, 3, 3)),
    (Turn(0), (1, 0, 0)),
    (Turn(1), (5, 1, 1)),
    (Turn(2), (6, 2, 1)),
    (Turn(3), (9, 3, 3)),
    (Call(1), (5, 1, 1)),
    (Call(3), (9, 3, 3)),
    (Time(0), (1, 0, 0)),
    (Time(199), (4, 1, 0)),
    (Time(200), (5, 1, 1)),
    (Time(499), (7, 3, 1)),
    (Time(500), (9, 3, 3)),
    (Time(10**15), (9, 3, 3)),
    (LoggedTime(10**15), (9, 3, 3)),
]


@pytest.mark.parametrize(("moment", "row"), RIGHT, ids=lambda case: str(case))
def test_a_moment_becomes_its_basis(pen: Pen, moment: AsOf, row: tuple[int, int, int]) -> None:
    """A turn is its end, a call its pack, a time the last position whose running maximum is not later."""
    assert basis(pen.lane, moment) == row


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (Position(0), "the nearest is position 1 (1 to 9)"),
        (Position(10), "the nearest is position 9 (1 to 9)"),
        (Turn(4), "the nearest is turn 3 (0 to 3)"),
        (Call(0), "the nearest is call 1 (1 to 3)"),
        (Call(9), "the nearest is call 3 (1 to 3)"),
    ],
    ids=lambda case: str(case),
)
def test_a_moment_that_is_none_names_the_nearest(pen: Pen, moment: AsOf, words: str) -> None:
    """What does not exist, or not yet, is an error that says what does."""
    with pytest.raises(UnknownError) as raised:
        basis(pen.lane, moment)
    assert words in str(raised.value)


def test_a_clock_set_back_does_not_bring_the_past_back(pen: Pen) -> None:
    """A call that says it happened long ago is not there as of then, nor at any time before the one before it."""
    for at in (50, 99, 499):
        assert basis(pen.lane, Time(at)).call < 2
    assert basis(pen.lane, Time(500)).call == 3


def test_a_time_before_the_session_is_an_error() -> None:
    """Nothing had happened yet is told apart from nothing there."""
    pen = Pen()
    logged = pen.lane.db.execute("SELECT logged_at FROM commits").get
    assert basis(pen.lane, LoggedTime(logged)).position == 1
    with refused("before-the-first", UnknownError):
        basis(pen.lane, LoggedTime(logged - 1))


def test_the_context_of_a_moment_is_the_last_call_by_then(pen: Pen) -> None:
    """A turn's context is its last call, a position's or time's the last pack at or before it."""
    assert packed(pen.lane, Turn(1)) == (5, 1, 1)
    assert packed(pen.lane, Turn(3)) == (9, 3, 3)
    assert packed(pen.lane, Position(7)) == (5, 1, 1), "a turn opened since has no call yet"
    assert packed(pen.lane, Position(8)) == (8, 3, 2)
    assert packed(pen.lane, Time(499)) == (5, 1, 1)


def test_a_turn_without_a_call_has_no_context(pen: Pen) -> None:
    """The context of a turn that made no call is an error that names the nearest turn with one."""
    with refused("no-call-yet", UnknownError, "turn 2", "turn 1"):
        packed(pen.lane, Turn(2))
    with refused("no-call-yet", UnknownError, "turn 0", "turn 1"):
        packed(pen.lane, Turn(0))


def test_before_the_first_call_there_is_no_context(pen: Pen) -> None:
    """A position before the first pack names where that stands; a session without any says so."""
    with refused("no-call-yet", UnknownError, "position 5"):
        packed(pen.lane, Position(4))
    with refused("no-call-yet", UnknownError):
        packed(Pen().lane, Head())


def test_a_fork_has_its_own_future_and_its_parents_past(pen: Pen) -> None:
    """On a fork the calls up to it are its parent's, a later one of the parent is none of its own."""
    pen.fork(5)
    assert basis(pen.lane, Call(1)) == (5, 1, 1)
    assert basis(pen.lane, Head()) == (6, 1, 1)
    with refused("no-call", UnknownError, "to 1", "nearest is call 1"):
        basis(pen.lane, Call(2))
    pen.turn(at=60)
    assert basis(pen.lane, Turn(2)) == (7, 2, 1)
    assert basis(pen.lane, Time(199)).position == 4, "a fork's clock runs on from its parent's"
    assert basis(pen.lane, Time(200)).position == 7
