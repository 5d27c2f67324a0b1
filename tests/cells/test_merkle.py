"""The tree over a context is the tree of RFC 9162, whatever way it was grown."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.cells import merkle
from vmstore.cells.merkle import EMPTY, Growing, Tree, grew, leaf, node
from vmstore.cells.verify_proof import climb

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

# Of the same test data: the hashes beside the way of leaf n (from 0) in a tree of so many, and those of growth.
WAYS = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
GROWTHS = {
    (1, 1): [],
    (1, 8): WAYS[0, 8],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


def entries(count: int) -> list[bytes]:
    """The leaf hashes of the first published entries."""
    return [hashlib.sha256(b"\0" + bytes.fromhex(entry)).digest() for entry in ENTRIES[:count]]


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
    leaves = entries(count)
    grown = Tree()
    for item in leaves:
        grown.replace(len(grown), [item])
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


# ---- proofs


@pytest.mark.parametrize(("index", "size"), WAYS)
def test_the_published_ways_are_met(index: int, size: int) -> None:
    """The hashes beside a published leaf's way are the published ones, and lead to the published root."""
    way = [beside.hex() for beside in Tree(entries(size)).way(index)]
    assert way == WAYS[index, size]
    assert climb(bytes.fromhex(ENTRIES[index]), size, index, way).hex() == ROOTS[size]


@pytest.mark.parametrize(("before", "after"), GROWTHS)
def test_the_published_growths_are_met(before: int, after: int) -> None:
    """The proof that one published tree grew into another is the published one, and holds."""
    proof = Tree(entries(after)).growth(before)
    assert [item.hex() for item in proof] == GROWTHS[before, after]
    assert grew(before, bytes.fromhex(ROOTS[before]), after, bytes.fromhex(ROOTS[after]), proof)


def leaf_contents(count: int) -> list[bytes]:
    """What leaves are made of."""
    return [struct.pack(">I", number) for number in range(count)]


def hashed(content: list[bytes]) -> list[bytes]:
    """The leaves of what they are made of."""
    return [hashlib.sha256(b"\0" + item).digest() for item in content]


@pytest.mark.parametrize("size", range(1, 34))
def test_every_way_leads_to_the_root_and_to_no_other_place(size: int) -> None:
    """From every leaf its way leads to the root, and from any other place, in any near size, it does not."""
    content = leaf_contents(size)
    tree = Tree(hashed(content))
    for index, item in enumerate(content):
        way = [beside.hex() for beside in tree.way(index)]
        assert climb(item, size, index, way) == tree.root
        others = [(other, size) for other in range(size) if other != index] + [(index, 4 * size + 1)]
        for place, count in others:
            with pytest.raises(ValueError):
                assert climb(item, count, place, way) == tree.root or _refuse()


def _refuse() -> bool:
    raise ValueError("another root")


@pytest.mark.parametrize("size", range(1, 34))
def test_every_growth_holds_and_no_other(size: int) -> None:
    """From every earlier size the proof of growth holds; with a hash flipped, cut, added or of another size it does
    not."""
    leaves = hashed(leaf_contents(size))
    tree = Tree(leaves)
    for before in range(1, size + 1):
        root, proof = reference(leaves[:before]), tree.growth(before)
        assert grew(before, root, size, tree.root, proof)
        assert not grew(before, b"x" * 32, size, tree.root, proof)
        assert not grew(before, root, size, b"x" * 32, proof)
        assert not grew(before, root, size, tree.root, [*proof, b"x" * 32])
        for nth in range(len(proof)):
            assert not grew(before, root, size, tree.root, [*proof[:nth], b"x" * 32, *proof[nth + 1 :]])
            assert not grew(before, root, size, tree.root, [*proof[:nth], *proof[nth + 1 :]])
        for other in set(range(1, size + 1)) - {before}:
            assert not grew(other, root, size, tree.root, proof)
    assert not grew(0, EMPTY, size, tree.root, [])
    assert not grew(size + 1, tree.root, size, tree.root, [])


@given(leaves=LEAVES)
def test_a_growing_root_is_the_trees(leaves: list[bytes]) -> None:
    """The root that forgets its leaves is at every size that of the tree over them."""
    growing = Growing()
    assert (growing.root, growing.size) == (EMPTY, 0)
    for size, item in enumerate(leaves, 1):
        growing.add(item)
        assert (growing.root, growing.size) == (reference(leaves[:size]), size)


@pytest.mark.parametrize("size", [1, 2, 500, 1023, 1024])
def test_a_change_costs_the_way_above_it(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf more, or another last leaf, is a hash for each level at most: eleven in a tree of a thousand."""
    tree, made = Tree(b"%032d" % number for number in range(size)), []
    monkeypatch.setattr(merkle, "node", lambda left, right: made.append(1) or node(left, right))
    tree.replace(size, [b"a" * 32])
    tree.replace(size, [b"b" * 32])
    assert len(made) <= 2 * 11
    monkeypatch.undo()
    assert tree.root == reference([*(b"%032d" % number for number in range(size)), b"b" * 32])
