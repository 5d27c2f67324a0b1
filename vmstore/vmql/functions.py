"""What VMQL's SQL calls that SQLite does not have: contents, words, quantiles, who wrote a position."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import apsw

from vmstore.cells.cell import Cell
from vmstore.core.erasure import ErasedContent, gone, is_gone
from vmstore.core.text import json_text
from vmstore.core.text.page_line import LINE_CHARS, page_line
from vmstore.core.text.tokenizer import words
from vmstore.core.text.tool_call import call_in
from vmstore.errors import CorruptError
from vmstore.views.erased_cells import erased_at, seen
from vmstore.views.projectors.pages import object_of
from vmstore.views.reads.page_lines import requests
from vmstore.views.stored_cells import is_whole
from vmstore.vmql import scalars as row_functions
from vmstore.vmql.host import Host
from vmstore.vmql.text_cache import cached

AHEAD = 32  # cells, which lie in frames that are opened once for all of them
CALLS_MAX = 256  # whose asides are read at once
SNIPPET_CHARS = 100
UNTOLD = ErasedContent(b"[not approved]")
"""What stands for the content of a file that no prompt may hold, where the answer is for one."""
NEAR = 4  # cells apart: those between are wanted soon, too


# ---- aggregates


class _Quantile:
    """Collects numbers; the quantile lies between the two nearest in proportion."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.share: Any = None

    def step(self, value: Any, share: Any) -> None:
        if value is not None:
            self.values.append(value)
        self.share = share

    def final(self) -> float | None:
        if not self.values or self.share is None:
            return None
        self.values.sort()
        place = min(max(float(self.share), 0.0), 1.0) * (len(self.values) - 1)
        low = int(place)
        high = min(low + 1, len(self.values) - 1)
        return float(self.values[low] + (self.values[high] - self.values[low]) * (place - low))


class _First:
    """The first value it is given."""

    def __init__(self) -> None:
        self.value: Any = None
        self.empty = True

    def step(self, value: Any) -> None:
        if self.empty:
            self.value, self.empty = value, False

    def final(self) -> Any:
        return self.value


class _Last(_First):
    """The last one."""

    def step(self, value: Any) -> None:
        self.value = value


ORDERED: dict[str, tuple[Any, int]] = {"vm_quantile": (_Quantile, 2), "vm_first": (_First, 1), "vm_last": (_Last, 1)}
"""Sums over the rows of a group that SQLite does not have, and how many values each takes."""


# ---- words and contents


@cached(64)
def pattern_of(pattern: str) -> frozenset[str]:
    """The words that a pattern asks for."""
    return frozenset(words(pattern))


def matches(text: Any, pattern: Any) -> int | None:
    """Whether a text holds every word of a pattern; unknown where one is null. What was erased holds none."""
    if text is None or pattern is None:
        return None
    if str(text) == UNTOLD.decode() or is_gone(str(text)):
        return 0
    wanted = pattern_of(str(pattern))
    folded = str(text).casefold()
    if not all(word in folded for word in wanted):
        return 0
    return int(wanted <= set(words(folded)))


