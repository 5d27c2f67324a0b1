"""A session's head: the state its next mutation is checked against, folded as it is written.

It holds the working set in order with its Merkle tree, and looks everything else up in what was
just written, then in the views. `Head == what the views say` is a law the tests hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.cells.merkle import EMPTY, Tree, leaf
from vmstore.core.mutation import AnyMutation, Create, Message, Open, Pack, Redact, Residence, Turn, Update
from vmstore.engine.recent import Content, Recent


class Lookups(Protocol):
    """What a head asks of the views for things written before it was loaded."""

    def content(self, position: int) -> Content | None:
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


class Nothing:
    """The lookups of a session that has just begun."""

    def __init__(self, uid: bytes) -> None:
        self._uid = uid

    def content(self, position: int) -> Content | None:
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


class Before:
    """What a copy of a head looks up in the head it was made from."""

    def __init__(self, head: Head) -> None:
        self.content = head.content
        self.version = head.version
        self.message = head.has_message
        self.cells = head.cells
        self._head = head

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page."""
        return self._head.lookups.uid(page)


class Totals(NamedTuple):
    """What a pack states of the whole context."""

    leaves: int
    tokens: int
    root: bytes


class Leaf(NamedTuple):
    """A page as it is shown: its hash in the tree, and how many tokens it takes."""

    hash: bytes
    tokens: int


class Foreseen(NamedTuple):
    """A change of a context, and the head that has it."""

    order: list[Residence]  # the context it changes: this very list
    entered: tuple[Residence, ...]
    left: tuple[int, ...]
    after: Head


