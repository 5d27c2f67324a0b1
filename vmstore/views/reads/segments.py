"""The segments of a session at a moment: what was said in each, what sums it up, and whether that is up to date."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from vmstore.core.page import LinkKind, PageType, Role, Standing, WordEnum
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import held
from vmstore.views.reads.tags import aliases, given


class SegmentState(WordEnum):
    """The state of a segment: open, closed and not summed up, or summed up, completely or in part."""

    OPEN = 0
    ENDED = 1
    FRESH = 2
    STALE = 3


class SegmentRow(NamedTuple):
    """A segment as it was said (layer 0) or summed up (1), or what sums up the segments of a tag (2).

    `position` is that of its first page; `tokens_after` counts its summaries and what stands in none.
    """

    number: int | None
    layer: int
    tags: tuple[str, ...]
    title: str | None
    position: int
    first_turn: int
    last_turn: int
    pages: int
    tokens_before: int
    tokens_after: int
    summary: int | None
    state: str


class _Page(NamedTuple):
    page: int
    turn: int
    message: int
    type: int
    hint: str | None
    tokens: int


TOPIC_SUMMARY = "topic_"
"""Before a tag, the name of the page that sums up its segments."""


def segment_rows(lane: Branch, position: int) -> Iterator[SegmentRow]:
    """The segments in order, then the summaries of tags by their names."""
    view = _View(lane, position)
    yield from view.segments()
    yield from view.topics()


class _View:
    """The data of a session at a moment, read once for all of its segments."""

    def __init__(self, lane: Branch, position: int) -> None:
        stretches = list(reversed(lane.upto(position)))
        standing: dict[int, int] = {}
        for s in stretches:
            standing.update(lane.db.execute(_STANDING, (s.session, s.low, s.high)))
        away = {page for page, status in standing.items() if status in (Standing.SUPERSEDED, Standing.ABANDONED)}
        rows = (map(_Page._make, lane.db.execute(_PAGES, (s.session, s.low, s.high))) for s in stretches)
        self.pages = {page.page: page for page in chain.from_iterable(rows) if page.turn and page.page not in away}
        cuts = [row for s in stretches for row in lane.db.execute(_CUTS, (s.session, s.low, s.high))]
        self.at, self.numbers = [cut[0] for cut in cuts], [cut[1] for cut in cuts]
        self.titles = {summary: title for _, _, summary, title in cuts if summary}
        self.changed: dict[int, int] = {}
        self.tokens = {page: row.tokens for page, row in self.pages.items()}
        for s in stretches:
            for page, changed, tokens in lane.db.execute(_CHANGED, (s.session, s.low, s.high)):
                self.changed[page], self.tokens[page] = changed, tokens
        sources: dict[int, list[int]] = {}
        for source, target, kind in held(lane, position):
            if kind == LinkKind.DERIVES and source in self.pages and target in self.pages:
                sources.setdefault(source, []).append(target)
        self.sources = {page: sorted(sources.get(page, ())) for page, row in self.pages.items() if _summary(row)}
        ends = aliases(lane, position)
        self.tags: dict[int, list[str]] = {}
        for tag, tagged in given(lane, position).items():
            for number in tagged:
                self.tags.setdefault(number, []).append(ends.get(tag, tag))

    def number_of(self, page: int) -> int:
        """The segment in force where a page was made, from 1."""
        before = bisect_left(self.at, page)
        return self.numbers[before - 1] + 1 if before else 1

    def segments(self) -> Iterator[SegmentRow]:
        """The segments that hold anything, in order."""
        members: dict[int, list[int]] = {}
        for page, row in self.pages.items():
            if row.message and not _summary(row):
                members.setdefault(self.number_of(page), []).append(page)
        summaries: dict[int, list[int]] = {}
        for summary, sources in self.sources.items():
            if sources and not self._of_topic(summary):
                summaries.setdefault(self.number_of(sources[0]), []).append(summary)
        under_way = self.numbers[-1] + 1 if self.numbers else 1
        for number in sorted(members):
            pages, made = sorted(members[number]), sorted(summaries.get(number, ()))
            covered = {source for summary in made for source in self.sources[summary]}
            rest = [page for page in pages if page not in covered]
            if made:
                renewed = any(self._renewed(summary) for summary in made)
                state = SegmentState.STALE if rest or renewed else SegmentState.FRESH
            else:
                state = SegmentState.OPEN if number == under_way else SegmentState.ENDED
            yield self._row(number, pages, made, rest, state)

    def topics(self) -> Iterator[SegmentRow]:
        """The last summary of each tag that has one, by the names."""
        last = {self.pages[page].hint or "": page for page in self.sources if self._of_topic(page)}
        for hint, summary in sorted(last.items()):
            tag = hint.removeprefix(TOPIC_SUMMARY)
            parts = self.sources[summary]
            wanted = {s for s, of in self.sources.items() if of and s not in last.values() and tag in self._tags(of)}
            pages = sorted({page for part in parts for page in self.sources.get(part, ())})
            stale = not wanted <= set(parts) or self._renewed(summary)
            state = SegmentState.STALE if stale else SegmentState.FRESH
            yield self._row(None, pages or parts, [summary], (), state)._replace(tags=(tag,), layer=2)

    def _row(
        self, number: int | None, pages: list[int], made: list[int], rest: Iterable[int], state: SegmentState
    ) -> SegmentRow:
        turns = [self.pages[page].turn for page in pages]
        before = sum(self.tokens[page] for page in pages)
        after = sum(self.tokens[page] for page in (*made, *rest)) if made else before
        title = next((title for summary in reversed(made) if (title := self.titles.get(summary))), None)
        tags = tuple(self._tags(pages))
        summary = made[-1] if made else None
        counts = (pages[0], min(turns), max(turns), len(pages), before, after)
        return SegmentRow(number, int(bool(made)), tags, title or ", ".join(tags) or None, *counts, summary, state.word)

    def _tags(self, pages: Iterable[int]) -> Mapping[str, None]:
        return dict.fromkeys(tag for page in pages for tag in sorted(self.tags.get(page, ())))

    def _of_topic(self, summary: int) -> bool:
        sources = self.sources[summary]
        return bool(sources) and all(_summary(self.pages[source]) for source in sources)

    def _renewed(self, summary: int) -> bool:
        """Whether what a summary stands for says something else since."""
        return any(self.changed.get(source, 0) > summary for source in self.sources[summary])


def _summary(row: _Page) -> bool:
    return row.type == PageType.SUMMARY


_PAGES = f"""SELECT page, turn, message, type, hint, tokens FROM pages WHERE session = ? AND page > ? AND page <= ?
  AND (type = {int(PageType.SUMMARY)}
    OR message > 0 AND role IN ({int(Role.USER)}, {int(Role.ASSISTANT)}, {int(Role.TOOL)})) ORDER BY page"""
_STANDING = """SELECT page, status FROM notes WHERE session = ? AND position > ? AND position <= ?
  AND status IS NOT NULL ORDER BY position"""
_CUTS = """SELECT position, number, summary, title FROM segments
  WHERE session = ? AND position > ? AND position <= ? ORDER BY position"""
_CHANGED = """SELECT page, max(position), tokens FROM changes
  WHERE session = ? AND position > ? AND position <= ? AND level = 0 GROUP BY page"""
