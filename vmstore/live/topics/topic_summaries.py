"""Sums up what the segments of a tag came to, once there are several: those tags alone that together cover all of it.

A tag whose segments are the same as when it was summed up is left as it is.
"""

from __future__ import annotations

from vmstore.core.decision import Cause
from vmstore.core.mutation import Evict
from vmstore.core.page import LinkKind, Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.live import extraction
from vmstore.live.messages import page
from vmstore.live.runtime import Act
from vmstore.tags.cover import covering
from vmstore.tags.exact import completed
from vmstore.views.reads.segments import TOPIC_SUMMARY

SEGMENTS_MIN = 2  # of a tag, before they are summed up together


def sum_up_topics(act: Act) -> list[int]:
    """Writes the summary of each covering tag whose segments are others than before; their pages."""
    parts = _segments_of_tags(act)
    turns = {tag: {turn for some in own.values() for turn in some} for tag, own in parts.items()}
    made = []
    for tag in covering(turns):
        segments = sorted(parts[tag])
        last = act.spoken.named.get(TOPIC_SUMMARY + tag)
        if len(segments) < SEGMENTS_MIN or (last and sorted(act.spoken.sources.get(last, ())) == segments):
            continue
        summary = _sum_up(act, tag, segments)
        if summary is not None:
            made.append(summary)
    return made


def _segments_of_tags(act: Act) -> dict[str, dict[int, set[int]]]:
    """Of each tag the summaries of its segments, each with its turns."""
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


def _sum_up(act: Act, tag: str, segments: list[int]) -> int | None:
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