class Head:
    """Where a session stands. Copied before a batch, kept when the batch is durable."""

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
        self.redaction = 0  # what it does with secrets that are told to it
        self.order: list[Residence] = []
        self.tree = Tree()
        self.tokens = 0
        self.recent = Recent()
        self._shared = False  # whether another head holds the same working set
        self._where: dict[int, Residence] = {}
        self._leaves: dict[int, Leaf] = {}
        self._foreseen: Foreseen | None = None

    def copy(self) -> Head:
        """A head that can be changed without changing this one: what is new in it, over what this one knows."""
        other = self.sketch()
        other.lookups = Before(self)
        other.recent = Recent(self.position)
        return other

    def take(self, other: Head) -> None:
        """Becomes what a copy of it has become."""
        self.recent.extend(other.recent)
        lookups, recent = self.lookups, self.recent
        self.__dict__.update(other.__dict__)
        self.lookups, self.recent = lookups, recent

    def stand(self, position: int) -> None:
        """Begins at a position of a past that is looked up."""
        self.position = position
        self.recent = Recent(position)

    def sketch(self) -> Head:
        """A head whose working set can be changed without changing this one; nothing else may be."""
        other = Head.__new__(Head)
        self._shared = True
        other.__dict__.update(self.__dict__)
        other._foreseen = None
        return other

    def _own(self) -> None:
        """Makes the working set this head's alone, before it changes."""
        if self._shared:
            self.order, self._where, self._leaves = self.order.copy(), self._where.copy(), self._leaves.copy()
            self.tree = self.tree.copy()
            self._shared = False

    def settle(self, lookups: Lookups) -> None:
        """Forgets what the views now hold."""
        self.lookups = lookups
        self.recent = Recent(self.position)

    def content(self, position: int) -> Content | None:
        """The content made at a position, or None."""
        return (self.recent if position > self.recent.start else self.lookups).content(position)

    def version(self, page: int) -> int | None:
        """The last version of a page, or None."""
        recent = self.recent
        found = recent.versions.get(page)
        if found is not None:
            return found
        if page > recent.start:
            at = page - recent.start - 1
            return 1 if at < len(recent.mutations) and type(recent.mutations[at]) is Create else None
        return self.lookups.version(page)

    def has_message(self, message: int) -> bool:
        """Whether the session knows a message."""
        recent = self.recent
        at = message - recent.start - 1
        if at < 0:
            return self.lookups.message(message)
        return at < len(recent.mutations) and type(recent.mutations[at]) is Message

    def cells(self, position: int) -> int:
        """How many cells the commit that holds a position brought."""
        found = self.recent.cells(position) if position > self.recent.start else None
        return self.lookups.cells(position) if found is None else found

    def residence(self, page: int) -> Residence | None:
        """A page's place in L0, or None."""
        return self._where.get(page)

    def apply(self, mutation: AnyMutation) -> None:
        """Folds the next mutation, which the rules let through."""
        self.position += 1
        self.recent.mutations.append(mutation)
        fold = _FOLDS.get(type(mutation))
        if fold is not None:
            fold(self, mutation)

    def _on_open(self, mutation: Open) -> None:
        self.opened, self.charter = True, mutation.hidden == Open.CHARTER

    def _on_turn(self, mutation: Turn) -> None:
        self.turn = mutation.number

    def _on_redact(self, mutation: Redact) -> None:
        if mutation.policy is not None:
            self.redaction = mutation.policy

    def _on_update(self, mutation: Update) -> None:
        self.recent.versions[mutation.page] = mutation.version

    def _on_pack(self, mutation: Pack) -> None:
        self.call = mutation.call
        after = self._foresee(mutation.entered, mutation.left)
        self.order, self.tree, self.tokens = after.order, after.tree, after.tokens
        self._where, self._leaves, self._shared = after._where, after._leaves, after._shared
        self._foreseen = None

    def foresee(self, entered: Iterable[Residence], left: Iterable[int]) -> Totals:
        """What the context is after a change of it; worked out once, and taken when that pack is folded."""
        return self._foresee(tuple(entered), tuple(left)).totals

    def after(self, entered: Iterable[Residence], left: Iterable[int]) -> Sequence[Residence]:
        """The working set as a change leaves it, in order."""
        return self._foresee(tuple(entered), tuple(left)).order

    def _foresee(self, entered: tuple[Residence, ...], left: tuple[int, ...]) -> Head:
        known = self._foreseen
        if known is None or known.order is not self.order or (known.entered, known.left) != (entered, left):
            after = self.sketch()
            after.enter(entered, left)
            self._foreseen = known = Foreseen(self.order, entered, left, after)
        return known.after

    def enter(self, entered: Sequence[Residence], left: Iterable[int]) -> Totals:
        """Changes the working set; the tree is redone from the first place that changed."""
        gone = [self._where[page] for page in left]
        gone += [self._where[new[0]] for new in entered if new[0] in self._where]
        if not gone and not entered:
            return self.totals
        self._own()
        start = min(bisect_left(self.order, place[3], key=_rank) for place in (*gone, *entered))
        for old in gone:
            del self._where[old[0]]
            self.tokens -= self._leaves.pop(old[0]).tokens
        for new in entered:
            self._where[new[0]] = new
            made = self._leaves[new[0]] = self._leaf(new)
            self.tokens += made.tokens
        kept = {new[0] for new in entered}
        rest = [r for r in self.order[start:] if r[0] in self._where and r[0] not in kept]
        self.order[start:] = sorted([*rest, *entered], key=_rank)
        self.tree.replace(start, [self._leaves[r[0]].hash for r in self.order[start:]])
        return self.totals

    @property
    def totals(self) -> Totals:
        """Leaves, tokens and root of the working set."""
        return Totals(len(self.order), self.tokens, self.tree.root if self.order else EMPTY)

    def restore(self, residents: Iterable[Residence]) -> None:
        """Takes the working set as the views hold it."""
        self.enter(tuple(residents), ())

    def _leaf(self, residence: Residence) -> Leaf:
        found = self.content(residence[1])
        assert found is not None, "a resident page has content"
        uid = self.lookups.uid(residence[0])
        return Leaf(leaf(uid, residence[0], found.version, found.level, found.commitment), found.tokens)


def _rank(residence: Residence) -> int:
    return residence[3]


_FOLDS: dict[type, Callable[[Head, Any], None]] = {
    Open: Head._on_open,
    Turn: Head._on_turn,
    Redact: Head._on_redact,
    Update: Head._on_update,
    Pack: Head._on_pack,
}
