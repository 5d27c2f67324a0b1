"""Ends segments where the topic changes or another sitting begins, before what begins the next one is said.

The boundary is logged without a summary: what was said stays as it is until the prompt needs the room.
"""

from __future__ import annotations

from vmstore.core.mutation import Segment
from vmstore.live.runtime import Act
from vmstore.live.topics.turn_tags import texts_of_turns
from vmstore.tags.segment_cut import ends, session_date
from vmstore.tags.tagger import LOOK_BACK, TaggedTurn, TurnText, tags_of


def begin(act: Act, words: str) -> None:
    """Ends the segment under way where a person's message that opens a turn begins another."""
    settings, state = act.state.settings, act.state
    if settings is None or not settings.compaction or settings.tags == "off":
        return
    topics = act.topics
    open_turns = []
    for turn, some in reversed(topics.pages.items()):  # the last ones, back to where the segment begins
        if not any(state.pages[page].segment == state.segment for page in some):
            break
        open_turns.append(turn)
    if not open_turns:
        return
    recent = topics.history.last(LOOK_BACK)
    texts = texts_of_turns(act, topics.pages, recent)
    before = [TaggedTurn(texts.get(turn, TurnText("")), topics.history.of(turn)) for turn in recent]
    found = tags_of(TurnText(words), before, topics.history.counts, topics.aliases)
    open_tags = {name for turn in open_turns for name in topics.history.of(turn)}
    dates = [date for turn in reversed(recent) if turn in texts and (date := session_date(texts[turn].asked))]
    dated = session_date(words)
    if ends(open_tags, found, act.pause_us) or (dated and dated not in dates[:1]):
        act.tell(Segment(state.segment + 1))
