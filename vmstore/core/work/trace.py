"""An agent's work in the log: tools that ran and their effects, guards that spoke up, skills that were learned."""

from __future__ import annotations

from typing import ClassVar

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import WordEnum

CALLS_MAX = 16
"""The calls that a guard or a skill names as its evidence: the last of them, as its count says how many there are."""


class GuardType(WordEnum):
    """Types of guards. A guard that counts otherwise gets a number of its own."""

    FAILURE = 0  # a tool failed again for the same reason
    RUNAWAY = 1  # the same call gave the same answer again
    UNGROUNDED = 2  # a call that failed names what nothing before it says
    BUDGET = 3  # what tools gave in a turn is more than the prompt has room for


class ToolRun(Mutation, frozen=True, array_like=True, tag=50):
    """A tool ran: more than its call and result pages say. The last one of a call holds.

    `duration` is in microseconds, `error` a cell of text, `reasoning` the page that says why it was called, `tags` a
    cell of a JSON list. `read`, `created` and `modified` are the pages that the tool worked on.
    """

    NUMBER: ClassVar[int] = 50
    call: int
    outcome: int
    result: int = 0
    duration: int | None = None
    error: CellRef | None = None
    reasoning: int = 0
    read: tuple[int, ...] = ()
    created: tuple[int, ...] = ()
    modified: tuple[int, ...] = ()
    tags: CellRef | None = None


class GuardTrip(Mutation, frozen=True, array_like=True, tag=51):
    """A guard spoke up: what it counted, in which calls, the last of them the one that made it speak.

    `tool` is a cell of text. `warning` is the page that says so in the prompt.
    """

    NUMBER: ClassVar[int] = 51
    type: int
    tool: CellRef
    count: int
    calls: tuple[int, ...]
    warning: int = 0


class Promote(Mutation, frozen=True, array_like=True, tag=52):
    """A sequence of tools became a skill, or was weighed again: the page that describes it, and what was counted.

    `skill` is a cell with its name; it succeeded `count` times of `tries`, among others in `calls`.
    """

    NUMBER: ClassVar[int] = 52
    page: int
    skill: CellRef
    count: int
    tries: int
    calls: tuple[int, ...]
