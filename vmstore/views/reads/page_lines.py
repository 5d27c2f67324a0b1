"""The line that each page is read by in lists; that of a tool's result begins with what the tool was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import Mime, Modality
from vmstore.core.text.json_text import loads
from vmstore.core.text.page_line import ToolRequest, page_line, tool_request
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.stored_cells import read_cells


def page_lines(lane: Branch, log: Log, pages: Iterable[int]) -> dict[int, str]:
    """The line of each page's first content, by page; one that was erased says so."""
    cells = {page: (cell, commitment) for page, cell, commitment in lane.rows(_CELLS, pages) if cell is not None}
    contents = read_cells(log, lane.db, dict(cells.values()), gone)
    return lines_of(lane, log, {page: contents[cell] for page, (cell, _) in cells.items()})


def lines_of(lane: Branch, log: Log, contents: Mapping[int, bytes]) -> dict[int, str]:
    """The line of each page with the content that is shown of it, by page."""
    kinds = {page: (modality, mime) for page, modality, mime in lane.rows(_KINDS, contents)}
    asked = requests(lane, log, contents)
    found = {}
    for page, content in contents.items():
        modality, mime = kinds.get(page, (Modality.TEXT, Mime.TEXT))
        if isinstance(content, ErasedContent):
            modality, mime = Modality.TEXT, Mime.TEXT
        found[page] = page_line(content, modality, mime, asked.get(page))
    assert found.keys() == set(contents), "each content has its line"
    return found


def requests(lane: Branch, log: Log, pages: Iterable[int]) -> dict[int, ToolRequest]:
    """The tool calls whose results some pages are, by page; other pages are left out."""
    results = {page: (call, tool) for page, call, tool in lane.rows(_RESULTS, pages)}
    calls = {call for call, _ in results.values() if call}
    if not results:
        return {}
    stated = dict(lane.rows(_STATED, calls))
    cells: dict[int, Any] = {call: (cell, sealed) for call, cell, sealed in lane.rows(_CELLS, calls)}
    contents = read_cells(log, lane.db, {cell: sealed for cell, sealed in cells.values() if cell is not None}, gone)
    found = {}
    for page, (call, tool) in results.items():
        asked = _stated(tool, stated.get(call))
        if asked is None and call in cells and (content := contents.get(cells[call][0])) is not None:
            asked = tool_request(content)
        if asked is None and tool:
            asked = ToolRequest(tool, None)
        if asked is not None:
            found[page] = asked
    assert found.keys() <= results.keys(), "only a result has a call that it answers"
    return found


def _stated(tool: str | None, arguments: str | None) -> ToolRequest | None:
    """A request whose arguments a source keeps beside its message."""
    return None if tool is None or arguments is None else ToolRequest(tool, loads(arguments))


_CELLS = """SELECT page, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_KINDS = """SELECT page, modality, mime FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_RESULTS = """SELECT page, call, tool FROM tools
  WHERE session = ? AND page IN (SELECT value FROM json_each(?)) AND call <> page"""
_STATED = """SELECT page, arguments FROM tools
  WHERE session = ? AND page IN (SELECT value FROM json_each(?)) AND arguments IS NOT NULL"""
