"""The topics of a session as a prompt needs them: those of its turns, those of a message, and all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmstore.core.tags import TagDepth
from vmstore.core.text.stems import terms
from vmstore.views.branch import Branch
from vmstore.views.reads.tags import tag_rows, turns_of_tags
from vmstore.vm.assembly.hint import HintTopic


class TopicsOf(NamedTuple):
    """What is known of a session's topics: those of each turn, those of a message, and all, the first first."""

    of_turns: Mapping[int, Sequence[str]]
    of_message: frozenset[str]
    all: Sequence[HintTopic]


NO_TOPICS = TopicsOf({}, frozenset(), ())


def topics_at(lane: Branch, position: int, message: str) -> TopicsOf:
    """The topics at a position; a message has those whose words, or those of a name for it, it has all of."""
    if not any(lane.db.execute(_ANY, (stretch.session,)).get for stretch in lane.upto(position)):
        return NO_TOPICS
    said = set(terms(message))
    matched: set[str] = set()
    topics: list[HintTopic] = []
    for row in tag_rows(lane, position):
        named = set(terms(row.tag.replace("-", " ").replace("_", " ")))
        if named and named <= said:
            matched.add(row.canonical)
        if row.tag == row.canonical and row.turns and row.depth != TagDepth.NONE.word:
            topics.append(HintTopic(row.tag, len(row.turns), ", ".join(row.related)))
    topics.sort(key=lambda topic: (-topic.turns, topic.tag))
    of_turns = {turn: sorted(tags) for turn, tags in turns_of_tags(lane, position).items()}
    return TopicsOf(of_turns, frozenset(matched), topics)


_ANY = "SELECT 1 FROM tags INDEXED BY tags_page WHERE session = ? LIMIT 1"
