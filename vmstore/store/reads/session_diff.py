"""Two sessions side by side: what both said, where they part, and what each said instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import msgspec

from vmstore.core.address import page_name
from vmstore.core.erasure import gone
from vmstore.core.page import PageType, Role
from vmstore.errors import UnknownError
from vmstore.log.port import Log
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import SessionOverview
from vmstore.namespace.session_rows import overviews
from vmstore.views.branch import NEVER, Branch
from vmstore.views.reads.page_lines import lines_of
from vmstore.views.stored_cells import read_cells
from vmstore.vm.protocol.tool_calls import arguments_in, tool_called

CHARS_MAX = 200_000


class SidePage(NamedTuple):
    """A page of one side: its tokens, and what it is told apart by: who says it, the tool it calls, its words."""

    page: int
    role: int
    tokens: int
    text: str
    key: tuple[int, str, str]


class AlignedPages(msgspec.Struct, frozen=True):
    """One line of a comparison: `same` in both, `differs` where each says its own, or only in one of them.

    `change` is same, differs, left (only the first has it) or entered (only the second).
    """

    change: str
    before: str | None
    after: str | None
    role: str
    tokens_before: int | None
    tokens_after: int | None
    text_before: str
    text_after: str


class SessionDiff(msgspec.Struct, frozen=True):
    """Two sessions compared by content: `same_messages` from the beginning are equal, `same_pages` anywhere in order.

    `before` and `after` are the sessions with their counts and costs; `lines` are in the order of the conversations.
    """

    before: SessionOverview
    after: SessionOverview
    same_messages: int
    same_pages: int
    lines: list[AlignedPages]


def compared(ns: Namespace, before: str, after: str) -> SessionDiff:
    """Two sessions of a namespace by their names; UnknownError names the nearest to one that is not there."""
    with ns.asking():
        keys = [_key(ns, name) for name in (before, after)]
        lanes = [Branch(ns.views, key) for key in keys]
        first, second = (pages_said(lane, ns.log, NEVER) for lane in lanes)
        lines = side_by_side(first, second)
        same = sum(line.change == "same" for line in lines)
        infos = overviews(ns.views, ns.log, ns.price_list, keys)
        begun = messages_in(lanes[0], first[: same_start(first, second)])
        return SessionDiff(infos[0], infos[1], begun, same, lines)


def _key(ns: Namespace, name: str) -> int:
    key = ns.key(name)
    if key is None:
        names = [row[0] for row in ns.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")]
        raise UnknownError(f"there is no session {name!r}; {ns.nearest(name, names)}", code="no-session")
    return key


def pages_said(lane: Branch, log: Log, position: int) -> list[SidePage]:
    """Pages that were said in a session up to a position, in order, each part as it arrived."""
    rows = [
        row
        for stretch in reversed(lane.upto(position))
        for row in lane.db.execute(_SAID, (stretch.session, stretch.low, stretch.high))
    ]
    return sides(lane, log, [(page, role, tokens, cell, sealed) for page, role, tokens, cell, sealed in rows])


def sides(lane: Branch, log: Log, rows: Sequence[tuple[int, int, int, int | None, bytes | None]]) -> list[SidePage]:
    """Pages with what they are told apart by; a call's id is not: each session has others."""
    sealed = {cell: commitment for _, _, _, cell, commitment in rows if cell is not None and commitment is not None}
    contents = read_cells(log, lane.db, sealed, gone)
    held = {page: contents[cell] for page, _, _, cell, _ in rows if cell is not None and cell in contents}
    lines = lines_of(lane, log, held)
    found = []
    for page, role, tokens, cell, _ in rows:
        content = b"" if cell is None else contents[cell]
        text = content[: 4 * CHARS_MAX].decode("utf-8", "replace")
        tool = tool_called(text) if role == Role.ASSISTANT else ""
        key = (role, tool, arguments_in(text) if tool else text if cell is not None else f"{tokens} tokens")
        found.append(SidePage(page, role, tokens, lines.get(page, ""), key))
    return found


def aligned(first: Sequence[SidePage], second: Sequence[SidePage]) -> Iterator[tuple[SidePage | None, SidePage | None]]:
    """The pages of both in order: equal ones together, others beside each other where the same role says them."""
    matcher = SequenceMatcher(None, [one.key for one in first], [one.key for one in second], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(first[a:b], second[c:d], strict=True)
        else:
            yield from _beside(list(first[a:b]), list(second[c:d]))


def _beside(first: list[SidePage], second: list[SidePage]) -> Iterator[tuple[SidePage | None, SidePage | None]]:
    """Pairs what differs in order, as long as the roles are the same."""
    roles = SequenceMatcher(None, [one.role for one in first], [one.role for one in second], autojunk=False)
    for tag, a, b, c, d in roles.get_opcodes():
        if tag == "equal":
            yield from zip(first[a:b], second[c:d], strict=True)
        else:
            yield from ((one, None) for one in first[a:b])
            yield from ((None, one) for one in second[c:d])


def same_start(first: Sequence[SidePage], second: Sequence[SidePage]) -> int:
    """How many pages from the beginning are equal."""
    return next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a.key != b.key), min(len(first), len(second))
    )


def side_by_side(first: Sequence[SidePage], second: Sequence[SidePage]) -> list[AlignedPages]:
    """The comparison line by line."""
    return [_line(before, after) for before, after in aligned(first, second)]


def _line(before: SidePage | None, after: SidePage | None) -> AlignedPages:
    known = before or after
    assert known is not None, "a line has at least one side"
    if before is not None and after is not None:
        change = "same" if before.key == after.key else "differs"
    else:
        change = "left" if after is None else "entered"
    return AlignedPages(
        change=change,
        before=None if before is None else page_name(before.page),
        after=None if after is None else page_name(after.page),
        role=Role(known.role).word,
        tokens_before=None if before is None else before.tokens,
        tokens_after=None if after is None else after.tokens,
        text_before="" if before is None else before.text,
        text_after="" if after is None else after.text,
    )


def messages_in(lane: Branch, pages: Sequence[SidePage]) -> int:
    """How many messages some pages make up."""
    return len({message for (message,) in lane.rows(_MESSAGE, [one.page for one in pages])})


_SAID = f"""SELECT page, role, tokens, cell, commitment FROM pages
  WHERE session = ? AND page > ? AND page <= ? AND message > 0
   AND type NOT IN ({int(PageType.RAW)}, {int(PageType.VALUE)}) ORDER BY page"""
_MESSAGE = "SELECT message FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
