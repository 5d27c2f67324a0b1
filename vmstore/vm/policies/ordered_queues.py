"""Pages in lines: those whose scores keep their order while time goes by stand in one line.

So a page is looked at when something happens to it and when it is the first of its line, and not
because time went by: a change costs the logarithm of the residents, a choice a look at the head
of each line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import ClassVar

from vmstore.vm.policies.chunked_list import Line
from vmstore.vm.policies.min_residency import classes
from vmstore.vm.policies.policy import Now, Scored
from vmstore.vm.policies.resident import Resident

Place = tuple[int, int]
"""A page's line, and its number there: the lower, the sooner it goes."""


class Lines:
    """A policy made of two rules: where a page stands, and what standing there is worth at a moment."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    NUMBER: ClassVar[int]
    PARAMETERS: ClassVar[Mapping[str, int]] = {}
    LOWEST: ClassVar[Mapping[str, int]] = {}  # of the parameters that may not be 0

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        self._parameters = {**self.PARAMETERS, **parameters}
        self._classes = classes(parameters)
        self._lines: dict[int, Line] = {}
        self._places: dict[int, Place] = {}

    # ---- the rules of a policy

    def place(self, resident: Resident, now: Now) -> Place:
        """Where a page stands until something happens to it."""
        raise NotImplementedError

    def score(self, line: int, number: int, now: Now) -> int:
        """What standing there is worth; it never falls along a line."""
        return number

    def worth(self, page: int, score: int, now: Now) -> int:
        """What a page is worth: its place's score, or more."""
        return score

    # ---- what happens

    def enter(self, resident: Resident, now: Now) -> None:
        """A page comes into the prompt."""
        self.touch(resident, now)

    def touch(self, resident: Resident, now: Now) -> None:
        """A page in the prompt is used, or one of its numbers changed."""
        self._move(resident.page, self.place(resident, now))

    def leave(self, resident: Resident, now: Now, *, evicted: bool) -> None:
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
            at_line = self._lines[line] = Line()
        at_line.add(number, page)

    def victims(self, now: Now) -> Iterator[Scored]:
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
                yield Scored(score, page)

    def _head(self, line: int, first: tuple[int, int], now: Now) -> tuple[int, int, int | None]:
        number, page = first
        return self.score(line, number, now), page, line
