"""The stretch of the log that a statement wants of a session."""

from __future__ import annotations

from typing import NamedTuple


class SessionStream(NamedTuple):
    """What one session wrote and is wanted of it, with the turn and the call in force before."""

    session: int
    name: str
    low: int
    high: int
    turn: int
    call: int
