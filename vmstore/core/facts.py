"""Facts as the log keeps them: what a sentence states, in words that can be compared, since when and how sure."""

from __future__ import annotations

from typing import ClassVar

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import LinkKind, Standing, WordEnum


class FactType(WordEnum):
    """Types of facts."""

    PREFERENCE = 0
    BIOGRAPHICAL = 1
    DECISION = 2
    PLAN = 3
    OPINION = 4
    ROUTINE = 5
    RELATIONSHIP = 6
    SKILL = 7
    MEDICAL = 8
    FINANCIAL = 9
    GENERAL = 10


class Precision(WordEnum):
    """Precision of the time since which a fact holds."""

    UNKNOWN = 0
    INSTANT = 1
    DAY = 2
    WEEK = 3
    MONTH = 4
    YEAR = 5


FACT_STATUS = frozenset(Standing) - {Standing.SUPERSEDED}
"""How a fact may be stated to stand; that another took its place is said by links and annotations."""
FACT_LINKS = frozenset(
    (LinkKind.SUPERSEDES, LinkKind.CAUSED_BY, LinkKind.PART_OF, LinkKind.CONTRADICTS, LinkKind.SAME_AS,
     LinkKind.RELATED_TO)
)  # fmt: skip
"""How facts hang together."""
CERTAIN = 1_000_000  # confidence and strength are in parts per million


class Fact(Mutation, frozen=True, array_like=True, tag=55):
    """The fact that a claim page states; the last one for a page holds.

    `subject`, `verb`, `what`, `attribute` and `method` are cells of text. Where `one` is 1, a subject has one value
    of the attribute at a time, and the next value ends this one. `valid_from` and `valid_to` are in microseconds
    since 1970, of the world and not of the log. A `strength` over 0 makes it an anchor of who the subject is.
    """

    NUMBER: ClassVar[int] = 55
    page: int
    subject: CellRef
    verb: CellRef
    what: CellRef
    attribute: CellRef | None
    type: int
    status: int
    one: int
    valid_from: int | None
    valid_to: int | None
    precision: int
    confidence: int
    strength: int
    method: CellRef
