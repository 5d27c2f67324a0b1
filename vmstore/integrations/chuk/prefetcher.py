"""Pages to bring in as a turn begins: the last segment's summary, claims that are used most, what tools need."""

from __future__ import annotations

from collections import Counter

from pydantic import BaseModel, Field, PrivateAttr

from vmstore.integrations.chuk.models.enums import PageType
from vmstore.integrations.chuk.models.stats import PrefetcherStats
from vmstore.integrations.chuk.page_table import PageTable

PREREQUISITES_MAX = 3


class ToolUsagePattern(BaseModel):
    """A tool, how often it was called, and which pages were used before."""

    tool_name: str
    call_count: int = 0
    last_turn: int = 0
    prereq_pages: list[str] = Field(default_factory=list)


class SimplePrefetcher(BaseModel):
    """Counts uses of pages and calls of tools."""

    max_claims_to_prefetch: int = 3
    max_recent_tools: int = 3
    _uses: Counter[str] = PrivateAttr(default_factory=Counter)
    _tools: dict[str, ToolUsagePattern] = PrivateAttr(default_factory=dict)
    _prerequisites: dict[str, Counter[str]] = PrivateAttr(default_factory=dict)
    _last_segment_summary_id: str | None = PrivateAttr(default=None)

    def record_page_access(self, page_id: str) -> None:
        """Counts a use of a page."""
        self._uses[page_id] += 1

    def record_tool_call(self, tool_name: str, turn: int, pages_accessed_before: list[str] | None = None) -> None:
        """Counts a call of a tool, with the pages that were used before it."""
        tool = self._tools.setdefault(tool_name, ToolUsagePattern(tool_name=tool_name))
        used = self._prerequisites.setdefault(tool_name, Counter())
        used.update(pages_accessed_before or ())
        tool.call_count += 1
        tool.last_turn = turn
        tool.prereq_pages = [page_id for page_id, _ in used.most_common(PREREQUISITES_MAX)]

    def set_last_segment_summary(self, page_id: str) -> None:
        """Says which page sums up the segment that ended."""
        self._last_segment_summary_id = page_id

    def get_likely_tools(self, recent_turns: int = 5) -> list[str]:
        """The tools called within the last turns, most often first."""
        last = max((tool.last_turn for tool in self._tools.values()), default=0)
        recent = [tool for tool in self._tools.values() if tool.last_turn > last - recent_turns]
        recent.sort(key=lambda tool: (-tool.call_count, -tool.last_turn))
        return [tool.tool_name for tool in recent[: self.max_recent_tools]]

    def get_tool_prereq_pages(self, tool_name: str) -> list[str]:
        """The pages that were used most before a tool was called."""
        tool = self._tools.get(tool_name)
        return [] if tool is None else list(tool.prereq_pages)

    def get_top_claims(self, page_table: PageTable | None = None, limit: int | None = None) -> list[str]:
        """The claims that are used most; without a page table any pages."""
        most = self.max_claims_to_prefetch if limit is None else limit
        pages = [
            page_id for page_id, _ in self._uses.most_common() if page_table is None or _claim(page_table, page_id)
        ]
        return pages[:most]

    async def prefetch_on_turn_start(self, session_id: str, page_table: PageTable | None = None) -> list[str]:
        """The pages to bring in, each once."""
        pages = [] if self._last_segment_summary_id is None else [self._last_segment_summary_id]
        pages += self.get_top_claims(page_table)
        for tool in self.get_likely_tools():
            pages += self.get_tool_prereq_pages(tool)
        return list(dict.fromkeys(pages))

    def clear(self) -> None:
        """Forgets everything."""
        for part in (self._uses, self._tools, self._prerequisites):
            part.clear()
        self._last_segment_summary_id = None

    def get_stats(self) -> PrefetcherStats:
        """Counts of pages, tools and uses."""
        return PrefetcherStats(
            tools_tracked=len(self._tools), pages_tracked=len(self._uses), total_accesses=self._uses.total()
        )


def _claim(page_table: PageTable, page_id: str) -> bool:
    entry = page_table.lookup(page_id)
    return entry is not None and entry.page_type is PageType.CLAIM
