"""Pages in lines: those whose scores keep their order while time goes by stand in one line.

So a page is looked at when something happens to it and when it is the first of its line, and not
because time went by: a change costs the logarithm of the residents, a choice a look at the head
of each line.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from typing import ClassVar

from vmstore.vm.policies.min_residency import classes
from vmstore.vm.policies.policy import PolicyMoment, ScoredPage
from vmstore.vm.policies.resident import Resident

PIECE_MAX = 512
_BITS = 63  # of a page: a page and its number make one number, which compares faster than two
_PAGE = (1 << _BITS) - 1


class ChunkedList:
    """Pages in the order of their numbers, those of one number in their own."""

    def __init__(self) -> None:
        self._pieces: list[list[int]] = []
        self._starts: list[int] = []  # what each piece begins with

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every number and its page."""
        return ((packed >> _BITS, packed & _PAGE) for packed in chain.from_iterable(self._pieces))

    @property
    def first(self) -> tuple[int, int]:
        """The least number and its page."""
        start = self._starts[0]
        return start >> _BITS, start & _PAGE

    def add(self, number: int, page: int) -> None:
        """A page takes its place."""
        packed = number << _BITS | page
        if not self._pieces:
            self._pieces.append([packed])
            self._starts.append(packed)
            return
        at = max(bisect_right(self._starts, packed) - 1, 0)
        piece = self._pieces[at]
        insort(piece, packed)
        self._starts[at] = piece[0]
        if len(piece) > PIECE_MAX:
            half = len(piece) // 2
            self._pieces.insert(at + 1, piece[half:])
            self._starts.insert(at + 1, piece[half])
            del piece[half:]

    def remove(self, number: int, page: int) -> None:
        """A page leaves its place."""
        packed = number << _BITS | page
        at = bisect_right(self._starts, packed) - 1
        piece = self._pieces[at]
        del piece[bisect_left(piece, packed)]
        if piece:
            self._starts[at] = piece[0]
        else:
            del self._pieces[at], self._starts[at]


Place = tuple[int, int]
"""A page's line, and its number there: the lower, the sooner it goes."""


class OrderedQueues:
    """A policy made of two rules: where a page stands, and what standing there is worth at a moment."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    NUMBER: ClassVar[int]
    PARAMETERS: ClassVar[Mapping[str, int]] = {}
    LOWEST: ClassVar[Mapping[str, int]] = {}  # of the parameters that may not be 0

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        self._parameters = {**self.PARAMETERS, **parameters}
        self._classes = classes(parameters)
        self._lines: dict[int, ChunkedList] = {}
        self._places: dict[int, Place] = {}

    # ---- the rules of a policy

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """The place of a page in its queue until its next event."""
        raise NotImplementedError

    def score(self, line: int, number: int, now: PolicyMoment) -> int:
        """The score of a place; it never falls along a line."""
        return number

    def worth(self, page: int, score: int, now: PolicyMoment) -> int:
        """The worth of a page: its place's score, or more."""
        return score

    # ---- what happens

    def enter(self, resident: Resident, now: PolicyMoment) -> None:
        """A page comes into the prompt."""
        self.touch(resident, now)

    def touch(self, resident: Resident, now: PolicyMoment) -> None:
        """A page in the prompt is used, or one of its numbers changed."""
        self._move(resident.page, self.place(resident, now))

    def leave(self, resident: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        """A page leaves the prompt."""
        self._move(resident.page, None)

    def _move(self, page: int, place: Place | None) -> None:
        before = self._places.get(page)
        if before == place:
            return
        if before is not None:
            line, number = before
            pages = self._lines[line]
            pages.remove(number, page)
            if not pages:
                del self._lines[line]
        if place is None:
            del self._places[page]
            return
        self._places[page] = place
        line, number = place
        at_line = self._lines.get(line)
        if at_line is None:
            at_line = self._lines[line] = ChunkedList()
        at_line.add(number, page)

    def victims(self, now: PolicyMoment) -> Iterator[ScoredPage]:
        """Every resident, the first to go first; good until something happens to one."""
        rests = {line: iter(pages) for line, pages in self._lines.items()}
        heads = [self._head(line, next(rest), now) for line, rest in rests.items()]
        heapify(heads)
        while heads:
            score, page, line = heads[0]
            following = None if line is None else next(rests[line], None)
            if line is None or following is None:
                heappop(heads)
            else:
                heapreplace(heads, self._head(line, following, now))
            worth = score if line is None else self.worth(page, score, now)
            if worth > score:
                heappush(heads, (worth, page, None))  # comes up again among those worth as much
            else:
                yield ScoredPage(score, page)

    def _head(self, line: int, first: tuple[int, int], now: PolicyMoment) -> tuple[int, int, int | None]:
        number, page = first
        return self.score(line, number, now), page, line
