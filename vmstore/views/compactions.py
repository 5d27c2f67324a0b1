"""Compactions: packs at which a new summary came into the prompt as pages that it was made from left it."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.page import LinkKind, PageType
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import ended
from vmstore.views.projectors.pages import TYPED
from vmstore.views.projectors.residency import stays
from vmstore.views.reads.context import ShownPage, contents
from vmstore.views.reads.resolve_asof import moment_at

_TOKENS = ShownPage._fields.index("tokens") - ShownPage._fields.index("message")


class CompactionRow(NamedTuple):
    """A summary that replaced pages at a pack: `left` they are, of `tokens` as they were shown.

    `returned` are those of them that came back to the prompt since, each with the first pack that had it.
    """

    position: int
    turn: int
    call: int
    summary: int
    summary_tokens: int
    left: tuple[int, ...]
    tokens: int
    returned: tuple[tuple[int, int], ...]


def compactions_at(lane: Branch, position: int) -> list[CompactionRow]:
    """Every compaction up to a position, in order.

    A summary replaces pages with the pack that first shows it, and replaces those that it is linked to as made from
    or standing for and that this pack no longer shows. One that takes no page's place is none.
    """
    summaries = [
        page
        for stretch in lane.upto(position)
        for (page,) in lane.db.execute(_SUMMARIES, (stretch.session, stretch.low, stretch.high))
    ]
    if not summaries:
        return []
    sources = _sources(lane, summaries, position)
    first: dict[int, tuple[int, int]] = {}
    for (f, page), (_, content, _, _) in sorted(stays(lane, position, summaries).items()):
        first.setdefault(page, (f, content))
    begun, closed = _stayed(lane, position, {link.target for page in first for link in sources.get(page, ())})
    found = []
    for summary, (pack, content) in first.items():
        gone = ended(lane, pack)
        replaced = {link.target for link in sources.get(summary, ()) if gone.get(link[:3], 0) < link.position <= pack}
        left = {page: closed[page][pack] for page in replaced if pack in closed.get(page, ())}
        if left:
            found.append(_compaction(lane, pack, (summary, content), left, begun))
    return sorted(found, key=lambda made: (made.position, made.summary))


def _compaction(
    lane: Branch, pack: int, summary: tuple[int, int], left: dict[int, int], begun: dict[int, list[int]]
) -> CompactionRow:
    shown = contents(lane, [summary[1], *left.values()])
    back = {page: min((f for f in begun[page] if f > pack), default=None) for page in sorted(left)}
    return CompactionRow(
        pack,
        *moment_at(lane, pack),
        summary[0],
        shown[summary[1]][_TOKENS],
        tuple(sorted(left)),
        sum(shown[content][_TOKENS] for content in left.values()),
        tuple((page, at) for page, at in back.items() if at is not None),
    )


class _MadeFrom(NamedTuple):
    """A link from a summary, where it was logged."""

    source: int
    target: int
    kind: int
    position: int


def _sources(lane: Branch, summaries: list[int], position: int) -> dict[int, list[_MadeFrom]]:
    """By summary, what it was ever said to be made from or to stand for."""
    found: dict[int, list[_MadeFrom]] = {}
    for stretch in lane.upto(position):
        for row in lane.db.execute(_MADE_FROM, (stretch.session, str(summaries), stretch.high)):
            found.setdefault(row[0], []).append(_MadeFrom(*row))
    return found


def _stayed(lane: Branch, position: int, pages: set[int]) -> tuple[dict[int, list[int]], dict[int, dict[int, int]]]:
    """By page, the packs that first had it in the prompt, and those that had it no more: what was shown until then."""
    here = stays(lane, position, sorted(pages)) if pages else {}
    begun: dict[int, list[int]] = {}
    closed: dict[int, dict[int, int]] = {}
    for (f, page), (t, content, since, _) in here.items():
        if f == since:
            begun.setdefault(page, []).append(f)
        if t is not None and (t, page) not in here:
            closed.setdefault(page, {})[t] = content
    return begun, closed


_SUMMARIES = f"""SELECT page FROM pages
  WHERE {TYPED} AND type = {int(PageType.SUMMARY)} AND session = ? AND page > ? AND page <= ?"""
_MADE_FROM = f"""SELECT l.source, l.target, l.kind, l.position FROM json_each(?2) page
  CROSS JOIN links l ON l.session = ?1 AND l.source = page.value AND l.position <= ?3
   AND l.kind IN ({int(LinkKind.DERIVES)}, {int(LinkKind.REPRESENTS)})"""
