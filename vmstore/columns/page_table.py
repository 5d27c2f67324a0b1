"""The page table of many sessions at once, folded by numpy: the last word on each page wins.

Positions are dense along a session's lane, so a page is its own place in an array, and nothing is
sorted or looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vmstore.columns.parquet import read
from vmstore.columns.schema import CONTENTS, NULL, RESIDENCIES
from vmstore.columns.segment_writer import Column, Columns
from vmstore.columns.segments import ColumnRows, Segments
from vmstore.core.page import Tier
from vmstore.errors import CorruptError
from vmstore.views.branch import BranchRange

OF_CONTENTS = ("session", "position", "page", "version", "level", "tokens")
OF_MOVES = ("session", "position", "page", "content", "level")
Rows = npt.NDArray[np.intp]


class PageTable(NamedTuple):
    """Every page of some sessions as arrays of one length, by session and page.

    `names` are the sessions by the keys that stand in `session`, `ordinal` the last commit taken in.
    `version` is the page's last; `level`, `tokens` and `content` (the content's position) are of
    what L0 shows, or of the full content where the page is not there.
    """

    ordinal: int
    names: dict[int, str]
    session: Column
    page: Column
    version: Column
    level: Column
    tier: Column
    tokens: Column
    content: Column

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The table row by row: the session's name, page, version, level, tier, tokens, position of the content."""
        names = (self.names[session] for session in self.session.tolist())
        return zip(names, *(column.tolist() for column in self[3:]), strict=True)


Asked = Mapping[int, Sequence[BranchRange]]
"""The lanes of sessions up to some position, by key."""


def page_table(shelf: Segments, ordinal: int, asked: Asked, names: dict[int, str]) -> PageTable:
    """The page table of each session asked of, by its key and its lane up to a position.

    A lane's stretches are those up to the position, the newest first, whose `high` is the position.
    The views stand still at `ordinal` or beyond.
    """
    return shelf.reading(ordinal, lambda held: _folded(shelf, held, asked, names))


def _folded(shelf: Segments, rows: ColumnRows, asked: Asked, names: dict[int, str]) -> PageTable:
    contents = _read(shelf, rows, CONTENTS, OF_CONTENTS)
    moves = _read(shelf, rows, RESIDENCIES, OF_MOVES)
    lanes = _Lanes(asked, rows.end)
    table = _Fold(lanes, contents, moves)
    table.inherited(asked)
    table.own()
    return PageTable(rows.ordinal, names, *table.columns())


def _read(shelf: Segments, rows: ColumnRows, name: str, columns: Sequence[str]) -> Columns:
    """Columns of a table, from segments and memory, NULL where a row has no value."""
    parts: list[Columns] = []
    if rows.segments:
        parts.append(read(shelf.db, [segment.table(name) for segment in rows.segments], columns))
    if rows.tail is not None:
        table = rows.tail.table(name)
        parts.append({column: table[column] for column in columns})
    return {column: np.concatenate([part[column] for part in parts]) for column in columns} if parts[1:] else parts[0]


class _Lanes:
    """Offsets of lanes in one long array: a page is at its lane's base plus its position."""

    def __init__(self, asked: Asked, key_max: int) -> None:
        self.keys = np.fromiter(asked, np.int64, len(asked))
        self.sizes = np.fromiter((1 + stretches[0].high for stretches in asked.values()), np.int64, len(asked))
        self.bases = np.cumsum(self.sizes) - self.sizes
        self.base = np.full(key_max + 1, -1)  # by session key; -1 for one not asked of
        self.base[self.keys] = self.bases
        self.upto = np.full(key_max + 1, -1)
        self.upto[self.keys] = self.sizes - 1


class _Fold:
    """The last row of each page: of its full content, of what happened to it in L0, and each content's row."""

    def __init__(self, lanes: _Lanes, contents: Columns, moves: Columns) -> None:
        self.lanes, self.contents, self.moves = lanes, contents, moves
        size = int(lanes.sizes.sum())
        self.full = np.full(size, -1, np.int32)
        self.move = np.full(size, -1, np.int32)
        self.row = np.full(size, -1, np.int32)  # by base and position of the content

    def own(self) -> None:
        """Folds what every session asked of wrote itself, all in one go."""
        rows, bases = self._asked(self.contents)
        self._contents(rows, bases)
        rows, bases = self._asked(self.moves)
        self._moves(rows, bases)

    def _asked(self, table: Columns) -> tuple[Rows, Column]:
        """The rows of sessions asked of, up to their positions, and the base of each."""
        rows = np.flatnonzero(table["position"] <= self.lanes.upto[table["session"]])
        return rows, self.lanes.base[table["session"][rows]]

    def inherited(self, asked: Asked) -> None:
        """Folds what forks inherit, lane by lane, the oldest stretch first."""
        past = [
            (session, inherited)
            for session, lane in asked.items()
            for inherited in reversed(lane)
            if inherited.session != session
        ]
        if past:
            contents, moves = _Written(self.contents), _Written(self.moves)
            for session, stretch in past:
                self._contents(contents.by(stretch), self.lanes.base[session])
                self._moves(moves.by(stretch), self.lanes.base[session])

    def _contents(self, rows: Rows, base: Column) -> None:
        self.row[base + self.contents["position"][rows]] = rows
        full = self.contents["level"][rows] == 0
        if np.ndim(base):
            base = base[full]
        self.full[base + self.contents["page"][rows[full]]] = rows[full]

    def _moves(self, rows: Rows, base: Column) -> None:
        self.move[base + self.moves["page"][rows]] = rows

    def columns(self) -> tuple[Column, ...]:
        """The columns of the page table, once everything is folded."""
        pages = np.flatnonzero(self.full >= 0)
        lane = np.searchsorted(self.lanes.bases, pages, side="right") - 1
        base = self.lanes.bases[lane]
        full, move = self.full[pages], self.move[pages]
        here = np.flatnonzero(move >= 0)
        here = here[self.moves["content"][move[here]] != NULL]
        shown = full.copy()
        shown[here] = self.row[base[here] + self.moves["content"][move[here]]]
        if shown.size and shown.min() < 0:
            raise CorruptError(
                "a page in L0 shows a content that is not there; run `vmstore verify`", code="content-missing"
            )
        level, tier = np.zeros(len(pages), np.int64), np.full(len(pages), int(Tier.L2))
        level[here], tier[here] = self.moves["level"][move[here]], int(Tier.L0)
        version, tokens, content = (
            self.contents[name][rows].astype(np.int64, copy=False)
            for name, rows in (("version", full), ("tokens", shown), ("position", shown))
        )
        return self.lanes.keys[lane], pages - base, version, level, tier, tokens, content


class _Written:
    """The rows of a table by who wrote them, each writer's in the order of the log."""

    def __init__(self, table: Columns) -> None:
        self._order = np.argsort(table["session"], kind="stable")
        self._sessions = table["session"][self._order]
        self._positions = table["position"][self._order]

    def by(self, stretch: BranchRange) -> Rows:
        """A writer's rows up to the end of a stretch."""
        low, high = np.searchsorted(self._sessions, [stretch.session, stretch.session + 1])
        end = low + np.searchsorted(self._positions[low:high], stretch.high, side="right")
        return self._order[low:end]
