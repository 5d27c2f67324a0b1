"""Finds, for each message of a request, which message of the request before it is.

Pure: it sees keys (what a message says and who says it) and call ids, and answers pairs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, Protocol


class AlignedMessage(Protocol):
    """A message as alignment sees it."""

    @property
    def key(self) -> Hashable:
        """Equal for messages that say the same."""
        ...

    @property
    def place(self) -> Hashable:
        """The role and slot of a message; for a tool's result, the call it answers."""
        ...


class Gap(NamedTuple):
    """A stretch between two matches: what stood there before, what stands there now.

    `inner` tells that matched messages follow, so both stand in the middle of the conversation.
    """

    old: range
    new: range
    inner: bool


class SettledMessages(NamedTuple):
    """The messages that are settled, old and new, by index."""

    old: set[int]
    new: set[int]

    def of(self, olds: Iterable[int], news: Iterable[int]) -> tuple[list[int], list[int]]:
        """Those of some that are not."""
        return [i for i in olds if i not in self.old], [i for i in news if i not in self.new]

    def left(self, gap: Gap) -> tuple[list[int], list[int]]:
        """Those of a gap that are not."""
        return self.of(gap.old, gap.new)


class Alignment(NamedTuple):
    """`same` maps new indexes to the old ones that say the same, `gaps` hold the rest."""

    same: dict[int, int]
    gaps: list[Gap]


def align(old: Sequence[AlignedMessage], new: Sequence[AlignedMessage], *, last_is_new: bool = False) -> Alignment:
    """Matches messages that say the same, in order where they can be.

    `last_is_new` says that the last one can only be the last one of before: people say "go on" twice.
    """
    places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for index, entry in enumerate(old):
        places[entry.key].append(index)
    same: dict[int, int] = {}
    end = len(new) - 1
    for index, entry in enumerate(new):
        if last_is_new and index == end and not (old and places[entry.key] and places[entry.key][0] == len(old) - 1):
            continue
        if places[entry.key]:
            same[index] = places[entry.key].popleft()
    return Alignment(same, _gaps(len(old), len(new), same))


def _gaps(olds: int, news: int, same: dict[int, int]) -> list[Gap]:
    """The gaps between matches that keep their order."""
    gaps: list[Gap] = []
    taken = set(same.values())
    old_at = new_at = 0
    anchors = [*_increasing(sorted(same.items())), (news, olds)]
    for new_next, old_next in anchors:
        old_range = range(old_at, old_next)
        new_range = range(new_at, new_next)
        if any(i not in taken for i in old_range) or any(i not in same for i in new_range):
            gaps.append(Gap(old_range, new_range, new_next < news))
        old_at, new_at = old_next + 1, new_next + 1
    return gaps


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs whose old index is above all kept before: what did not move back."""
    kept: list[tuple[int, int]] = []
    for pair in pairs:
        if not kept or pair[1] > kept[-1][1]:
            kept.append(pair)
    return kept


def pair(
    gap: Gap, old: Sequence[AlignedMessage], new: Sequence[AlignedMessage], taken: SettledMessages
) -> list[tuple[int, int]]:
    """Pairs the messages of a gap that are changed forms of each other: (old, new) indexes.

    One that answers the same tool call is; otherwise as many old ones as new ones, each of the
    same speaker, are taken in order. Those that are `taken` are settled.
    """
    olds, news = taken.left(gap)
    answering: defaultdict[str, deque[int]] = defaultdict(deque)
    for index in olds:
        if isinstance(place := old[index].place, str):
            answering[place].append(index)
    pairs = []
    for index in news:
        place = new[index].place
        if isinstance(place, str) and answering.get(place):
            pairs.append((answering[place].popleft(), index))
    paired = SettledMessages({index for index, _ in pairs}, {index for _, index in pairs})
    olds, news = paired.of(olds, news)
    if len(olds) == len(news) and all(old[i].place == new[j].place for i, j in zip(olds, news, strict=True)):
        pairs += zip(olds, news, strict=True)
    return pairs
