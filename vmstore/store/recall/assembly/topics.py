"""The topics of a session as a prompt needs them: those of its turns, those of a message, and all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmstore.core.tags import TagDepth
from vmstore.core.text.stems import terms
from vmstore.views.branch import Branch
from vmstore.views.reads.tags import RELATED_MAX, tag_rows, turns_of_tags
from vmstore.vm.assembly.hint import HintTopic


class TopicsOf(NamedTuple):
    """What is known of a session's topics: those of each turn, those of a message, and those that may be told of."""

    of_turns: Mapping[int, Sequence[str]]
    of_message: frozenset[str]
    open: frozenset[str]

    def before(self, turn: int) -> list[HintTopic]:
        """The topics of what was said before a turn, those of most turns first."""
        counts, beside = Counter[str](), dict[str, Counter[str]]()
        for at, tags in self.of_turns.items():
            for tag in tags if at < turn else ():
                counts[tag] += 1
                beside.setdefault(tag, Counter()).update(other for other in tags if other != tag)
        ordered = sorted((tag for tag in counts if tag in self.open), key=lambda tag: (-counts[tag], tag))
        return [HintTopic(tag, counts[tag], ", ".join(_first(beside[tag]))) for tag in ordered]


def _first(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda tag: (-counts[tag], tag))[:RELATED_MAX]


NO_TOPICS = TopicsOf({}, frozenset(), frozenset())


def topics_at(lane: Branch, position: int, message: str) -> TopicsOf:
    """The topics at a position; a message has those whose words, or those of a name for it, it has all of."""
    if not any(lane.db.execute(_ANY, (stretch.session,)).get for stretch in lane.upto(position)):
        return NO_TOPICS
    said = set(terms(message))
    matched: set[str] = set()
    shown: set[str] = set()
    for row in tag_rows(lane, position):
        named = set(terms(row.tag.replace("-", " ").replace("_", " ")))
        if named and named <= said:
            matched.add(row.canonical)
        if row.tag == row.canonical and row.turns and row.depth != TagDepth.NONE.word:
            shown.add(row.tag)
    of_turns = {turn: sorted(tags) for turn, tags in turns_of_tags(lane, position).items()}
    return TopicsOf(of_turns, frozenset(matched), frozenset(shown))


_ANY = "SELECT 1 FROM tags INDEXED BY tags_page WHERE session = ? LIMIT 1"
