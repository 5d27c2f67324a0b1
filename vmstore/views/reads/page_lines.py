"""The line that each page is read by in lists; that of a tool's result begins with what the tool was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import Mime, Modality
from vmstore.core.text.page_line import ToolRequest, page_line, tool_request
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.stored_cells import read_cells

NEAR = 4_096  # positions before a result within which its request is looked for


def page_lines(lane: Branch, log: Log, pages: Iterable[int]) -> dict[int, str]:
    """The line of each page's first content, by page; one that was erased says so."""
    cells = {page: (cell, commitment) for page, cell, commitment in lane.rows(_CELLS, pages) if cell is not None}
    contents = read_cells(log, lane.db, dict(cells.values()), gone)
    return lines_of(lane, log, {page: contents[cell] for page, (cell, _) in cells.items()})


def lines_of(lane: Branch, log: Log, contents: Mapping[int, bytes]) -> dict[int, str]:
    """The line of each page with the content that is shown of it, by page."""
    kinds = {page: kind for page, *kind in lane.rows(_KINDS, contents)}
    asked = requests(lane, log, {page: call for page, (_, _, call) in kinds.items() if call is not None})
    found = {}
    for page, content in contents.items():
        modality, mime, _ = kinds.get(page, (Modality.TEXT, Mime.TEXT, None))
        if isinstance(content, ErasedContent):
            modality, mime = Modality.TEXT, Mime.TEXT
        found[page] = page_line(content, modality, mime, asked.get(page))
    return found


def requests(lane: Branch, log: Log, results: Mapping[int, str]) -> dict[int, ToolRequest]:
    """What the tool was asked whose results some pages are, by page; `results` has the call each answers."""
    asking = {result: page for result, call in results.items() if (page := _asking(lane, result, call)) is not None}
    cells: dict[int, Any] = {page: (cell, sealed) for page, cell, sealed in lane.rows(_CELLS, {*asking.values()})}
    contents = read_cells(log, lane.db, {cell: sealed for cell, sealed in cells.values() if cell is not None}, gone)
    asked = {page: tool_request(contents[cell]) for page, (cell, _) in cells.items() if cell is not None}
    return {result: request for result, page in asking.items() if (request := asked.get(page)) is not None}


def _asking(lane: Branch, result: int, call: str) -> int | None:
    """The page that asked for a result: the nearest before it that made the call."""
    for stretch in lane.upto(result - 1):
        low = max(stretch.low, result - NEAR)
        page: int | None = lane.db.execute(_ASKING, (stretch.session, low, stretch.high, call)).get
        if page is not None:
            return page
    return None


_CELLS = (
    "SELECT page, cell, commitment FROM versions WHERE session = ? AND position IN (SELECT value FROM json_each(?))"
)
_KINDS = """SELECT page, modality, mime, iif(labels LIKE '%"answers"%', labels ->> '$.answers', NULL) FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_ASKING = """SELECT page FROM pages WHERE session = ? AND page > ? AND page <= ?
  AND labels LIKE '%"asks"%' AND labels ->> '$.asks' = ? ORDER BY page DESC LIMIT 1"""
