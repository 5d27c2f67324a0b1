"""The tree over a context is the tree of RFC 9162, whatever way it was grown."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.cells.merkle import EMPTY, Tree, leaf, node

LEAVES = st.lists(st.binary(min_size=32, max_size=32), max_size=40)
CHANGES = st.lists(st.tuples(st.floats(0, 1), LEAVES), max_size=8)

# The test data of the Certificate Transparency trees: eight entries and the root over the first n.
ENTRIES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def reference(leaves: list[bytes]) -> bytes:
    """The root as RFC 9162 section 2.1.1 defines it: split at the largest power of two below n."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + reference(leaves[:split]) + reference(leaves[split:])).digest()


@pytest.mark.parametrize("count", range(9))
def test_the_published_roots_are_met(count: int) -> None:
    """The tree over the first n published entries has the published root, built at once or by appending."""
    leaves = [hashlib.sha256(b"\0" + bytes.fromhex(entry)).digest() for entry in ENTRIES[:count]]
    grown = Tree()
    for one in leaves:
        grown.replace(len(grown), [one])
    assert Tree(leaves).root.hex() == grown.root.hex() == reference(leaves).hex() == ROOTS[count]


def test_a_node_is_marked_as_one() -> None:
    """A node's hash begins with a 0x01 byte, so no leaf can pass for it."""
    assert node(b"l" * 32, b"r" * 32) == hashlib.sha256(b"\1" + b"l" * 32 + b"r" * 32).digest()


def test_a_leaf_covers_everything_shown() -> None:
    """A leaf is the hash of 0x00, uid, page, version, level and commitment, and changes with each."""
    uid, seal = b"u" * 16, b"c" * 32
    packed = struct.pack(">QIB", 7, 2, 1)
    assert leaf(uid, 7, 2, 1, seal) == hashlib.sha256(b"\0" + uid + packed + seal).digest()
    others = [(b"v" * 16, 7, 2, 1, seal), (uid, 8, 2, 1, seal), (uid, 7, 3, 1, seal), (uid, 7, 2, 0, seal)]
    others.append((uid, 7, 2, 1, b"d" * 32))
    assert len({leaf(*other) for other in others} | {leaf(uid, 7, 2, 1, seal)}) == 6


@given(leaves=LEAVES)
def test_a_tree_equals_the_recursive_definition(leaves: list[bytes]) -> None:
    """A tree built at once has the root of the definition and counts its leaves."""
    tree = Tree(leaves)
    assert (tree.root, len(tree)) == (reference(leaves), len(leaves))


@given(leaves=LEAVES, changes=CHANGES)
def test_changes_keep_the_root_right(leaves: list[bytes], changes: list[tuple[float, list[bytes]]]) -> None:
    """After any appending, replacing and cutting of the end the root is that of the leaves left."""
    tree = Tree(leaves)
    for where, added in changes:
        start = round(where * len(leaves))
        leaves = leaves[:start] + added
        tree.replace(start, added)
        assert (tree.root, len(tree)) == (reference(leaves), len(leaves))


@given(leaves=LEAVES, added=LEAVES)
def test_a_copy_is_apart(leaves: list[bytes], added: list[bytes]) -> None:
    """Changing a copy leaves the tree, and changing the tree leaves the copy."""
    tree = Tree(leaves)
    copy = tree.copy()
    copy.replace(len(leaves) // 2, added)
    assert tree.root == reference(leaves)
    tree.replace(0, [])
    assert copy.root == reference(leaves[: len(leaves) // 2] + added)


@pytest.mark.parametrize("start", [-1, 3])
def test_a_tree_grows_at_its_end(start: int) -> None:
    """A place beyond the leaves is refused, not filled with nothing."""
    with pytest.raises(AssertionError, match="grows at its end"):
        Tree([b"a" * 32, b"b" * 32]).replace(start, [])


def test_nothing_has_a_root() -> None:
    """An empty tree has the hash of nothing, also after it was emptied."""
    tree = Tree([b"a" * 32] * 5)
    tree.replace(0, [])
    assert tree.root == EMPTY == hashlib.sha256(b"").digest()
