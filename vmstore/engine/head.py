"""A session's head: the state its next mutation is checked against, folded as it is written.

It holds the working set in order with its Merkle tree, and looks everything else up in what was
just written, then in the views. `Head == what the views say` is a law the tests hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.cells.merkle import EMPTY, Tree, leaf
from vmstore.core.mutation import (
    AnyMutation,
    CellRef,
    Create,
    Message,
    Open,
    Pack,
    Redact,
    Residence,
    Settings,
    Turn,
    Update,
)
from vmstore.core.page import Origin
from vmstore.core.redaction import Redaction
from vmstore.engine.unprojected_tail import TailContent, UnprojectedTail


class NewSession(NamedTuple):
    """The fields a new session begins with; a fork for which no redaction is given has its parent's."""

    name: str
    meta: dict[str, str] = {}  # noqa: RUF012 (never changed)
    origin: Origin = Origin.NEW
    parent: int = 0
    parent_position: int = 0
    source: str | None = None
    key: bytes | None = None
    hidden: int = 0
    spawned_by: int | None = None
    redaction: Redaction | None = None
    lost: tuple[bytes, ...] = ()  # see `Batch.lost`


class Lookups(Protocol):
    """Questions a head asks of the views about mutations older than itself."""

    def content(self, position: int) -> TailContent | None:
        """The content made at a position."""
        ...

    def version(self, page: int) -> int | None:
        """The last version of a page; None when there is no such page."""
        ...

    def message(self, message: int) -> bool:
        """Whether there is such a message."""
        ...

    def cells(self, position: int) -> int:
        """How many cells the commit that holds a position brought."""
        ...

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page."""
        ...

    def made(self, position: int) -> AnyMutation | None:
        """The mutation at a position, where it is at hand."""
        ...

    def skeleton(self, message: int) -> CellRef | None:
        """The cell of a message's skeleton, where it is cached."""
        ...

    def lies(self, position: int) -> CellRef | None:
        """The cell of the content made at a position, where it is cached."""
        ...


class EmptyLookups:
    """The lookups of a session that has just begun."""

    def __init__(self, uid: bytes) -> None:
        self._uid = uid

    def content(self, position: int) -> TailContent | None:
        """None yet."""
        return None

    def version(self, page: int) -> int | None:
        """None yet."""
        return None

    def message(self, message: int) -> bool:
        """None yet."""
        return False

    def cells(self, position: int) -> int:
        """None yet."""
        return 0

    def uid(self, page: int) -> bytes:
        """Its own."""
        return self._uid

    def made(self, position: int) -> AnyMutation | None:
        """None yet."""
        return None

    def skeleton(self, message: int) -> CellRef | None:
        """None yet."""
        return None

    def lies(self, position: int) -> CellRef | None:
        """None yet."""
        return None


class CopiedLookups:
    """Lookups of a copied head, answered by the head it was copied from."""

    def __init__(self, head: GateHead) -> None:
        self.content = head.content
        self.version = head.version
        self.message = head.has_message
        self.cells = head.cells
        self.made = head.made
        self.skeleton = head.skeleton
        self.lies = head.lies
        self._head = head

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page."""
        return self._head.lookups.uid(page)


class ContextTotals(NamedTuple):
    """The totals a pack states of the whole context."""

    leaves: int
    tokens: int
    root: bytes


class ContextLeaf(NamedTuple):
    """A page as it is shown: its hash in the tree, and how many tokens it takes."""

    hash: bytes
    tokens: int


class ContextSeat(NamedTuple):
    """A page's place in the context, and how it is shown there."""

    residence: Residence
    leaf: ContextLeaf


class PlannedContext(NamedTuple):
    """A change of a context worked out: what stands from the first place on that changes."""

    moves: int  # how often the context had changed before
    entered: tuple[Residence, ...]
    left: tuple[int, ...]
    seats: list[ContextSeat]  # of what enters
    start: int
    tail: list[Residence]
    levels: list[list[bytes]]  # of the tree
    totals: ContextTotals


