"""A session's head: the state its next mutation is checked against, folded as it is written.

It holds the working set in order with its Merkle tree, and looks everything else up in what was
just written, then in the views. `Head == what the views say` is a law the tests hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import msgspec

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.cells.merkle import EMPTY, Tree, leaf
from vmstore.core.mutation import AnyMutation, Compress, Create, Message, Open, Pack, Residence, Turn, Update

OPAQUE = bytes(COMMITMENT_BYTES)  # stands in a leaf for content the source never had


class Content(msgspec.Struct, frozen=True, gc=False):
    """One content of a page: which version and level, how long, sealed as what."""

    page: int
    version: int
    level: int
    tokens: int
    commitment: bytes


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


class Head:
    """Where a session stands. Copied before a batch, kept when the batch is durable."""

    def __init__(self, uid: bytes, lookups: Lookups) -> None:
        self.uid = uid
        self.lookups = lookups
        self.session = 0
        self.known = 0  # the ordinal as of which it stands so
        self.position = 0
        self.hash = b""
        self.turn = 0
        self.call = 0
        self.opened = False
        self.order: list[Residence] = []
        self.tree = Tree()
        self.tokens = 0
        self._shared = False  # whether another head holds the same working set
        self._where: dict[int, Residence] = {}
        self._leaves: dict[int, bytes] = {}
        self._contents: dict[int, Content] = {}
        self._versions: dict[int, int] = {}
        self._messages: set[int] = set()
        self._commits: list[tuple[int, ...]] = []  # last position, first, cells

    def copy(self) -> Head:
        """A head that can be changed without changing this one: what is new in it, over what this one knows."""
        other = self.sketch()
        other.lookups = Before(self)
        other._contents, other._versions, other._messages, other._commits = {}, {}, set(), []
        return other

    def take(self, other: Head) -> None:
        """Becomes what a copy of it has become."""
        self._contents.update(other._contents)
        self._versions.update(other._versions)
        self._messages |= other._messages
        self._commits += other._commits
        held = (self.lookups, self._contents, self._versions, self._messages, self._commits)
        self.__dict__.update(other.__dict__)
        self.lookups, self._contents, self._versions, self._messages, self._commits = held

    def sketch(self) -> Head:
        """A head whose working set can be changed without changing this one; nothing else may be."""
        other = Head.__new__(Head)
        self._shared = True
        other.__dict__.update(self.__dict__)
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
        self._contents.clear()
        self._versions.clear()
        self._messages.clear()
        self._commits.clear()

    @property
    def unsettled(self) -> int:
        """How many things it remembers that the views may not hold yet."""
        return len(self._contents) + len(self._messages) + len(self._commits)

    def content(self, position: int) -> Content | None:
        """The content made at a position, or None."""
        return self._contents.get(position) or self.lookups.content(position)

    def version(self, page: int) -> int | None:
        """The last version of a page, or None."""
        return self._versions.get(page) or self.lookups.version(page)

    def has_message(self, message: int) -> bool:
        """Whether the session knows a message."""
        return message in self._messages or self.lookups.message(message)

    def cells(self, position: int) -> int:
        """How many cells the commit that holds a position brought."""
        at = bisect_left(self._commits, (position,))
        if at < len(self._commits) and position >= self._commits[at][1]:
            return self._commits[at][2]
        return self.lookups.cells(position)

    def end(self, first: int, cells: int) -> None:
        """Remembers a commit that ends here and the cells it brought."""
        self._commits.append((self.position, first, cells))

    def residence(self, page: int) -> Residence | None:
        """A page's place in L0, or None."""
        return self._where.get(page)

    def apply(self, position: int, mutation: AnyMutation) -> None:
        """Folds one mutation that the rules let through."""
        self.position = position
        match mutation:
            case Open():
                self.opened = True
            case Turn():
                self.turn = mutation.number
            case Message():
                self._messages.add(position)
            case Create():
                self._versions[position] = 1
            case Update():
                self._versions[mutation.page] = mutation.version
            case Pack():
                self.call = mutation.call
                self.enter(mutation.entered, mutation.left)

    def hold(self, position: int, mutation: Create | Update | Compress, commitment: bytes | None) -> None:
        """Remembers a content and its commitment, which mutations do not carry."""
        if isinstance(mutation, Create):
            made = Content(position, 1, 0, mutation.tokens, commitment or OPAQUE)
        else:
            level = mutation.level if isinstance(mutation, Compress) else 0
            made = Content(mutation.page, mutation.version, level, mutation.tokens, commitment or OPAQUE)
        self._contents[position] = made

    def enter(self, entered: Iterable[Residence], left: Iterable[int]) -> Totals:
        """Changes the working set; the tree is redone from the first place that changed."""
        self._own()
        start = len(self.order)
        gone = [self._where[page] for page in left]
        gone += [self._where[new[0]] for new in entered if new[0] in self._where]
        for old in gone:
            start = min(start, bisect_left(self.order, old[3], key=_rank))
            self.tokens -= self._tokens(old[1])
            del self._where[old[0]], self._leaves[old[0]]
        for new in entered:
            start = min(start, bisect_left(self.order, new[3], key=_rank))
            self._where[new[0]] = new
            self._leaves[new[0]] = self._leaf(new)
            self.tokens += self._tokens(new[1])
        kept = {new[0] for new in entered}
        rest = [r for r in self.order[start:] if r[0] in self._where and r[0] not in kept]
        self.order[start:] = sorted([*rest, *(new for new in entered)], key=_rank)
        self.tree.replace(start, [self._leaves[r[0]] for r in self.order[start:]])
        return self.totals

    @property
    def totals(self) -> Totals:
        """Leaves, tokens and root of the working set."""
        return Totals(len(self.order), self.tokens, self.tree.root if self.order else EMPTY)

    def restore(self, residents: Iterable[Residence]) -> None:
        """Takes the working set as the views hold it."""
        self.enter(tuple(residents), ())

    def _tokens(self, content: int) -> int:
        found = self.content(content)
        assert found is not None, "a resident page has content"
        return found.tokens

    def _leaf(self, residence: Residence) -> bytes:
        found = self.content(residence[1])
        assert found is not None, "a resident page has content"
        return leaf(self.lookups.uid(residence[0]), residence[0], found.version, found.level, found.commitment)


def _rank(residence: Residence) -> int:
    return residence[3]
