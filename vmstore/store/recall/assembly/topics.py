"""The topics of a session as a prompt needs them: those of its turns, those of a message, and all."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from heapq import nsmallest
from typing import NamedTuple

from vmstore.core.tags import TagDepth
from vmstore.core.text.stems import terms
from vmstore.tags.history import TagHistory
from vmstore.views.branch import Branch
from vmstore.views.reads.tags import RELATED_MAX, depths
from vmstore.views.reads.turn_topics import tagged_turns
from vmstore.vm.assembly.hint import HintTopic

TOPICS_MAX = 60  # told of in a hint: it has room for fewer


class TopicsOf(NamedTuple):
    """What is known of a session's topics: those of each turn, those of a message, those shown nowhere."""

    of_turns: TagHistory
    of_message: frozenset[str]
    closed: frozenset[str]

    def before(self, turn: int) -> list[HintTopic]:
        """The topics of what was said before a turn, those of most turns first."""
        counts, later = Counter(self.of_turns.counts), dict[str, Counter[str]]()
        for at in self.of_turns.since(turn):
            tags = self.of_turns.of(at)
            for tag in tags:
                counts[tag] -= 1
                later.setdefault(tag, Counter()).update(other for other in tags if other != tag)
        open_tags = [tag for tag, count in counts.items() if count > 0 and tag not in self.closed]
        ordered = nsmallest(TOPICS_MAX, open_tags, key=lambda tag: (-counts[tag], tag))
        return [HintTopic(tag, counts[tag], ", ".join(self._beside(tag, later.get(tag)))) for tag in ordered]

    def _beside(self, tag: str, later: Counter[str] | None) -> list[str]:
        """The tags that stand most often beside one."""
        counts = self.of_turns.beside[tag]
        if later:
            counts = counts - later
        return nsmallest(RELATED_MAX, counts, key=lambda other: (-counts[other], other))


NO_TOPICS = TopicsOf(TagHistory(), frozenset(), frozenset())


def topics_at(lane: Branch, position: int, message: str, erasure: int) -> TopicsOf:
    """The topics at a position; a message has those whose words, or those of a name for it, it has all of."""
    if not any(lane.db.execute(_ANY, (stretch.session,)).get for stretch in lane.upto(position)):
        return NO_TOPICS
    said = frozenset(terms(message))
    history, ends = tagged_turns(lane, position, erasure)
    named = [name for names in (history.counts, ends) for name in names if (own := _terms(name)) and own <= said]
    closed = frozenset(tag for tag, depth in depths(lane, position).items() if depth == TagDepth.NONE)
    return TopicsOf(history, frozenset(ends.get(name, name) for name in named), closed)


@lru_cache(maxsize=1 << 14)
def _terms(name: str) -> frozenset[str]:
    return frozenset(terms(name.replace("-", " ").replace("_", " ")))


_ANY = "SELECT 1 FROM tags INDEXED BY tags_page WHERE session = ? LIMIT 1"
