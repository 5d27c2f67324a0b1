"""Compaction: segments that the prompt has no room for any more are summed up, oldest first, several at once.

Then what sums up the segments of a tag, once there are several: of the fewest tags that cover all of it.

From the watermark, which is the end of what was summed up before, to the last turns, which stay as they were said.
"""

from __future__ import annotations

from collections.abc import Sequence

from vmstore.core.decision import Cause
from vmstore.core.mutation import Evict, Segment
from vmstore.core.page import LinkKind, Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.live import extraction
from vmstore.live.messages import LoggedMessage, page
from vmstore.live.runtime import Act
from vmstore.tags.cover import covering
from vmstore.tags.exact import completed
from vmstore.views.reads.segments import TOPIC_SUMMARY
from vmstore.vm.kernel.managed_page import ManagedPage

SEGMENTS_MIN = 2  # of a tag, before they are summed up together
TOKENS_MIN = 120  # what says less stays as it is: a summary of it would be no shorter


def hear(act: Act, spokes: Sequence[LoggedMessage], sent: dict[int, int]) -> None:
    """Takes in what the model answered, and sums up what there is no room for any more."""
    extraction.hear(act, spokes, sent)
    compact(act)


def compact(act: Act, *, asked: bool = False) -> list[int]:
    """Sums up what there is no room for, after a final answer, or all that may be where somebody asked; the summaries.

    Over the soft mark segments that ended are summed up until it is met; over the hard one the older turns of the one
    under way, too.
    """
    settings, state = act.state.settings, act.state
    if settings is None or not (asked or (settings.compaction and act.spoken.final)):
        return []
    soft, hard = int(state.room * settings.compact_soft), int(state.room * settings.compact_hard)
    if not asked and state.used <= soft:
        return []
    made = []
    for number, members in sorted(_waiting(act).items()):
        if number == state.segment and not asked and state.used <= hard:
            break
        summary = _sum_up(act, number, members)
        if summary is not None:
            made.append(summary)
        if not asked and state.used <= soft:
            break
    if made:
        _sum_up_topics(act)
    return made


def close(act: Act) -> None:
    """Ends the segment under way of a session that was closed, and sums up what may be; nothing without compaction."""
    settings, state = act.state.settings, act.state
    if settings is not None and settings.compaction and state.segment_tokens:
        compact(act, asked=True)
        act.tell(Segment(state.segment + 1))


def _waiting(act: Act) -> dict[int, list[ManagedPage]]:
    """Pages that no summary covers, by segment, in order, without those of the last turns."""
    state, settings = act.state, act.state.settings
    assert settings is not None, "only a live session is compacted"
    last = state.turn - max(1, settings.pinned_turns)
    summed = {source for summary in act.spoken.summaries for source in act.spoken.sources.get(summary, ())}
    staying = state.yielding()
    open_turns = {managed.created for number in staying if (managed := state.pages[number]).message}
    found: dict[int, list[ManagedPage]] = {}
    for managed in state.pages.values():
        if (
            managed.message
            and not managed.pinned
            and managed.page not in summed
            and managed.created <= last
            and managed.created not in open_turns
            and managed.page not in state.barred
            and not act.spoken.undone(managed.page)
        ):
            found.setdefault(managed.segment, []).append(managed)
    return found


def _sum_up(act: Act, number: int, members: list[ManagedPage]) -> int | None:
    """Writes the summary of a segment, and has what it stands for leave; None where that is as short already."""
    before = sum(managed.forms[0].tokens for managed in members if managed.forms[0] is not None)
    if before < TOKENS_MIN:
        return None
    pages = [managed.page for managed in members]
    texts = [source.text for source in extraction.texts(act, pages)]
    tags = list(dict.fromkeys(name for number in pages for name in act.spoken.tags.get(number, {})))
    claims = extraction.claims_in(act, number)
    text = completed(texts, extraction.summed(", ".join(tags), claims, texts))
    content = text.encode("utf-8", "backslashreplace")
    if estimate(content, Modality.TEXT) >= before:
        return None
    links = [(int(LinkKind.DERIVES), page) for page in pages]
    part = sum(name.startswith(f"summary_{number + 1}") for name in act.spoken.named)
    name = f"summary_{number + 1}" + (f"_{part + 1}" if part else "")
    made = page(act, PageType.SUMMARY, content, role=Role.SYSTEM, name=name, links=links, actor="vm")
    for managed in members:
        if managed.page in act.state.here:
            act.tell(Evict(managed.page, Cause.SEGMENT, act.state.here[managed.page].tokens))
    title = act.cell(", ".join(tags).encode()) if tags else None
    act.tell(Segment(act.state.segment, made, title))
    return made


def _sum_up_topics(act: Act) -> list[int]:
    """Writes the summary of each covering tag whose segments are others than when it was summed up; their pages."""
    parts = _segments_of_tags(act)
    turns = {tag: {turn for some in own.values() for turn in some} for tag, own in parts.items()}
    made = []
    for tag in covering(turns):
        segments = sorted(parts[tag])
        last = act.spoken.named.get(TOPIC_SUMMARY + tag)
        if len(segments) < SEGMENTS_MIN or (last and sorted(act.spoken.sources.get(last, ())) == segments):
            continue
        summary = _sum_up_topic(act, tag, segments)
        if summary is not None:
            made.append(summary)
    return made


def _segments_of_tags(act: Act) -> dict[str, dict[int, set[int]]]:
    """The summaries of each tag's segments, each with its turns."""
    found: dict[str, dict[int, set[int]]] = {}
    pages, topics = act.state.pages, act.topics
    for summary in act.spoken.summaries:
        sources = act.spoken.sources.get(summary, ())
        if any(source not in pages or pages[source].type is PageType.SUMMARY for source in sources):
            continue
        turns = {pages[source].created for source in sources}
        for turn in turns:
            for tag in topics.history.of(turn):
                found.setdefault(tag, {}).setdefault(summary, set()).add(turn)
    return found


def _sum_up_topic(act: Act, tag: str, segments: list[int]) -> int | None:
    texts = [act.forms.of(number) for number in segments]
    read = [content.decode("utf-8", "replace") for content in texts if isinstance(content, bytes)]
    text = completed(read, extraction.summed(tag, [], read))
    content = text.encode("utf-8", "backslashreplace")
    before = sum(form.tokens for number in segments if (form := act.state.pages[number].forms[0]) is not None)
    if len(read) < len(segments) or estimate(content, Modality.TEXT) >= before:
        return None
    links = [(int(LinkKind.DERIVES), number) for number in segments]
    made = page(act, PageType.SUMMARY, content, role=Role.SYSTEM, name=TOPIC_SUMMARY + tag, links=links, actor="vm")
    here = act.state.here.get(made)
    if here is not None:  # the segments stand in the prompt; this one is for an assembled one
        act.tell(Evict(made, Cause.SEGMENT, here.tokens))
    return made
