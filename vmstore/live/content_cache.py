"""The contents of a live session's pages, by the position that made them: at hand while they are in use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

from vmstore.core.erasure import gone
from vmstore.engine.engine import Engine
from vmstore.views.branch import Branch
from vmstore.views.stored_cells import read_cells

BYTES_MAX = 32 << 20


class ContentCache:
    """Contents by position; the least recently used go when they take more than `BYTES_MAX`.

    Those of the `past` alone are read from the views as they are, without a catch-up.
    """

    def __init__(self, engine: Engine, lane: Branch, *, past: bool = False) -> None:
        self._past = past
        self._engine = engine
        self._lane = lane
        self._known: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0
        self._holding = False

    def hold(self) -> None:
        """Lets nothing go from here on: what an act wrote can be read nowhere else before it is committed."""
        self._holding = True

    def release(self) -> None:
        """Drops what is over the limit; the log has it."""
        self._holding = False
        while self._bytes > BYTES_MAX and len(self._known) > 1:
            self._bytes -= len(self._known.popitem(last=False)[1])

    def note(self, position: int, content: bytes) -> None:
        """Keeps a content that was just written."""
        self._bytes += len(content) - len(self._known.pop(position, b""))
        self._known[position] = content
        if not self._holding:
            self.release()

    def of(self, position: int) -> bytes:
        """The content made at a position; empty where the source never had it, and where it was erased it says so."""
        return self.all((position,))[position]

    def all(self, positions: Collection[int]) -> dict[int, bytes]:
        """The contents made at some positions."""
        found = {}
        for position in positions:
            if position in self._known:
                self._known.move_to_end(position)
                found[position] = self._known[position]
        missing = [position for position in positions if position not in found]
        if missing:
            if not self._past:
                self._engine.follow()
            rows = list(self._lane.rows(_SEALED, missing))
            sealed = {cell: commitment for _, cell, commitment in rows if cell is not None}
            contents = read_cells(self._engine.log, self._lane.db, sealed, gone)
            for position, cell, _ in rows:
                found[position] = contents[cell] if cell is not None else b""
                self.note(position, found[position])
        return found

    def forget(self) -> None:
        """Drops everything; the log has it."""
        self._known.clear()
        self._bytes = 0


_SEALED = """SELECT position, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
