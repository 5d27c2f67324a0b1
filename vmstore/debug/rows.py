"""The rows that a film is made of: turns, pages, contents, stays and marks of a session, read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.erasure import gone
from vmstore.core.mutation import Mark
from vmstore.core.page import Role
from vmstore.core.text.json_text import loads
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.residency import stays
from vmstore.views.stored_cells import read_cells


class TurnRow(NamedTuple):
    """A turn and where it opened."""

    turn: int
    position: int
    at: int


class PageRow(NamedTuple):
    """A page as it was made."""

    page: int
    hint: str | None
    type: int
    role: int
    modality: int
    turn: int
    call: int
    tokens: int
    labels: str | None


class ContentRow(NamedTuple):
    """A later content of a page: a full version at level 0, else a shorter form of it."""

    position: int
    page: int
    version: int
    level: int
    tokens: int
    method: int | None


class StayRow(NamedTuple):
    """A page in the prompt from the pack at `f` to the one at `t`, None where it still is."""

    f: int
    rank: int
    page: int
    t: int | None
    content: int
    since: int


class MarkRow(NamedTuple):
    """A moment somebody named, and the pages it is about."""

    position: int
    name: str
    note: str | None


class SessionRows:
    """The rows of a session up to a position, each kind in the order of positions."""

    def __init__(self, lane: Branch, log: Log, position: int) -> None:
        self._lane = lane
        self._log = log
        self.position = position
        self.turns = [TurnRow(*row) for row in self._each(_TURNS)]
        self.pages = [PageRow(*row) for row in self._each(_PAGES)]
        self.changes = [ContentRow(*row) for row in self._each(_CHANGES)]
        self.packs: list[tuple[int, int]] = list(self._each(_PACKS))
        self.index = {page.page: at for at, page in enumerate(self.pages)}
        self.stays = sorted(
            StayRow(f, rank, page, t, content, since)
            for (f, page), (t, content, since, rank) in stays(lane, position).items()
        )

    def _each(self, sql: str) -> Iterator[Any]:
        for stretch in reversed(self._lane.upto(self.position)):
            yield from self._lane.db.execute(sql, (stretch.session, stretch.high))

    @cached_property
    def openers(self) -> dict[int, int]:
        """The first page that a user said in each turn."""
        found: dict[int, int] = {}
        for page in self.pages:
            if page.role == Role.USER:
                found.setdefault(page.turn, page.page)
        return found

    @cached_property
    def tools(self) -> dict[int, str]:
        """The tool that a page calls, or whose answer it is."""
        return dict(self._each(_TOOLS))

    @cached_property
    def marks(self) -> list[MarkRow]:
        """The moments that were named."""
        found = list(self._each(_MARKS))
        sealed = {cell: None for _, _, cell in found if cell is not None}
        notes = read_cells(self._log, self._lane.db, sealed, gone)
        return [MarkRow(position, name or "", _pages_of(notes.get(cell))) for position, name, cell in found]

    def annotations(self) -> Iterator[tuple[int, int]]:
        """Position and page of everything that was said of a page."""
        return self._each(_NOTES)

    def settings(self) -> Iterator[tuple[int, str]]:
        """The settings in force from each position on that changed any, as JSON."""
        return self._each(_CHOICES)

    def call_at(self, position: int) -> int:
        """The call in force at a position; 0 before the first."""
        return self.in_force([position])[0][0]

    def in_force(self, positions: Sequence[int]) -> tuple[list[int], list[int]]:
        """The calls and the turns in force at some positions, which rise."""
        return _numbers(positions, self.packs), _numbers(positions, [(turn.position, turn.turn) for turn in self.turns])


def _numbers(positions: Sequence[int], begun: Sequence[tuple[int, int]]) -> list[int]:
    """The number in force at each position: that of the last that began there or before, 0 before the first."""
    found, number, at = [], 0, 0
    for position in positions:
        while at < len(begun) and begun[at][0] <= position:
            number = begun[at][1]
            at += 1
        found.append(number)
    return found


def _pages_of(note: bytes | None) -> str | None:
    """The pages that a mark's note lists with their levels, by name."""
    if note is None:
        return None
    try:
        return ", ".join(page_name(page) for page, _ in loads(note))
    except (ValueError, TypeError):
        return note.decode("utf-8", "replace")


_TURNS = "SELECT turn, position, at FROM turns WHERE session = ? AND position <= ? ORDER BY position"
_PAGES = """SELECT page, hint, type, role, modality, turn, call, tokens, labels FROM pages
  WHERE session = ? AND page <= ? ORDER BY page"""
_TOOLS = "SELECT page, tool FROM tools WHERE session = ? AND page <= ? AND tool IS NOT NULL"
_CHANGES = """SELECT position, page, version, level, tokens, method FROM changes
  WHERE session = ? AND position <= ? ORDER BY position"""
_PACKS = "SELECT position, call FROM calls WHERE session = ? AND position <= ? ORDER BY position"
_MARKS = f"""SELECT position, name, note FROM marks
  WHERE session = ? AND position <= ? AND reason = {Mark.NAMED} ORDER BY position"""
_NOTES = """SELECT position, page FROM notes WHERE session = ? AND position <= ? ORDER BY position"""
_CHOICES = "SELECT position, told FROM choices WHERE session = ? AND position <= ? ORDER BY position"
