"""FAULTS, and how often pages came and went in each turn, as a statement sees sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from vmstore.core.decision import Denial
from vmstore.views.faults import faults_at
from vmstore.views.lane import Lane
from vmstore.views.moment import moment_at
from vmstore.views.reasons import use_of, word_of


class Own(NamedTuple):
    """A session as a statement sees it: what it wrote above `low` up to `high`.

    Rows above `since` up to `until` are wanted.
    """

    lane: Lane
    name: str
    session: int
    low: int
    high: int
    since: int
    until: int


def faults_of(lanes: Iterable[Own]) -> Iterator[tuple[Any, ...]]:
    """The rows of FAULTS: each page asked for, or come back, by the session in which it was."""
    for own in lanes:
        for one in faults_at(own.lane, own.until):
            if one.position > max(own.low, own.since):
                asked = one.asked
                reason = None if asked is None else use_of(asked.word, asked.reason, asked.signal)
                level = None if asked is None else asked.level
                told = (reason, level, one.level, one.tier, one.out_since, one.tokens)
                denied = (int(one.denied is None), word_of(Denial, one.denied))
                yield (one.position, own.name, *moment_at(own.lane, one.position), one.page or None, *told, *denied)
