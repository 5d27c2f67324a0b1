"""A choice while it is made: what is open, what is taken at which level, what stays out and why, the room left.

Every room that is filled with pages is filled here: a window smaller than L0, and a prompt that is assembled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

NO_ROOM = "no room"


class Choosable(Protocol):
    """An item to choose: a name, its tokens, and shorter forms of itself where there are any."""

    @property
    def name(self) -> str:
        """The unique name."""
        ...

    @property
    def tokens(self) -> int:
        """The tokens of the form shown."""
        ...

    @property
    def level(self) -> int:
        """How much of it is shown; 0 is all."""
        ...

    def lower(self) -> Self | None:
        """The same at the next level down that takes fewer tokens; None where there is none."""
        ...


class OmittedPage(NamedTuple):
    """A page left out: its tokens, why, and the page that stands for it where there is one."""

    name: str
    tokens: int
    why: str
    instead: str = ""


class LoweredPage(NamedTuple):
    """A page shown at a lower level than it came with."""

    name: str
    level_before: int
    level: int


Chosen = TypeVar("Chosen", bound=Choosable)


class RoomChoice(Generic[Chosen]):
    """Candidates by name: `open` ones, those `taken`, those `omitted`, and the `room` that is left in tokens."""

    def __init__(self, candidates: Iterable[Chosen], room: int) -> None:
        self.room = room
        self.open: dict[str, Chosen] = {candidate.name: candidate for candidate in candidates}
        self.taken: dict[str, Chosen] = {}
        self.omitted: dict[str, OmittedPage] = {}

    def fits(self) -> bool:
        """Whether all that is open fits as it is."""
        return sum(candidate.tokens for candidate in self.open.values()) <= self.room

    def take(self, candidates: Iterable[Chosen]) -> None:
        """Takes candidates as they are; they fit."""
        for candidate in candidates:
            del self.open[candidate.name]
            self.taken[candidate.name] = candidate
            self.room -= candidate.tokens

    def take_all(self, candidates: Sequence[Chosen], room: int | None = None) -> bool:
        """Takes all of them, levels down where they must be, the first the first; nothing where that does not help."""
        fitting = fitted(candidates, self.room if room is None else min(room, self.room))
        if fitting is None:
            return False
        self.take(fitting)
        return True

    def take_each(self, candidates: Iterable[Chosen], room: int | None = None) -> int:
        """Takes each at the highest level that fits, and passes over those that fit at none; the tokens it took.

        All together take at most `room`, where it is given.
        """
        allowed = self.room if room is None else min(room, self.room)
        before = self.room
        for candidate in candidates:
            form: Chosen | None = candidate
            while form is not None and form.tokens > allowed - (before - self.room):
                form = form.lower()
            if form is not None:
                self.take([form])
        return before - self.room

    def leave(self, candidate: Chosen, why: str = NO_ROOM, instead: str = "") -> None:
        """Leaves an open candidate out."""
        del self.open[candidate.name]
        self.omitted[candidate.name] = OmittedPage(candidate.name, candidate.tokens, why, instead)

    def give_back(self, candidate: Chosen, why: str) -> None:
        """Leaves out what was taken."""
        del self.taken[candidate.name]
        self.omitted[candidate.name] = OmittedPage(candidate.name, candidate.tokens, why)
        self.room += candidate.tokens


def fitted(candidates: Sequence[Chosen], room: int) -> list[Chosen] | None:
    """The candidates within some tokens, each step a level down for one of them; None where none helps."""
    fitting = list(candidates)
    over = sum(candidate.tokens for candidate in fitting) - room
    progress = True
    while over > 0 and progress:
        progress = False
        for at, candidate in enumerate(fitting):
            lower = candidate.lower() if over > 0 else None
            if lower is not None:
                over -= candidate.tokens - lower.tokens
                fitting[at], progress = lower, True
    return fitting if over <= 0 else None


def smallest(candidate: Chosen) -> Chosen:
    """A candidate at its last level."""
    while (lower := candidate.lower()) is not None:
        candidate = lower
    return candidate


def lowered_of(before: Iterable[Choosable], taken: dict[str, Chosen]) -> tuple[LoweredPage, ...]:
    """Those that were taken at a lower level than they came with."""
    levels = ((one.name, one.level, taken[one.name].level) for one in before if one.name in taken)
    return tuple(LoweredPage(*change) for change in levels if change[2] > change[1])
