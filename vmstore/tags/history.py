"""The tags of a session's turns, kept so that the next turn costs what it is, and not all that were before."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable


class TagHistory:
    """The tags of each turn that has any, by the names they count as; where each tag is, beside which."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.beside: dict[str, Counter[str]] = {}  # of each tag those that stand in its turns
        self._names: dict[int, tuple[str, ...]] = {}
        self._turns: dict[str, set[int]] = {}
        self._order: list[int] = []

    def __len__(self) -> int:
        """How many turns have tags."""
        return len(self._order)

    def of(self, turn: int) -> tuple[str, ...]:
        """The tags of a turn."""
        return self._names.get(turn, ())

    def last(self, many: int) -> list[int]:
        """The last turns that have tags, so many at most, in order."""
        return self._order[-many:]

    def turns_of(self, tag: str) -> list[int]:
        """The turns that have a tag, in order."""
        return sorted(self._turns.get(tag, ()))

    def put(self, turn: int, names: Iterable[str]) -> None:
        """Gives a turn its tags in the place of those it had; without any it has none."""
        before, now = self._names.get(turn, ()), tuple(dict.fromkeys(names))
        if before == now:
            return
        for tag in before:
            self._beside(tag, before, -1)
            self.counts[tag] -= 1
            self._turns[tag].discard(turn)
            if not self.counts[tag]:
                del self.counts[tag], self._turns[tag], self.beside[tag]
        for tag in now:
            self._beside(tag, now, 1)
            self.counts[tag] += 1
            self._turns.setdefault(tag, set()).add(turn)
        if not before:
            insort(self._order, turn)
        elif not now:
            self._order.remove(turn)
        if now:
            self._names[turn] = now
        else:
            self._names.pop(turn, None)

    def since(self, turn: int) -> list[int]:
        """The turns from one on that have tags, in order."""
        return self._order[bisect_left(self._order, turn) :]

    def _beside(self, tag: str, names: Iterable[str], by: int) -> None:
        others = self.beside.setdefault(tag, Counter())
        for other in names:
            if other != tag:
                others[other] += by
                if not others[other]:
                    del others[other]

    def rename(self, ends: dict[str, str]) -> None:
        """Has names count as others from here on."""
        for turn in sorted({turn for name in ends for turn in self._turns.get(name, ())}):
            self.put(turn, [ends.get(name, name) for name in self._names[turn]])
