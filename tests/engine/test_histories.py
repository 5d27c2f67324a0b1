"""Histories: what each commit's leaf says, which sessions are followed, and what is kept of them."""

from __future__ import annotations

import struct
from hashlib import sha256

import msgspec
import pytest

from tests.cells.test_merkle import reference
from vmstore.core.mutation import Mark, Message, Mutation, Open, Pack, Turn, encode
from vmstore.engine.verify.history_tree import HistoryTree, SessionHead, leaf_of, leaf_read, opened_by, tree_of
from vmstore.log.commit import Commit

PACK = Pack(call=3, fidelity=1, leaves=2, tokens=9, root=b"r" * 32, entered=(), left=())


def opening(uid: bytes) -> Open:
    """The first mutation of a session."""
    return Open(uid=uid, name=0)


def commit(ordinal: int, *mutations: Mutation, session: int = 1, first: int = 1) -> Commit:
    """A commit of some mutations, whose hash is its ordinal's."""
    body, digest = encode(mutations), sha256(b"%d" % ordinal).digest()
    return Commit(first, len(mutations), 77, 0, body, b"", digest, session=session, ordinal=ordinal)


def plain(value: Commit) -> bytes:
    """The leaf of a commit that is no call."""
    return sha256(b"\0" + value.hash + struct.pack(">Q", value.last)).digest()


def test_a_leaf_says_where_its_commit_ends() -> None:
    """A leaf covers hash and last position, and of a commit that ends in a pack what the pack says and when."""
    value = commit(5, Message(0, 0, 0), Mark(0), first=8)
    assert leaf_of(value, [Message(0, 0, 0), Mark(0)]) == leaf_read(value) == plain(value)
    call = commit(6, Message(0, 0, 0), PACK, first=8)
    fields = struct.pack(">QqIBI", 9, 77, 3, 1, 2)
    assert leaf_read(call) == sha256(b"\0" + call.hash + fields + b"r" * 32).digest()
    inside = commit(6, PACK, Mark(0), first=8)
    assert leaf_read(inside) == plain(inside), "only what a commit ends with makes it a call"


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_root_of_another_length_makes_no_call(length: int) -> None:
    """A pack whose root is none is told as a commit: its bytes could else pass for other fields."""
    value = commit(5, msgspec.structs.replace(PACK, root=b"r" * length))
    assert leaf_read(value) == plain(value)


@pytest.mark.parametrize(
    "wrong", [{"call": 2**40}, {"call": -1}, {"fidelity": 256}, {"leaves": 2**32}, {"leaves": 2**70}]
)
def test_a_number_no_commit_has_gives_a_leaf_no_commit_has(wrong: dict[str, int]) -> None:
    """A forged pack with a number that fits nowhere has a leaf of its own, and is no error."""
    value = commit(5, Mark(0))
    assert leaf_of(value, [msgspec.structs.replace(PACK, **wrong)]) == sha256(b"\0" + value.hash).digest()
    far = msgspec.structs.replace(value, first=2**64)
    assert leaf_of(far, [Mark(0)]) == sha256(b"\0" + value.hash).digest()


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x91", b"\x90", b"words"])
def test_a_body_that_cannot_be_read_opens_nothing(body: bytes) -> None:
    """Of a commit with no body, half a body or an empty one there is a leaf, and no session is opened by it."""
    value = msgspec.structs.replace(commit(5, Mark(0)), body=body)
    assert (leaf_read(value), opened_by(value)) == (plain(value), b"")


def test_who_opens_a_session_is_told() -> None:
    """A commit opens the session of the `open` it begins with, and no other commit opens one."""
    assert opened_by(commit(1, opening(b"u" * 16), Turn(1))) == b"u" * 16
    assert opened_by(commit(1, Turn(1), opening(b"u" * 16))) == b""


def test_every_session_is_followed_from_its_open() -> None:
    """A head says a session's last position, its commits, its last hash and the root over them; heads go by uid."""
    high, low = b"z" * 16, b"a" * 16
    items = [
        commit(1, opening(high), session=1),
        commit(2, opening(low), Turn(1), session=2),
        commit(3, Message(0, 0, 0), session=1, first=2),
        commit(4, PACK, session=1, first=3),
        commit(5, Mark(0), session=9),  # of a session that nothing opened
    ]
    followed = HistoryTree({high: [2], low: [1, 5], b"n" * 16: [1]})
    assert (followed.ordinal, followed.first, followed.heads()) == (0, None, [])
    for item in items:
        followed.follow(item, [opening(high), opening(low), Message(0, 0, 0), PACK, Mark(0)][item.ordinal - 1 :][:1])
    roots = [
        reference([leaf_of(items[1], [])]),
        reference([leaf_read(items[0]), leaf_read(items[2]), leaf_read(items[3])]),
    ]
    heads = [SessionHead(low, 2, 1, items[1].hash, roots[0]), SessionHead(high, 3, 3, items[3].hash, roots[1])]
    assert (followed.ordinal, followed.first, followed.heads()) == (5, high, heads)
    assert followed.kept[low, 1] == heads[0] and followed.kept[high, 2].position == 2
    assert set(followed.kept) == {(low, 1), (high, 2)}
    assert tree_of(heads).root == reference([head.leaf for head in heads])
    packed = struct.pack(">16sQQ32s32s", *heads[0])
    assert heads[0].leaf == sha256(b"\0" + packed).digest()


def test_a_session_is_opened_once_and_by_a_whole_uid() -> None:
    """A second `open` in a session is a commit of it like others, and one whose uid is cut short opens nothing."""
    followed = HistoryTree()
    short, first, again = opening(b"s" * 15), opening(b"u" * 16), opening(b"v" * 16)
    followed.follow(commit(1, short, session=1), [short])
    assert (followed.first, followed.heads()) == (None, [])
    followed.follow(commit(2, first, session=2), [first])
    followed.follow(commit(3, again, session=2, first=2), [again])
    assert followed.first == b"u" * 16
    assert [(head.uid, head.commits, head.position) for head in followed.heads()] == [(b"u" * 16, 2, 2)]
    followed.follow(commit(4, session=7), [])
    assert (followed.ordinal, len(followed.heads())) == (4, 1)
