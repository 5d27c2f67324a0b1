"""What stands for what was said long ago: summaries of segments, those of their tags, or all of it where asked.

A tag is shown as deep as `expand` and `collapse` say. Where nobody said anything the summaries of its segments stand,
and what sums them up in their place where there is no room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.decision import PromptPart
from vmstore.core.page import LinkKind, PageType, Role
from vmstore.core.tags import TagDepth
from vmstore.core.times import iso
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import texts_of
from vmstore.store.recall.assembly.candidates import ABSTRACT, tokens_in
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import TYPED
from vmstore.views.reads.segments import TOPIC_SUMMARY
from vmstore.views.reads.tags import aliases, depths, tags_of_pages
from vmstore.vm.assembly.blocks import plain
from vmstore.vm.assembly.candidate import CandidateForm, PromptCandidate
from vmstore.vm.assembly.message_cut import cut

SUMMARIES_MAX = 12
SUMMARY_TOKENS = 200


class _Summary(NamedTuple):
    """A summary: its page, turn, the tag it sums up where it is one's, what it was made of, and when that began."""

    page: int
    turn: int
    tag: str | None
    sources: tuple[int, ...]
    at_us: int


def summaries(ns: Namespace, lane: Branch, position: int, out: frozenset[int]) -> list[PromptCandidate]:
    """The newest summaries that no later one stands for, in the depth of their tags."""
    found = _found(lane, position)
    if not found:
        return []
    topics = {one.tag: one for one in sorted(found.values()) if one.tag is not None}
    parts = {one.page: [found[page] for page in one.sources if page in found] for one in topics.values()}
    covered = {part.page for some in parts.values() for part in some}
    older = {page for one in found.values() if one.tag is None for page in one.sources if page in found}
    deep, ends = depths(lane, position), aliases(lane, position)
    wanted = [
        one
        for one in sorted(found.values(), reverse=True)
        if one.page not in covered | older and one.page not in out and (one.tag is None or topics[one.tag] is one)
    ][:SUMMARIES_MAX]
    read = {page for one in wanted for page in (one.page, *(part.page for part in parts.get(one.page, ())))}
    texts = dict(texts_of(ns.log, lane, {lane.session: position}, sorted(read)))
    tags = _tags(lane, position, [one for each in wanted for one in (each, *parts.get(each.page, ()))], ends)
    made = []
    for one in wanted:
        own = parts.get(one.page) or [one]
        named = (one.tag,) if one.tag is not None else tuple(tags[one.page])
        depth = max((deep[tag] for tag in named if tag in deep), default=None)
        if depth == TagDepth.NONE and all(tag in deep for tag in named):
            continue
        shown = _forms(ns, lane, position, one, own, texts, depth)
        if shown:
            all_tags = tuple(dict.fromkeys(tag for each in own for tag in tags[each.page]))
            made.append(_candidate(one, own, shown, all_tags, depth))
    return made


def _forms(
    ns: Namespace, lane: Branch, position: int, one: _Summary, own: Sequence[_Summary], texts: Mapping[int, str],
    depth: int | None,
) -> list[str]:  # fmt: skip
    """The texts of a summary from the longest to the shortest, as deep as is asked for."""
    short = [_line(one, texts, most) for most in (SUMMARY_TOKENS * 4, ABSTRACT)]
    segments = "\n".join(line for each in own if (line := _line(each, texts, SUMMARY_TOKENS * 4)))
    if depth == TagDepth.FULL:
        return [text for text in (_said(ns, lane, position, own), segments, *short) if text]
    if depth == TagDepth.SEGMENTS or (depth is None and one.tag is not None):
        return [text for text in (segments, *short) if text]
    return [text for text in short if text]


def _line(one: _Summary, texts: Mapping[int, str], most: int) -> str:
    text = plain(texts.get(one.page, ""))
    return f"[Session: {iso(one.at_us)[:16].replace('T', ' ')}] {cut(text, most)}" if text else ""


def _said(ns: Namespace, lane: Branch, position: int, own: Sequence[_Summary]) -> str:
    """All that was said in some segments, a line a page."""
    pages = sorted({page for one in own for page in one.sources})
    roles = dict(lane.rows(_ROLES, pages))
    said = [
        f"{Role(roles[page]).word}: {plain(text)}"
        for page, text in texts_of(ns.log, lane, {lane.session: position}, pages)
        if page in roles and text.strip()
    ]
    return "\n".join([f"[Session: {iso(own[0].at_us)[:16].replace('T', ' ')}]", *said]) if said else ""


def _candidate(
    one: _Summary, own: Sequence[_Summary], shown: Sequence[str], tags: tuple[str, ...], depth: int | None
) -> PromptCandidate:
    forms = [CandidateForm(level, tokens_in(text) + 1, text) for level, text in enumerate(dict.fromkeys(shown))]
    is_asked = depth in (TagDepth.FULL, TagDepth.SEGMENTS)
    return PromptCandidate(
        name=page_name(one.page),
        part=PromptPart.EXPANDED if is_asked else PromptPart.SUMMARIES,
        form=forms[0],
        others=tuple(forms[1:]),
        score=float(one.turn),
        turn=one.turn,
        pages=(one.page,),
        at_us=max(each.at_us for each in own),
        tags=tags,
    )


def _found(lane: Branch, position: int) -> dict[int, _Summary]:
    """Every summary there is, by its page."""
    rows: list[Any] = []
    for stretch in lane.upto(position):
        rows += lane.db.execute(_SUMMARIES, (stretch.session, stretch.low, stretch.high)).fetchall()
    found = {}
    for page, turn, at, hint in rows:
        sources = tuple(target for (target,) in lane.db.execute(_SOURCES, (lane.owner(page), page, position)))
        begun = dict(lane.rows(_TIMES, list(sources[:1]))).get(sources[0], at) if sources else at
        tag = hint.removeprefix(TOPIC_SUMMARY) if hint and hint.startswith(TOPIC_SUMMARY) else None
        found[page] = _Summary(page, turn, tag, sources, begun)
    return found


def _tags(lane: Branch, position: int, some: Sequence[_Summary], ends: Mapping[str, str]) -> dict[int, list[str]]:
    """The tags of what some summaries were made of."""
    by_page = tags_of_pages(lane, position, [page for one in some for page in one.sources])
    return {
        one.page: list(dict.fromkeys(ends.get(tag, tag) for page in one.sources for tag in by_page.get(page, ())))
        for one in some
    }


_SUMMARIES = f"""SELECT page, turn, at, hint FROM pages INDEXED BY pages_type
  WHERE {TYPED} AND type = {int(PageType.SUMMARY)} AND session = ? AND page > ? AND page <= ?"""
_SOURCES = f"""SELECT target FROM links WHERE session = ? AND source = ? AND position <= ?
  AND kind = {int(LinkKind.DERIVES)} ORDER BY target"""
_TIMES = "SELECT page, at FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
_ROLES = "SELECT page, role FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
