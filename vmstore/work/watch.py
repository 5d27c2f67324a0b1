"""Guards over calls in their order: what they count, and when they speak up."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.core.work.trace import GuardType
from vmstore.work.failure import avoidance, same_failures
from vmstore.work.past_call import LONG, PastCall

FAILURES_MIN = 3
SAME_MIN = 3
NEAR = 10  # calls of the turn: after more than these the same call is no repetition
GROUNDS_MAX = 8  # values of a call that are looked for
KEPT_MAX = 200  # failures of a tool, and calls of a turn, that are remembered
_IDENTIFIER = re.compile(r"(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{6,64}")
Unsaid = Callable[[PastCall, Sequence[str]], Sequence[str]]
"""The words among some that nothing before a call says; all are looked for at once."""


class Alarm(NamedTuple):
    """A guard's word on a call: how many calls it counted, these calls, and the sentence for the model."""

    type: GuardType
    times: int
    calls: tuple[PastCall, ...]
    text: str

    @property
    def call(self) -> PastCall:
        """The call that made it speak."""
        return self.calls[-1]


class CallWatch:
    """Takes calls one by one and gives the alarms that each raises.

    A guard speaks up at the third of the same, and again whenever their number has doubled since.
    """

    def __init__(self, room: int | None = None, unsaid: Unsaid | None = None) -> None:
        self._room = room
        self._unsaid = unsaid
        self._failed: defaultdict[str, list[PastCall]] = defaultdict(list)  # by tool
        self._turn: tuple[str, int] = ("", 0)
        self._same: defaultdict[tuple[str, str, str], list[PastCall]] = defaultdict(list)
        self._alike: dict[str, list[PastCall]] = {}  # of a tool the last calls that gave one long answer
        self._given: list[PastCall] = []
        self._over = False
        self._named: set[str] = set()  # words that were told to be unknown: they are told once

    def take(self, call: PastCall) -> list[Alarm]:
        """The alarms that a call raises."""
        if self._turn != (call.session, call.turn):
            self._turn, self._over = (call.session, call.turn), False
            self._same.clear()
            self._alike.clear()
            self._given.clear()
        return [*self._failures(call), *self._ungrounded(call), *self._runaway(call), *self._budget(call)]

    def remember(self, call: PastCall) -> None:
        """Counts a failure of before, and says nothing of it."""
        failed = self._failed[call.tool]
        failed.append(call)
        del failed[:-KEPT_MAX]

    def _failures(self, call: PastCall) -> Iterator[Alarm]:
        if not call.failed:
            return
        self.remember(call)
        same = same_failures(self._failed[call.tool])
        if _speaks(len(same), FAILURES_MIN):
            yield Alarm(GuardType.FAILURE, len(same), tuple(same), avoidance(same))

    def _ungrounded(self, call: PastCall) -> Iterator[Alarm]:
        if not call.failed or self._unsaid is None:
            return
        new = [word for word in identifiers(call.arguments) if word not in self._named]
        unknown = self._unsaid(call, new) if new else ()
        if unknown:
            self._named.update(unknown)
            named = ", ".join(unknown[:3])
            text = f"{call.tool} was called with {named}, which nothing so far has said; look it up before you use it."
            yield Alarm(GuardType.UNGROUNDED, len(unknown), (call,), text)

    def _runaway(self, call: PastCall) -> Iterator[Alarm]:
        if call.failed or call.answer is None:
            return
        near = self._given[-NEAR:]
        same = [one for one in self._same[call.tool, call.asked, call.answer] if one in near]
        same.append(call)
        self._same[call.tool, call.asked, call.answer] = same
        if _speaks(len(same), SAME_MIN):
            text = (
                f"{call.tool} was called {len(same)} times in this turn with the same arguments and gave the same "
                "answer; use that answer."
            )
            yield Alarm(GuardType.RUNAWAY, len(same), tuple(same), text)
        elif call.answer.startswith(LONG):
            yield from self._no_progress(call)

    def _no_progress(self, call: PastCall) -> Iterator[Alarm]:
        """Speaks where one long answer comes again and again, whatever is asked."""
        before = self._alike.get(call.tool, [])
        alike = [*before, call] if before and before[-1].answer == call.answer else [call]
        self._alike[call.tool] = alike
        if len({one.asked for one in alike}) == len(alike) and _speaks(len(alike), SAME_MIN):
            text = (
                f"{call.tool} gave the same answer to the last {len(alike)} calls, whatever was passed; what you "
                "change makes no difference to it."
            )
            yield Alarm(GuardType.RUNAWAY, len(alike), tuple(alike), text)

    def _budget(self, call: PastCall) -> Iterator[Alarm]:
        self._given.append(call)
        tokens = sum(given.tokens for given in self._given)
        if self._room is not None and tokens > self._room and not self._over:
            self._over = True
            text = (
                f"The tools of this turn gave {tokens:,} tokens, and the prompt has room for {self._room:,}: ask for "
                "less at a time, and note what you need of it."
            )
            yield Alarm(GuardType.BUDGET, len(self._given), tuple(self._given), text)


def _speaks(count: int, least: int) -> bool:
    """Whether a guard speaks at a count: at the least one, at twice that, and so on."""
    while least < count:
        least *= 2
    return count == least


def identifiers(arguments: Any) -> list[str]:
    """The values of arguments that name something: words of letters and digits."""
    found: dict[str, None] = {}
    waiting = [arguments]
    while waiting and len(found) < GROUNDS_MAX:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += list(value.values())[::-1]
        elif isinstance(value, list):
            waiting += value[::-1]
        elif isinstance(value, str) and _IDENTIFIER.fullmatch(value):
            found[value] = None
    return list(found)
