"""All that sessions are about: each stretch by its summary where one was written, else by its leading topics."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.page import LinkKind, Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import texts_of
from vmstore.store.reads.search import Moments
from vmstore.store.recall.recall import budget
from vmstore.store.recall.results import Overview, Topic
from vmstore.views.branch import Branch
from vmstore.vm.recall.topics import leading, profile

TURNS = 5  # of a stretch that nobody summed up
PAGES = 10  # named of a stretch
TOPICS = 4
SUMMARY_TOKENS_MAX = 200  # of one summary: what is longer is cut
PROFILED_CHARS = 4_000  # of a text


class _Stretch(NamedTuple):
    """A part of a lane: its summary's page or 0, what stands in it, when it began."""

    lane: Branch
    session: str
    summary: int
    pages: tuple[int, ...]
    turns: tuple[int, int]
    at: int


def overview(
    ns: Namespace, moments: Moments, tokens: int, untold: Callable[[Sequence[int]], frozenset[int]]
) -> Overview:
    """What sessions are about within a budget: every topic first, then as much of their texts as there is room for.

    Where not even the topics fit, the latest are listed.
    """
    budget(tokens)
    with ns.asking():
        stretches = [
            (found, position) for name, lane, position in moments for found in _stretches(name, lane, position)
        ]
    out = untold([page for stretch, _ in stretches for page in (*stretch.pages, stretch.summary)])
    with ns.asking():
        made = (_topic(ns, stretch, position, out) for stretch, position in stretches)
        topics = [topic for topic in made if topic is not None]
    topics.sort(key=lambda topic: (topic.at_us, topic.session, topic.turns))
    left, listed = tokens, dict[int, Topic]()
    for place in reversed(range(len(topics))):
        bare = topics[place]
        cost = _tokens(bare.topic)
        if cost > left:
            break
        left -= cost
        listed[place] = Topic(bare.topic, bare.session, bare.turns, bare.at_us, bare.pages, "", cost)
    for place, bare in listed.items():  # the latest first
        text = topics[place].text
        cost = _tokens(text)
        if text and cost <= left:
            left -= cost
            listed[place] = Topic(
                bare.topic, bare.session, bare.turns, bare.at_us, bare.pages, text, bare.tokens + cost
            )
    note = "" if topics else "nothing was said yet"
    if topics and not listed:
        note = f"no topic fits {tokens} tokens; give more"
    return Overview(
        [listed[place] for place in sorted(listed)], tokens - left, len(topics), len(topics) - len(listed), note
    )


def _topic(ns: Namespace, stretch: _Stretch, position: int, out: Container[int]) -> Topic | None:
    positions = {stretch.lane.session: position}
    wanted = (stretch.summary,) if stretch.summary else stretch.pages
    wanted = tuple(page for page in wanted if page not in out)
    texts = dict(texts_of(ns.log, stretch.lane, positions, wanted))
    spoken = [texts[page] for page in wanted if texts.get(page, "").strip()]
    if not spoken:
        return None
    words = leading((profile(text[:PROFILED_CHARS]) for text in spoken), TOPICS)
    first = " ".join(spoken[0].split())
    text = first[: 4 * (SUMMARY_TOKENS_MAX if stretch.summary else SUMMARY_TOKENS_MAX // 4)]
    text += "…" if len(text) < len(first) else ""
    named = [page_name(page) for page in wanted[:PAGES]]
    return Topic(", ".join(words) or first[:80], stretch.session, stretch.turns, stretch.at, named, text, 0)


def _stretches(name: str, lane: Branch, position: int) -> Iterator[_Stretch]:
    """A session's segments by their summaries, and between them what nobody summed up, some turns at a time."""
    rows = [row for part in reversed(lane.upto(position)) for row in lane.db.execute(_SPOKEN, part[:3])]
    segments = _segments(lane, position)
    for summary, first in segments.items():
        within = [row for row in rows if first <= row[0] <= summary]
        pages = tuple(row[0] for row in within if row[3] == PageType.TRANSCRIPT)
        yield _Stretch(lane, name, summary, pages, (within[0][1], within[-1][1]), within[0][2])
    some: list[Any] = []
    for row in rows:
        if row[3] != PageType.TRANSCRIPT or any(first <= row[0] <= last for last, first in segments.items()):
            continue
        if some and row[1] >= some[0][1] + TURNS:
            yield _of(lane, name, some)
            some = []
        some.append(row)
    if some:
        yield _of(lane, name, some)


def _of(lane: Branch, name: str, rows: Sequence[Any]) -> _Stretch:
    return _Stretch(lane, name, 0, tuple(row[0] for row in rows), (rows[0][1], rows[-1][1]), rows[0][2])


def _segments(lane: Branch, position: int) -> dict[int, int]:
    """Each summary with the first page it was made of; one that is in a later one is left to that."""
    first: dict[int, int] = {}
    inner: set[int] = set()
    for part in lane.upto(position):
        for source, target in lane.db.execute(_STANDS, part[:3]):
            first[source] = min(target, first.get(source, target))
            inner.add(target)
    for source in sorted(first):
        first[source] = first.get(first[source], first[source])
    return {source: page for source, page in sorted(first.items()) if source not in inner}


def _tokens(text: str) -> int:
    return estimate(text.encode("utf-8", "surrogatepass"), Modality.TEXT) if text else 0


_SPOKEN = f"""SELECT page, turn, at, type FROM pages WHERE session = ? AND page > ? AND page <= ?
  AND ((type = {int(PageType.TRANSCRIPT)} AND message IS NOT NULL AND role IN ({int(Role.USER)}, {int(Role.ASSISTANT)}))
    OR type = {int(PageType.SUMMARY)}) ORDER BY page"""
_STANDS = f"""SELECT source, target FROM links JOIN pages ON pages.session = links.session AND pages.page = links.source
  WHERE links.session = ? AND links.position > ? AND links.position <= ?
  AND links.kind IN ({int(LinkKind.REPRESENTS)}, {int(LinkKind.DERIVES)}) AND pages.type = {int(PageType.SUMMARY)}"""
