"""The newest turns of a session, read back from its end as far as a prompt has room: its messages and their pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vmstore.core.page import PageType, Role, Slot
from vmstore.views.branch import Branch

CHUNK = 64  # pages read at once
MESSAGE_TOKENS = 10  # what writing a message takes beside its words


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


_SPOKEN = f"""SELECT p.page, p.message, p.part, p.turn, p.at, p.role, p.tokens FROM pages p
  JOIN messages m ON m.session = p.session AND m.message = p.message
  WHERE p.session = ? AND p.page > ? AND p.page <= ? AND p.message > 0 AND m.slot = {int(Slot.MESSAGES)}
  AND p.type IN ({int(PageType.TRANSCRIPT)}, {int(PageType.ARTIFACT)})
  AND p.role NOT IN ({int(Role.SYSTEM)}, {int(Role.DEVELOPER)}) ORDER BY p.page DESC LIMIT ?"""
_SYSTEM = f"""SELECT max(message) FROM messages WHERE session = ? AND message > ? AND message <= ?
  AND (slot = {int(Slot.SYSTEM)} OR role IN ({int(Role.SYSTEM)}, {int(Role.DEVELOPER)}))"""
_OF_MESSAGE = "SELECT page FROM pages WHERE session = ? AND message = ? AND page <= ? ORDER BY part"
