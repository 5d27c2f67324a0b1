"""The newest turns of a session, read back from its end as far as a prompt has room: its messages and their pages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from vmstore.core.page import PageType, Role, Slot
from vmstore.views.branch import Branch, BranchRange

CHUNK = 64  # pages read at once
MESSAGE_TOKENS = 10  # what writing a message takes beside its words
LINE_TOKENS = 2  # and a line of a list


class SpokenMessage(NamedTuple):
    """A message: its turn, when it was said, by whom, the tokens of its pages, and those by their part."""

    message: int
    turn: int
    at_us: int
    role: int
    tokens: int
    parts: tuple[tuple[int, int], ...]

    @property
    def pages(self) -> tuple[int, ...]:
        """The pages of it."""
        return tuple(page for _, page in self.parts)


class SpokenSoFar(NamedTuple):
    """The turns in which something was said, and of each the tokens of what was said before it; all of it together."""

    turns: list[int]
    before: list[int]
    total: int


class _StretchTurns(NamedTuple):
    """The turns of a stretch up to a position: the first page of each, the tokens before it, and the total."""

    high: int
    turns: list[int]
    pages: list[int]
    before: list[int]
    total: int


def spoken_so_far(lane: Branch, position: int) -> SpokenSoFar:
    """How long a session is at each of its turns, in tokens.

    A lane remembers how far it was counted, so that the next question counts what came since.
    """
    turns: list[int] = []
    before: list[int] = []
    total = 0
    for stretch in reversed(lane.upto(position)):
        counted = _counted(lane, stretch)
        held = bisect_right(counted.pages, stretch.high)
        own = counted.turns[:held]
        again = bool(turns and own and turns[-1] == own[0])  # a fork within a turn goes on with it
        turns += own[again:]
        before += [total + tokens for tokens in counted.before[again:held]]
        total += counted.total if stretch.high >= counted.high else _until(lane, stretch, counted, held)
    return SpokenSoFar(turns, before, total)


def _counted(lane: Branch, stretch: BranchRange) -> _StretchTurns:
    """The turns of a stretch, as far as they were ever asked for."""
    key = "spoken", stretch.session
    counted: _StretchTurns = lane.walks.get(key) or _StretchTurns(stretch.low, [], [], [], 0)
    if stretch.high <= counted.high:
        return counted
    turns, pages, before, total = counted.turns, counted.pages, counted.before, counted.total
    rows: list[Any] = lane.db.execute(_TURNS, (stretch.session, counted.high, stretch.high)).fetchall()
    for turn, page, tokens in rows:
        if not turns or turns[-1] != turn:
            turns.append(turn)
            pages.append(page)
            before.append(total)
        total += tokens
    lane.walks[key] = counted = _StretchTurns(stretch.high, turns, pages, before, total)
    return counted


def _until(lane: Branch, stretch: BranchRange, counted: _StretchTurns, held: int) -> int:
    """The tokens of a stretch up to a position before the last that was counted."""
    if not held:
        return 0
    rows: list[Any] = lane.db.execute(_TURNS, (stretch.session, counted.pages[held - 1] - 1, stretch.high)).fetchall()
    return counted.before[held - 1] + sum(int(tokens) for _, _, tokens in rows)


def turns_from(lane: Branch, position: int, first: int) -> list[list[SpokenMessage]]:
    """The turns from the first one wanted to a position, each with its messages in order."""
    messages = list(takewhile(lambda message: message.turn >= first, _messages(lane, position)))
    return [list(some) for _, some in groupby(reversed(messages), key=lambda message: message.turn)]


def said_by_users(lane: Branch, position: int, tokens: int) -> list[SpokenMessage]:
    """The last messages of users up to a position, newest first, within so many tokens."""
    found: list[SpokenMessage] = []
    for message in _messages(lane, position):
        if message.role == Role.USER:
            tokens -= message.tokens - MESSAGE_TOKENS + LINE_TOKENS
            if tokens < 0:
                break
            found.append(message)
    return found


def newest_turns(lane: Branch, position: int, tokens: int, turns: int) -> list[list[SpokenMessage]]:
    """The turns from the last one back, each with its messages in order: those that begin within `tokens`, and some.

    At least `turns` of them, where there are so many.
    """
    found: list[list[SpokenMessage]] = []
    taken = 0
    for message in _messages(lane, position):
        if not found or found[-1][0].turn != message.turn:
            if len(found) >= turns and taken > tokens:
                break
            found.append([])
        taken += message.tokens
        found[-1].append(message)
    return [turn[::-1] for turn in found]


def _messages(lane: Branch, position: int) -> Iterator[SpokenMessage]:
    """The messages of a lane, the last first."""
    row: Any = None
    parts: list[tuple[int, int]] = []
    tokens = 0
    for stretch in lane.upto(position):
        high = stretch.high
        while rows := lane.db.execute(_SPOKEN, (stretch.session, stretch.low, high, CHUNK)).fetchall():
            found: Any
            for found in rows:
                if row is not None and found[1] != row[1]:
                    yield SpokenMessage(row[1], row[3], row[4], row[5], tokens + MESSAGE_TOKENS, tuple(parts[::-1]))
                    parts, tokens = [], 0
                row = found
                parts.append((found[2], found[0]))
                tokens += found[6]
            high = parts[-1][1] - 1
    if row is not None:
        yield SpokenMessage(row[1], row[3], row[4], row[5], tokens + MESSAGE_TOKENS, tuple(parts[::-1]))


def instructions(lane: Branch, position: int) -> list[int]:
    """The pages of what instructs at a position: the last such message; nothing where there is none.

    A lane remembers how far it was looked for, so that the next question looks at what came since.
    """
    for stretch in lane.upto(position):
        key = "instructions", stretch.session
        looked_at, message = lane.walks.get(key, (stretch.low, None))
        if stretch.high < looked_at:  # a moment before that: only a later message is no answer
            looked_at, message = stretch.low, None
        found = lane.db.execute(_SYSTEM, (stretch.session, looked_at, stretch.high)).get
        message = found if found is not None else message
        if stretch.high > lane.walks.get(key, (0, None))[0]:
            lane.walks[key] = stretch.high, message
        if message is not None:
            rows = lane.db.execute(_OF_MESSAGE, (stretch.session, message, stretch.high))
            return [page for (page,) in rows]
    return []


_OF_TALK = f"""FROM pages p
  JOIN messages m ON m.session = p.session AND m.message = p.message
  WHERE p.session = ? AND p.page > ? AND p.page <= ? AND p.message > 0 AND m.slot = {int(Slot.MESSAGES)}
  AND p.type IN ({int(PageType.TRANSCRIPT)}, {int(PageType.ARTIFACT)})
  AND p.role NOT IN ({int(Role.SYSTEM)}, {int(Role.DEVELOPER)})"""
_SPOKEN = f"""SELECT p.page, p.message, p.part, p.turn, p.at, p.role, p.tokens {_OF_TALK}
  ORDER BY p.page DESC LIMIT ?"""
_TURNS = f"""SELECT p.turn, min(p.page) AS first, sum(p.tokens) + {MESSAGE_TOKENS} * count(DISTINCT p.message)
  {_OF_TALK} GROUP BY p.turn ORDER BY first"""
_SYSTEM = f"""SELECT max(message) FROM messages WHERE session = ? AND message > ? AND message <= ?
  AND (slot = {int(Slot.SYSTEM)} OR role IN ({int(Role.SYSTEM)}, {int(Role.DEVELOPER)}))"""
_OF_MESSAGE = "SELECT page FROM pages WHERE session = ? AND message = ? AND page <= ? ORDER BY part"