def as_text(content: bytes) -> str | None:
    """A content as text; None for what is none."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode()
    except UnicodeDecodeError:
        return None


class CellReader:
    """Reads cells as SQL needs them."""

    def __init__(self, world: Host) -> None:
        self.world = world
        self.forget()

    def forget(self) -> None:
        """Forgets what was read: between two statements it may have been erased."""
        self.untold: frozenset[int] = frozenset()  # cells of files that no prompt may hold
        self._ahead: dict[int, Cell] = {}
        self._last = 0
        self._asides: dict[int, Any] = {}
        self._last_call = (0, 0)
        self._calls = 1

    def read(self, cell: int | None, commitment: bytes | None) -> bytes | None:
        """A cell's bytes; None where there is none, and what says so where they were erased."""
        if cell is None:
            return None
        if cell in self.untold:
            return UNTOLD
        found = self._near(cell).get(cell)
        if found is None or not is_whole(found, commitment):
            found = self.world.log.cells([cell]).get(cell)  # it may have been destroyed as it was read
            if found is None or not is_whole(found, commitment):
                raise _damaged(cell)
        return self._gone(cell) if found.erased else found.content

    def _gone(self, cell: int) -> bytes:
        return gone(erased_at(self.world.log, self.world.views, cell))

    def _near(self, cell: int) -> dict[int, Cell]:
        """Some cells with one among them: those that follow it too, where they are read one after the other."""
        if cell not in self._ahead:
            onwards = 0 < cell - self._last <= NEAR
            ahead = range(cell, cell + AHEAD) if onwards else [cell]
            self._ahead = seen(self.world.log, self.world.views, ahead)
        self._last = cell
        return self._ahead

    def text(self, cell: int | None, commitment: bytes | None) -> str | None:
        """The same as text."""
        found = self.read(cell, commitment)
        return None if found is None else as_text(found)

    def arguments(self, cell: int | None, commitment: bytes | None) -> str | None:
        """The arguments of the tool call that a cell holds, as JSON; null where they were erased."""
        found = self.read(cell, commitment)
        if found is None or isinstance(found, ErasedContent):
            return None
        try:
            called = call_in(json_text.loads(found), known=True)
        except ValueError:
            return None
        return None if called is None else called.arguments

    def line(
        self,
        session: int,
        page: int,
        cell: int | None,
        commitment: bytes | None,
        modality: int,
        mime: int,
        chars: int | None = LINE_CHARS,
    ) -> str | None:
        """A page as people read it, on one line."""
        found = self.read(cell, commitment)
        if found is None or isinstance(found, ErasedContent):
            return None if found is None else as_text(found)
        asked = requests(self.world.lane(session), self.world.log, [page])
        return page_line(found, modality, mime, asked.get(page), chars)

    def snippet(
        self, session: int, page: int, cell: int | None, commitment: bytes | None, modality: int, mime: int, asked: str
    ) -> str | None:
        """The place in a page that answers some words best; they stand between « and »."""
        from vmstore.relevance.excerpt import excerpt
        from vmstore.relevance.query import parse_query
        from vmstore.search.place import analyzer

        line = self.line(session, page, cell, commitment, modality, mime, None)
        if line is None:
            return None
        rules = analyzer(self.world.languages.of(session))
        return excerpt(line, parse_query(asked, rules), rules, SNIPPET_CHARS).marked("«", "»")

    def aside(self, session: int, position: int, cell: int | None, commitment: bytes | None, key: str) -> str | None:
        """One entry of what a source keeps beside a reply; those of calls that follow are read with it."""
        if cell is None:
            return None
        if cell not in self._asides:
            self._asides = self._read_asides(session, position)
        if cell not in self._asides:  # of a reply that is not the last
            self._asides[cell] = aside_of(self.read(cell, commitment))
        return json_text.as_text(self._asides.get(cell, {}).get(key))

    def response(
        self, session: int, call: int, packed: int, replied: int | None, cell: int | None, commitment: bytes | None
    ) -> str | None:
        """The body of a response as JSON."""
        if replied is None or cell is None:
            return None
        body = self.world.response(session, (call, packed, replied, cell, commitment))
        return None if body is None else json.dumps(body)

    def _read_asides(self, session: int, position: int) -> dict[int, Any]:
        """Some calls' asides from a position on: more each time, where they are read one after the other."""
        follows = self._last_call[0] == session and self._last_call[1] < position
        self._calls = min(self._calls * 2, CALLS_MAX) if follows else 1
        rows: list[Any] = self.world.views.execute(_ASIDES, (session, position, self._calls)).fetchall()
        self._last_call = (session, position)
        cells = seen(self.world.log, self.world.views, (cell for cell, _ in rows))
        found = {}
        for cell, commitment in rows:
            cell_held = cells.get(cell)
            if cell_held is None or not (cell_held.erased or cell_held.keeps(commitment)):
                raise _damaged(cell)
            found[cell] = aside_of(self._gone(cell) if cell_held.erased else cell_held.content)
        return found

    def said_line(self, listed: str | None) -> str | None:
        """Some pages, by session and position, as people read them, on one line."""
        lines = [line for row in self._listed(_SHOWN, listed) if (line := self.line(*row))]
        return " ".join(lines) if lines else None

    def said(self, listed: str | None) -> str | None:
        """The texts of some pages, by session and position, joined by line ends; null where none is a text."""
        cells = self._listed(_CELL, listed)
        texts = [text for cell, commitment in cells if (text := self.text(cell, commitment))]
        return "\n".join(texts) if texts else None

    def _listed(self, sql: str, listed: str | None) -> list[Any]:
        """What a statement gives for each of some pages."""
        keys = () if listed is None else json.loads(listed)
        return [self.world.views.execute(sql, key).fetchone() for key in keys]


_CELL = "SELECT cell, commitment FROM pages WHERE session = ? AND page = ?"
_SHOWN = "SELECT session, page, cell, commitment, modality, mime FROM pages WHERE session = ? AND page = ?"


def aside_of(content: bytes | None) -> Any:
    """The fields that a source keeps beside a reply; none where they were erased."""
    return {} if content is None or isinstance(content, ErasedContent) else object_of(content)


def _damaged(cell: int) -> CorruptError:
    return CorruptError(f"cell {cell} is missing or does not match its commitment; run `vmstore verify`")


_ASIDES = """SELECT aside, aside_commitment FROM calls INDEXED BY calls_position
  WHERE session = ? AND position >= ? AND aside IS NOT NULL ORDER BY position LIMIT ?"""


def register(db: apsw.Connection, world: Host) -> CellReader:
    """Has a connection know them; what they read contents with."""
    contents = CellReader(world)

    def owner(session: int | None, position: int | None) -> int | None:
        return None if session is None or position is None else world.lane(session).owner(position)

    scalars: dict[str, Callable[..., Any]] = {
        "vm_owner": owner,
        "vm_matches": matches,
        "vm_text": contents.text,
        "vm_arguments": contents.arguments,
        "vm_line": contents.line,
        "vm_snippet": contents.snippet,
        "vm_aside": contents.aside,
        "vm_said": contents.said,
        "vm_said_line": contents.said_line,
        "vm_response": contents.response,
        "vm_estimate": lambda *call: world.prices.estimate(*call),
    }
    for name, function in scalars.items():
        db.create_scalar_function(name, function, deterministic=True)
    for name, (kind, count) in ORDERED.items():
        db.create_aggregate_function(name, kind, count)
    row_functions.register(db)
    return contents
