"""What was just written to a session and may not be in the views yet: its last mutations, as they are.

Positions are dense, so the mutations after a position are a list, and nothing is indexed: what
they made of pages and messages is read off them when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import msgspec

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.core.mutation import AnyMutation, CellRef, Compress, Create, Update

OPAQUE = bytes(COMMITMENT_BYTES)  # stands in a leaf for content the source never had


class Content(msgspec.Struct, frozen=True, gc=False):
    """One content of a page: which version and level, how long, sealed as what."""

    page: int
    version: int
    level: int
    tokens: int
    commitment: bytes


class Commitments(Protocol):
    """What the cells of a commit are sealed as."""

    def __getitem__(self, index: int, /) -> bytes:
        """The commitment of a cell."""
        ...


class Recent:
    """The mutations of a session after the position `start`, and the cells of their commits."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.mutations: list[AnyMutation] = []
        self.versions: dict[int, int] = {}  # of pages that were updated
        self.sealing: Commitments = ()  # of the commit under way
        self._commits: list[tuple[int, int, bytes]] = []  # last position, first, commitments
        self.named: dict[CellRef, bytes] = {}  # earlier cells that were named again, and what they are sealed as

    def extend(self, later: Recent) -> None:
        """Takes in what came after it."""
        self.mutations += later.mutations
        self.versions.update(later.versions)
        self._commits += later._commits
        self.named.update(later.named)

    def end(self, first: int, commitments: bytes) -> None:
        """Remembers a commit that ends here and the cells it brought."""
        self._commits.append((self.start + len(self.mutations), first, commitments))

    def made(self, position: int) -> AnyMutation | None:
        """The mutation at a position after the start; None beyond the last."""
        at = position - self.start - 1
        return self.mutations[at] if at < len(self.mutations) else None

    def content(self, position: int) -> Content | None:
        """The content made at a position after the start."""
        made = self.made(position)
        match made:
            case Create():
                page, version, level = position, 1, 0
            case Update():
                page, version, level = made.page, made.version, 0
            case Compress():
                page, version, level = made.page, made.version, made.level
            case _:
                return None
        return Content(page, version, level, made.tokens, self._commitment(position, made.content))

    def _commitment(self, position: int, ref: CellRef | None) -> bytes:
        """What the cell was sealed as that a mutation names."""
        if ref is None:
            return OPAQUE
        if not isinstance(ref, int):
            return self.named[ref]
        found = self._commit(position)
        if found is None:
            return self.sealing[ref]
        return found[2][ref * COMMITMENT_BYTES : (ref + 1) * COMMITMENT_BYTES]

    def _commit(self, position: int) -> tuple[int, int, bytes] | None:
        at = bisect_left(self._commits, (position,))
        return self._commits[at] if at < len(self._commits) else None

    def cells(self, position: int) -> int | None:
        """How many cells the commit brought that holds a position after the start; None where it did not end."""
        found = self._commit(position)
        return len(found[2]) // COMMITMENT_BYTES if found is not None else None
