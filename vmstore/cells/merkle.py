"""The Merkle tree over a context's pages, kept incrementally.

The tree of RFC 9162 section 2.1: leaves hashed with a 0x00 prefix, nodes with 0x01, an odd node
carried up unchanged. Changing leaf i costs the path above it; appending costs O(log n); removing
or inserting in the middle costs what stands after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from hashlib import sha256

EMPTY = sha256(b"").digest()
_LEAF = struct.Struct(">QIB")


def leaf(uid: bytes, page: int, version: int, level: int, commitment: bytes) -> bytes:
    """The leaf hash of one page as shown: who made it, which version, how much of it, its bytes."""
    return sha256(b"\0" + uid + _LEAF.pack(page, version, level) + commitment).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The hash of two nodes."""
    return sha256(b"\1" + left + right).digest()


class Tree:
    """A list of leaf hashes and, above it, the levels of the tree."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self._levels: list[list[bytes]] = [[]]
        self.replace(0, leaves)

    def __len__(self) -> int:
        return len(self._levels[0])

    def copy(self) -> Tree:
        """A tree that can be changed without changing this one."""
        other = Tree()
        other._levels = [level.copy() for level in self._levels]
        return other

    def replace(self, start: int, leaves: Iterable[bytes]) -> None:
        """Puts `leaves` in the place of everything from `start` on."""
        self.graft(start, self.tails(start, leaves))

    def tails(self, start: int, leaves: Iterable[bytes]) -> list[list[bytes]]:
        """The hashes that each level, lowest first, would have from `start` on with `leaves` there; changes nothing."""
        assert 0 <= start <= len(self), "a tree grows at its end"
        tail = [*leaves]
        tails, size, depth = [tail], start + len(tail), 0
        while size > 1:
            row = [self._levels[depth][start - 1], *tail] if start % 2 else tail
            tail = [node(row[i], row[i + 1]) for i in range(0, len(row) - 1, 2)]
            if size % 2:
                tail.append(row[-1])
            tails.append(tail)
            start, size, depth = start // 2, (size + 1) // 2, depth + 1
        return tails

    def graft(self, start: int, tails: Sequence[list[bytes]]) -> None:
        """Takes in what `tails` answered for the same `start`."""
        for depth, tail in enumerate(tails):
            if depth == len(self._levels):
                self._levels.append([])
            self._levels[depth][start >> depth :] = tail
        del self._levels[len(tails) :]

    def crown(self, tails: Sequence[list[bytes]]) -> bytes:
        """The root of the tree that `graft` would make."""
        return tails[-1][0] if tails[-1] else self._levels[len(tails) - 1][0]

    @property
    def root(self) -> bytes:
        """The root over all leaves, 32 bytes; of nothing, SHA-256 of nothing."""
        return self._levels[-1][0] if self._levels[0] else EMPTY

    def way(self, index: int) -> list[bytes]:
        """The hashes beside the way from a leaf to the root, from below: the proof that it is in the tree."""
        assert 0 <= index < len(self), "a leaf of this tree"
        beside = ((level, index >> depth ^ 1) for depth, level in enumerate(self._levels[:-1]))
        return [level[place] for level, place in beside if place < len(level)]

    def growth(self, size: int) -> list[bytes]:
        """The proof that a tree over the first `size` leaves grew into this one: what `grew` asks for."""
        assert 0 < size <= len(self), "a tree grows from one leaf on"
        start, stop, found = 0, len(self), []
        while size < stop:
            split = start + (1 << (stop - start - 1).bit_length() - 1)
            if size <= split:
                found.append(self._over(split, stop))
                stop = split
            else:
                found.append(self._over(start, split))
                start = split
        return ([self._over(start, stop)] if start else []) + found[::-1]

    def _over(self, start: int, stop: int) -> bytes:
        """The root over some leaves that have a node of their own."""
        depth = (stop - start - 1).bit_length()
        return self._levels[depth][start >> depth]


def grew(size: int, root: bytes, later_size: int, later_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether a proof shows that the first `size` leaves of a later tree are the leaves of an earlier one."""
    if size == later_size:
        return root == later_root and not proof
    if not 0 < size < later_size:
        return False
    hashes = [*proof] if size & (size - 1) else [root, *proof]
    place, last = size - 1, later_size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    if not hashes:
        return False
    before = after = hashes[0]
    for beside in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            before, after = node(beside, before), node(beside, after)
            while not place & 1:  # it is not 0: it is odd, or as large as `last`
                place, last = place >> 1, last >> 1
        else:
            after = node(after, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and (before, after) == (root, later_root)


class Growing:
    """The root over a list that only grows, which forgets the leaves: one hash for each power of two in its size."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Takes the next leaf hash in."""
        size = self.size
        while size & 1:
            leaf, size = node(self._peaks.pop(), leaf), size >> 1
        self._peaks.append(leaf)
        self.size += 1

    @property
    def root(self) -> bytes:
        """The root over all leaves so far."""
        if not self._peaks:
            return EMPTY
        found = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            found = node(peak, found)
        return found
