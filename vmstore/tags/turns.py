"""The tags of a session turn by turn: what is told of each turn, and the split of a tag that it made too broad."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from vmstore.tags.history import TagHistory
from vmstore.tags.split import TagSplit, due, split
from vmstore.tags.tagger import LOOK_BACK, FoundTag, TaggedTurn, TurnText, tags_of

SPLIT_EVERY = 5  # turns of a broad tag, after which it is looked at again where it did not fall apart

ReadTurns = Callable[[Sequence[int]], Mapping[int, TurnText]]
"""What was said in some turns; those that say nothing, or were erased, are left out."""


Tagger = Callable[[TurnText, Sequence[TaggedTurn], Mapping[str, int], Mapping[str, str]], Sequence[FoundTag]]
"""What finds the tags of a turn: its words, the turns before it, the tags there are with their turns, the aliases."""


class TurnTags(NamedTuple):
    """The tags of a turn, and the tag that it made too broad, split."""

    found: tuple[FoundTag, ...]
    split: TagSplit | None = None


def tag_turn(
    number: int,
    history: TagHistory,
    aliases: Mapping[str, str],
    narrowed: Collection[str],
    read: ReadTurns,
    tagger: Tagger = tags_of,
) -> TurnTags:
    """What is told of a turn that ended: nothing where it says nothing.

    `history` has the tags of the turns before it, `narrowed` the tags that a split has made.
    """
    recent = history.last(LOOK_BACK)
    texts = read([*recent, number])
    if number not in texts:
        return TurnTags(())
    before = [TaggedTurn(texts.get(turn, TurnText("")), history.of(turn)) for turn in recent]
    found = tagger(texts[number], before, history.counts, aliases)
    counts = {tag: history.counts[tag] + 1 for tag in {found_tag.tag for found_tag in found}}
    ends = {*aliases.values()}
    grown = {
        tag: count
        for tag, count in counts.items()
        if count % SPLIT_EVERY == 0 and tag not in narrowed and tag not in aliases and tag not in ends
    }
    broad = due(grown, len(history) + 1, frozenset())
    if broad is None:
        return TurnTags(tuple(found))
    its = [*history.turns_of(broad), number]
    said = read(its)
    return TurnTags(tuple(found), split(broad, [(turn, said[turn]) for turn in its if turn in said]))
