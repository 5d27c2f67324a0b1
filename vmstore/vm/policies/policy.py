"""The interface of replacement policies: a policy orders the evictable pages and states their scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Protocol

from vmstore.vm.policies.resident import Resident


class PolicyMoment(NamedTuple):
    """The moment a policy is asked: references of the session so far, each page's writing included; its turn."""

    reference: int
    turn: int


class ScoredPage(NamedTuple):
    """A page and its score, a whole number: the lower, the sooner it goes. Equal scores go by page, older first."""

    score: int
    page: int


class Policy(Protocol):
    """Orders the residents of one session. Its state is folded from what happens to pages, nothing else.

    A new version of a policy is another class under the same name; old versions stay.
    """

    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    NUMBER: ClassVar[int]  # how the log names it: a number of its own for each name and version

    def enter(self, resident: Resident, now: PolicyMoment) -> None:
        """A page comes into the prompt."""
        ...

    def touch(self, resident: Resident, now: PolicyMoment) -> None:
        """A page in the prompt is used, or one of its numbers changed."""
        ...

    def leave(self, resident: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        """A page leaves the prompt; `evicted` by this policy's choice."""
        ...

    def victims(self, now: PolicyMoment) -> Iterator[ScoredPage]:
        """Every resident, the first to go first, until something happens to one. Asking changes nothing.

        Costs only what is taken.
        """
        ...
