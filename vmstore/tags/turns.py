"""The tags of a session turn by turn: what is told of each turn, and the split of a tag that it made too broad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from vmstore.tags.split import TagSplit, due, split
from vmstore.tags.tagger import LOOK_BACK, FoundTag, TaggedTurn, TurnText, tags_of

SPLIT_EVERY = 5  # turns of a broad tag, after which it is looked at again where it did not fall apart

ReadTurns = Callable[[Sequence[int]], Mapping[int, TurnText]]
"""What was said in some turns; those that say nothing, or were erased, are left out."""


class TurnTags(NamedTuple):
    """The tags of a turn, and the tag that it made too broad, split."""

    found: tuple[FoundTag, ...]
    split: TagSplit | None = None


def tag_turn(
    number: int,
    tags: Mapping[int, Sequence[str]],
    aliases: Mapping[str, str],
    narrowed: frozenset[str],
    read: ReadTurns,
) -> TurnTags:
    """What is told of a turn that ended: nothing where it says nothing.

    `tags` are those of the turns before it by the names they count as, `narrowed` the tags that a split has made.
    """
    earlier = [turn for turn in tags if turn < number]
    recent = sorted(earlier)[-LOOK_BACK:]
    texts = read([*recent, number])
    if number not in texts:
        return TurnTags(())
    known: Counter[str] = Counter(tag for turn in earlier for tag in set(tags[turn]))
    before = [TaggedTurn(texts.get(turn, TurnText("")), tuple(tags[turn])) for turn in recent]
    found = tags_of(texts[number], before, known, aliases)
    new = {tag.tag for tag in found}
    known.update(new)
    done = narrowed | aliases.keys() | {*aliases.values()}
    grown = {tag: known[tag] for tag in new if known[tag] % SPLIT_EVERY == 0}
    broad = due(grown, len(earlier) + 1, done)
    if broad is None:
        return TurnTags(tuple(found))
    its = sorted([*(turn for turn in earlier if broad in tags[turn]), number])
    said = read(its)
    return TurnTags(tuple(found), split(broad, [(turn, said[turn]) for turn in its if turn in said]))