class GateHead:
    """The state of a session at its last commit: copied before a batch, replaced once the batch is durable."""

    def __init__(self, uid: bytes, lookups: Lookups) -> None:
        self.uid = uid
        self.lookups = lookups
        self.session = 0
        self.begins = 0  # the position its own mutations come after: where a fork began
        self.known = 0  # the ordinal as of which it stands so
        self.tip = 0  # the ordinal of its last commit
        self.position = 0
        self.hash = b""
        self.turn = 0
        self.call = 0
        self.opened = False
        self.charter = False  # whether it is the namespace's own session
        self.live = False  # whether a kernel is at work
        self.redaction = 0  # what it does with secrets in what it records
        self.order: list[Residence] = []
        self.tree = Tree()
        self.tokens = 0
        self.recent = UnprojectedTail()
        self._shared = False  # whether another head holds the same working set
        self._seats: dict[int, ContextSeat] = {}
        self._moves = 0
        self._foreseen: PlannedContext | None = None

    def copy(self) -> GateHead:
        """A head that can be changed without changing this one: what is new in it, over what this one knows."""
        assert self.position == self.recent.start + len(self.recent.mutations), (
            "what is at hand ends where the head stands"
        )
        other = self.sketch()
        other.lookups = CopiedLookups(self)
        other.recent = UnprojectedTail(self.position)
        return other

    def take(self, other: GateHead) -> None:
        """Becomes what a copy of it has become."""
        assert other.uid == self.uid and other.position >= self.position, "a copy is of the same session, and went on"
        self.recent.extend(other.recent)
        lookups, recent = self.lookups, self.recent
        self.__dict__.update(other.__dict__)
        self.lookups, self.recent = lookups, recent

    def stand(self, position: int) -> None:
        """Begins at a position of a past that is looked up."""
        assert not self.recent.mutations, "what is at hand would be taken for what follows that position"
        self.position = position
        self.recent = UnprojectedTail(position)

    def stand_as(self, other: GateHead) -> None:
        """Begins with another head's working set, which holds the same pages under the same numbers."""
        other._shared = self._shared = True
        self.order, self.tree, self._seats, self.tokens = other.order, other.tree, other._seats, other.tokens

    def sketch(self) -> GateHead:
        """A head whose working set can be changed without changing this one; nothing else may be."""
        other = GateHead.__new__(GateHead)
        self._shared = True
        other.__dict__.update(self.__dict__)
        other._foreseen = None
        return other

    def _own(self) -> None:
        """Makes the working set this head's alone, before it changes."""
        if self._shared:
            self.order, self._seats, self.tree = self.order.copy(), self._seats.copy(), self.tree.copy()
            self._shared = False

    def settle(self, lookups: Lookups) -> None:
        """Forgets what the views now hold."""
        self.lookups = lookups
        self.recent = UnprojectedTail(self.position)

    def content(self, position: int) -> TailContent | None:
        """The content made at a position, or None."""
        return (self.recent if position > self.recent.start else self.lookups).content(position)

    def version(self, page: int) -> int | None:
        """The last version of a page, or None."""
        recent = self.recent
        if page in recent.versions:
            return recent.versions[page]
        at = page - recent.start - 1
        if at < 0:
            return self.lookups.version(page)
        mutations = recent.mutations
        return 1 if at < len(mutations) and type(mutations[at]) is Create else None

    def has_message(self, message: int) -> bool:
        """Whether the session knows a message."""
        recent = self.recent
        at = message - recent.start - 1
        if at < 0:
            return self.lookups.message(message)
        return at < len(recent.mutations) and type(recent.mutations[at]) is Message

    def made(self, position: int) -> AnyMutation | None:
        """The mutation at a position, where it is at hand."""
        return (self.recent if position > self.recent.start else self.lookups).made(position)

    def skeleton(self, message: int) -> CellRef | None:
        """The cell of a message's skeleton where it is cached, by index in the commit under way."""
        found = self.recent.skeleton(message)
        return self.lookups.skeleton(message) if found is None else found

    def lies(self, position: int) -> CellRef | None:
        """The cell of the content made at a position where it is cached, by index in the commit under way."""
        return (self.recent if position > self.recent.start else self.lookups).lies(position)

    def cells(self, position: int) -> int:
        """How many cells the commit that holds a position brought."""
        found = self.recent.cells(position) if position > self.recent.start else None
        return self.lookups.cells(position) if found is None else found

    def residence(self, page: int) -> Residence | None:
        """A page's place in L0, or None."""
        seat = self._seats.get(page)
        return None if seat is None else seat.residence

    def apply(self, mutation: AnyMutation) -> None:
        """Folds the next mutation, which the rules let through."""
        self.position += 1
        self.recent.mutations.append(mutation)
        fold = FOLDS.get(type(mutation))
        if fold is not None:
            fold(self, mutation)

    def _on_open(self, mutation: Open) -> None:
        self.opened, self.charter = True, mutation.hidden == Open.CHARTER

    def _on_turn(self, mutation: Turn) -> None:
        self.turn = mutation.number

    def _on_settings(self, mutation: Settings) -> None:
        self.live = True

    def _on_redact(self, mutation: Redact) -> None:
        if mutation.policy is not None:
            self.redaction = mutation.policy

    def _on_update(self, mutation: Update) -> None:
        self.recent.versions[mutation.page] = mutation.version

    def _on_pack(self, mutation: Pack) -> None:
        self.call = mutation.call
        for message, ref in mutation.envelopes:
            self.recent.envelopes[message] = self.position, ref
        self.enter(mutation.entered, mutation.left)

    def foresee(self, entered: Iterable[Residence], left: Iterable[int]) -> ContextTotals:
        """The totals of the context after a change; computed once and reused when that pack is folded."""
        return self._foresee(tuple(entered), tuple(left)).totals

    def after(self, entered: Iterable[Residence], left: Iterable[int]) -> Sequence[Residence]:
        """The working set as a change leaves it, in order."""
        change = self._foresee(tuple(entered), tuple(left))
        return self.order[: change.start] + change.tail

    def _foresee(self, entered: tuple[Residence, ...], left: tuple[int, ...]) -> PlannedContext:
        known = self._foreseen
        if known is None or known.moves != self._moves or (known.entered, known.left) != (entered, left):
            self._foreseen = known = self._change(entered, left)
        return known

    def _change(self, entered: tuple[Residence, ...], left: tuple[int, ...]) -> PlannedContext:
        """Works a change out: the tree is redone from the first place that changes."""
        order, old = self.order, self._seats
        gone = [old[page] for page in left]
        gone += [old[new[0]] for new in entered if new[0] in old]
        seats = [ContextSeat(new, self._leaf(new)) for new in entered]
        start = min((bisect_left(order, seat[0][3], key=_rank) for seat in (*gone, *seats)), default=len(order))
        moved = {seat[0][0] for seat in gone}
        tail = [residence for residence in order[start:] if residence[0] not in moved]
        tail = sorted([*tail, *entered], key=_rank)
        new = {seat[0][0]: seat[1].hash for seat in seats}
        hashes = [new[page] if (page := residence[0]) in new else old[page].leaf.hash for residence in tail]
        levels = self.tree.tails(start, hashes)
        size = start + len(tail)
        tokens = self.tokens - sum(seat.leaf.tokens for seat in gone) + sum(seat.leaf.tokens for seat in seats)
        totals = ContextTotals(size, tokens, self.tree.crown(levels) if size else EMPTY)
        return PlannedContext(self._moves, entered, left, seats, start, tail, levels, totals)

    def enter(self, entered: Iterable[Residence], left: Iterable[int]) -> ContextTotals:
        """Changes the working set."""
        change = self._foresee(tuple(entered), tuple(left))
        self._foreseen = None
        if change.entered or change.left:
            self._own()
            for page in change.left:
                del self._seats[page]
            self._seats.update((seat[0][0], seat) for seat in change.seats)
            self.order[change.start :] = change.tail
            self.tree.graft(change.start, change.levels)
            assert len(self.tree) == len(self.order) == change.totals.leaves, (
                "the tree has a leaf for each page in order"
            )
            self.tokens, self._moves = change.totals.tokens, self._moves + 1
        return change.totals

    @property
    def totals(self) -> ContextTotals:
        """Leaves, tokens and root of the working set."""
        return ContextTotals(len(self.order), self.tokens, self.tree.root if self.order else EMPTY)

    def restore(self, residents: Iterable[Residence]) -> None:
        """Takes the working set as the views hold it."""
        self.enter(tuple(residents), ())

    def _leaf(self, residence: Residence) -> ContextLeaf:
        found = self.content(residence[1])
        assert found is not None, "a resident page has content"
        uid = self.lookups.uid(residence[0])
        return ContextLeaf(leaf(uid, residence[0], found.version, found.level, found.commitment), found.tokens)


def _rank(residence: Residence) -> int:
    return residence[3]


FOLDS: dict[type, Callable[[GateHead, Any], None]] = {
    Open: GateHead._on_open,
    Turn: GateHead._on_turn,
    Settings: GateHead._on_settings,
    Redact: GateHead._on_redact,
    Update: GateHead._on_update,
    Pack: GateHead._on_pack,
}
"""What a head makes of a kind; nothing but its place of one that is not listed."""
