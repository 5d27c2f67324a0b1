"""The Merkle tree over a context's pages, kept incrementally.

The tree of RFC 9162 section 2.1: leaves hashed with a 0x00 prefix, nodes with 0x01, an odd node
carried up unchanged. Changing leaf i costs the path above it; appending costs O(log n); removing
or inserting in the middle costs what stands after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
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
        assert 0 <= start <= len(self), "a tree grows at its end"
        level = self._levels[0]
        level[start:] = leaves
        depth = 0
        while len(level) > 1:
            depth += 1
            if depth == len(self._levels):
                self._levels.append([])
            start //= 2
            above = self._levels[depth]
            del above[start:]
            pairs = len(level) // 2
            above.extend(node(level[2 * i], level[2 * i + 1]) for i in range(start, pairs))
            if len(level) % 2:
                above.append(level[-1])
            level = above
        del self._levels[depth + 1 :]

    @property
    def root(self) -> bytes:
        """The root over all leaves, 32 bytes; of nothing, SHA-256 of nothing."""
        return self._levels[-1][0] if self._levels[0] else EMPTY
