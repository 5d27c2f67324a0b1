"""Tools of pages: those of a lane that call a tool or answer for one, for rows that Python makes."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.views.branch import Branch


class PageTool(NamedTuple):
    """The tool of a page, the provider's id of the call, and the number of its outcome where it is an answer."""

    tool: str | None
    name: str | None
    outcome: int | None


NO_TOOL = PageTool(None, None, None)


def tools_at(lane: Branch, position: int) -> dict[int, PageTool]:
    """The pages up to a position that call a tool or answer for one."""
    return {
        page: PageTool(*row)
        for stretch in lane.upto(position)
        for page, *row in lane.db.execute(_TOOLS, (stretch.session, stretch.low, stretch.high))
    }


_TOOLS = "SELECT page, tool, name, outcome FROM tools WHERE session = ? AND page > ? AND page <= ?"
assert _TOOLS.partition(" FROM ")[0].count(",") == len(PageTool._fields), (
    "a row becomes a tuple by place, after its page"
)
