"""Ends segments where the topic changes, before what begins the next one is said.

The boundary is logged without a summary: what was said stays as it is until the prompt needs the room.
"""

from __future__ import annotations

from vmstore.core.mutation import Segment
from vmstore.live.runtime import Act
from vmstore.live.topics.turn_tags import spoken_by_turn, tags_by_turn, texts_of_turns
from vmstore.tags.segment_cut import ends
from vmstore.tags.tagger import LOOK_BACK, TaggedTurn, TurnText, tags_of


def begin(act: Act, words: str) -> None:
    """Ends the segment under way where a person's message that opens a turn begins another."""
    settings, state = act.state.settings, act.state
    if settings is None or not settings.compaction or settings.tags == "off":
        return
    pages = spoken_by_turn(act)
    open_turns = [
        turn for turn, some in pages.items() if any(state.pages[page].segment == state.segment for page in some)
    ]
    if not open_turns:
        return
    tags, aliases = tags_by_turn(act, pages)
    recent = sorted(tags)[-LOOK_BACK:]
    texts = texts_of_turns(act, pages, recent)
    before = [TaggedTurn(texts.get(turn, TurnText("")), tuple(tags[turn])) for turn in recent]
    known: dict[str, int] = {}
    for names in tags.values():
        for name in names:
            known[name] = known.get(name, 0) + 1
    found = tags_of(TurnText(words), before, known, aliases)
    open_tags = {name for turn in open_turns for name in tags.get(turn, ())}
    if ends(open_tags, found, 0):
        act.tell(Segment(state.segment + 1))
