"""The newest mutations of a session, kept as they are until the views have them.

Positions are dense, so the mutations after a position are a list, and nothing is indexed: what
they made of pages and messages is read off them when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import msgspec

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.core.mutation import AnyMutation, CellRef, Compress, Create, Message, Update

OPAQUE = bytes(COMMITMENT_BYTES)  # stands in a leaf for content the source never had


_WITH_CONTENT = (Create, Update, Compress)


class TailContent(msgspec.Struct, frozen=True, gc=False):
    """One content of a page: which version and level, how long, sealed as what."""

    page: int
    version: int
    level: int
    tokens: int
    commitment: bytes


class Commitments(Protocol):
    """The commitments of a commit's cells."""

    def __getitem__(self, index: int, /) -> bytes:
        """The commitment of a cell."""
        ...


class UnprojectedTail:
    """The mutations of a session after the position `start`, and the cells of their commits."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.mutations: list[AnyMutation] = []
        self.versions: dict[int, int] = {}  # of pages that were updated
        self.envelopes: dict[int, tuple[int, CellRef]] = {}  # the pack that gave a message a skeleton, and its cell
        self.sealing: Commitments = ()  # of the commit under way
        self._commits: list[tuple[int, int, bytes]] = []  # last position, first, commitments
        self.named: dict[CellRef, bytes] = {}  # earlier cells that were named again, and what they are sealed as

    def extend(self, later: UnprojectedTail) -> None:
        """Takes in what came after it."""
        assert later.start == self.start + len(self.mutations), "a mutation is found by its place after the start"
        self.mutations += later.mutations
        self.versions.update(later.versions)
        self.envelopes.update(later.envelopes)
        self._commits += later._commits
        self.named.update(later.named)

    def end(self, first: int, commitments: bytes) -> None:
        """Remembers a commit that ends here and the cells it brought."""
        self._commits.append((self.start + len(self.mutations), first, commitments))

    def made(self, position: int) -> AnyMutation | None:
        """The mutation at a position; None of one that is not here."""
        at = position - self.start - 1
        return self.mutations[at] if 0 <= at < len(self.mutations) else None

    def newest(self, count: int) -> UnprojectedTail:
        """The same with the last mutations alone: as many, and less than twice."""
        over = len(self.mutations) - count
        if over <= count:  # half of them go at a time, so that it costs a mutation the same however often
            return self
        kept = UnprojectedTail(self.start + over)
        kept.mutations = self.mutations[over:]
        assert kept.start + len(kept.mutations) == self.start + len(self.mutations), "both end at the same position"
        kept._commits = self._commits[bisect_left(self._commits, (kept.start + 1,)) :]
        kept.versions = {m.page: m.version for m in kept.mutations if type(m) is Update}
        kept.envelopes = {message: envelope for message, envelope in self.envelopes.items() if envelope[0] > kept.start}
        for m in kept.mutations:
            if type(m) in _WITH_CONTENT and type(m.content) is tuple:  # type: ignore[union-attr]
                kept.named[m.content] = self.named[m.content]  # type: ignore[union-attr]
        return kept

    def version(self, page: int) -> int | None:
        """The last version of a page, as far as the tail records it."""
        found = self.versions.get(page)
        return 1 if found is None and type(self.made(page)) is Create else found

    def message(self, message: int) -> bool:
        """Whether there is such a message."""
        return type(self.made(message)) is Message

    def skeleton(self, message: int) -> CellRef | None:
        """The cell of a message's skeleton: by its index in the commit under way, or by where it lies."""
        made = self.made(message)
        position, ref = self.envelopes.get(message) or (message, made.envelope if type(made) is Message else None)
        return self._lies(position, ref)

    def lies(self, position: int) -> CellRef | None:
        """The cell of the content made at a position: by its index in the commit under way, or by where it lies."""
        made = self.made(position)
        return self._lies(position, made.content) if isinstance(made, _WITH_CONTENT) else None

    def _lies(self, position: int, ref: CellRef | None) -> CellRef | None:
        if type(ref) is int and (commit := self._commit(position)) is not None:
            return commit[1], ref
        return ref

    def content(self, position: int) -> TailContent | None:
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
        return TailContent(page, version, level, made.tokens, self._commitment(position, made.content))

    def _commitment(self, position: int, ref: CellRef | None) -> bytes:
        """The commitment of the cell that a mutation names."""
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
