"""Skills: sequences of tools that succeed again and again, what they are called with, and what they read before."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from vmstore.work.past_call import PastCall

SUCCESSES_MIN = 5
RATE_MIN = 0.8
STEPS_MIN, STEPS_MAX = 2, 4
COVERED = 0.8  # of the successes of a sequence: one that is part of a longer one with so many is no skill of its own
MOST = 0.5  # of the calls: what is typical
READ_MAX = 5
VALUE_CHARS_MAX = 60
NAME_CHARS_MAX = 100
IMPORTANCE_LOW, IMPORTANCE_RATE, IMPORTANCE_HIGH = 500_000, 400_000, 900_000  # in parts per million
_NUMBERED = re.compile(r"\d+(?=\D*$)")


class Skill(NamedTuple):
    """A sequence of tools: how often it was tried and succeeded, its typical arguments, the pages it reads before."""

    tools: tuple[str, ...]
    successes: int
    tries: int
    typical_args: dict[str, dict[str, Any]]
    page_prereqs: tuple[str, ...]
    calls: tuple[PastCall, ...]

    @property
    def name(self) -> str:
        """Its name, of its tools."""
        return "_then_".join(self.tools)[:NAME_CHARS_MAX]

    @property
    def rate(self) -> float:
        """How often it succeeded of the times it was tried."""
        return self.successes / self.tries

    @property
    def importance(self) -> int:
        """Its importance in parts per million: min(0.9, 0.5 + 0.4 of its rate)."""
        return min(IMPORTANCE_HIGH, IMPORTANCE_LOW + round(IMPORTANCE_RATE * self.rate))

    def described(self) -> bytes:
        """The JSON of its page."""
        fields = {
            "skill_name": self.name,
            "tool_sequence": self.tools,
            "success_rate": round(self.rate, 3),
            "invocation_count": self.tries,
            "typical_args": self.typical_args,
            "page_prereqs": self.page_prereqs,
        }
        return json.dumps(fields, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")


class _Tried:
    """The times that one sequence was tried."""

    def __init__(self) -> None:
        self.successes = 0
        self.tries = 0
        self.calls: list[PastCall] = []


def skills(calls: Iterable[PastCall], least: int = SUCCESSES_MIN, rate: float = RATE_MIN) -> list[Skill]:
    """The sequences that succeeded so often and at such a rate, the longest and most frequent first.

    A sequence is of tools one after another in a turn; the same tool again is the same step, and a step
    failed where its last call did.
    """
    tried: defaultdict[tuple[str, ...], _Tried] = defaultdict(_Tried)
    for _, turn in groupby(calls, key=lambda call: (call.session, call.turn)):
        steps = [list(step) for _, step in groupby(turn, key=lambda call: call.tool)]
        for length in range(STEPS_MIN, STEPS_MAX + 1):
            for part in _apart(steps, length):
                _note(tried[tuple(step[0].tool for step in part)], part)
    found = {tools: seen for tools, seen in tried.items() if seen.successes >= least}
    good = {tools: seen for tools, seen in found.items() if seen.successes >= rate * seen.tries}
    kept = [tools for tools in good if not any(_covers(good, longer, tools) for longer in good)]
    kept.sort(key=lambda tools: (-len(tools), -good[tools].successes, tools))
    return [_skill(tools, good[tools]) for tools in kept]


def _apart(steps: Sequence[list[PastCall]], length: int) -> Iterator[Sequence[list[PastCall]]]:
    """The runs of so many steps; of one sequence none that overlaps another."""
    ends: dict[tuple[str, ...], int] = {}
    for at in range(len(steps) - length + 1):
        part = steps[at : at + length]
        tools = tuple(step[0].tool for step in part)
        if len(set(tools)) > 1 and ends.get(tools, 0) <= at:
            ends[tools] = at + length
            yield part


def _note(seen: _Tried, part: Sequence[list[PastCall]]) -> None:
    seen.tries += 1
    if not any(step[-1].failed for step in part):
        seen.successes += 1
        seen.calls += [call for step in part for call in step if not call.failed]


def _covers(good: dict[tuple[str, ...], _Tried], longer: tuple[str, ...], tools: tuple[str, ...]) -> bool:
    """Whether a sequence is part of a longer one that succeeds nearly as often."""
    places = range(len(longer) - len(tools) + 1)
    within = len(longer) > len(tools) and any(longer[at : at + len(tools)] == tools for at in places)
    return within and good[longer].successes >= COVERED * good[tools].successes


def _skill(tools: tuple[str, ...], seen: _Tried) -> Skill:
    by_tool = {tool: [call for call in seen.calls if call.tool == tool] for tool in tools}
    typical = {tool: typical_arguments(calls) for tool, calls in by_tool.items()}
    return Skill(tools, seen.successes, seen.tries, typical, commonly_read(seen.calls), tuple(seen.calls))


def typical_arguments(calls: Sequence[PastCall]) -> dict[str, Any]:
    """The arguments that most calls have; null for one whose value differs from call to call."""
    given = [call.arguments for call in calls if isinstance(call.arguments, dict)]
    names = Counter(name for arguments in given for name in arguments)
    typical: dict[str, Any] = {}
    for name in sorted(names):
        if names[name] > MOST * len(given):
            written = Counter(json.dumps(one.get(name), sort_keys=True, default=str) for one in given)
            value, count = written.most_common(1)[0]
            plain = count > MOST * len(given) and len(value) <= VALUE_CHARS_MAX
            typical[name] = json.loads(value) if plain else None
    return typical


def commonly_read(calls: Sequence[PastCall], limit: int = READ_MAX) -> tuple[str, ...]:
    """The pages that most calls which read any have read, the most frequent first.

    Names that differ in their last number alone count as one, with `*` in its place.
    """
    reading = [set(call.read) for call in calls if call.read and not call.failed]
    exact = Counter(name for names in reading for name in names)
    alike = Counter(name for names in reading for name in {_NUMBERED.sub("*", one) for one in names})
    common = {name: count for name, count in exact.items() if count > MOST * len(reading)}
    covered = {_NUMBERED.sub("*", name) for name in common}
    common |= {
        name: count
        for name, count in alike.items()
        if "*" in name and count > MOST * len(reading) and name not in covered
    }
    return tuple(sorted(common, key=lambda name: (-common[name], name)))[:limit]
