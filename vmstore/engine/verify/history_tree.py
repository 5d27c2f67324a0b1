"""Merkle trees over a log: one leaf a commit in a session's tree, one leaf a session in the namespace's.

A commit's leaf says its hash and where it ends, and of a call also what its pack says: when it was
made, whether it is derived, how many pages it showed and the root over them. So the root over
all sessions covers each page of each context, a few hashes away.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.cells.merkle import Growing, Tree
from vmstore.core.mutation import AnyMutation, Open, Pack, decode
from vmstore.log.commit import Commit

UID_BYTES = 16
_COMMIT = struct.Struct(">Q")  # position
_CALL = struct.Struct(">QqIBI")  # position, at, call, fidelity, leaves
_SESSION = struct.Struct(">16sQQ32s32s")  # uid, position, commits, hash, history

assert _SESSION.size == UID_BYTES + 2 * 8 + 2 * COMMITMENT_BYTES, "the uid and both hashes stand in a leaf whole"
assert _COMMIT.size < _CALL.size, "the leaf of a call can be that of no other commit"


class SessionHead(NamedTuple):
    """The head of a session's history: last position, number of commits, last hash, and the root over all.

    What a fork inherits is its parent's history; its own begins with its `open`, whose hash covers the fork point.
    """

    uid: bytes
    position: int
    commits: int
    hash: bytes
    history: bytes

    @property
    def leaf(self) -> bytes:
        """Its leaf in the tree over all sessions."""
        return sha256(b"\0" + _SESSION.pack(*self)).digest()


def leaf_of(commit: Commit, mutations: Sequence[AnyMutation]) -> bytes:
    """A commit's leaf in the tree over its session's commits; one that ends with a pack is a call.

    A damaged one, with a number that no commit can have, has a leaf that no sound one has.
    """
    last = mutations[-1] if mutations else None
    try:
        if isinstance(last, Pack) and len(last.root) == COMMITMENT_BYTES:
            packed = _CALL.pack(commit.last, commit.at, last.call, last.fidelity, last.leaves) + last.root
        else:
            packed = _COMMIT.pack(commit.last)
    except (struct.error, OverflowError):
        packed = b""
    return sha256(b"\0" + commit.hash + packed).digest()


def leaf_read(commit: Commit) -> bytes:
    """The leaf of a commit as it was read; where its body cannot be, one that no sound commit has."""
    try:
        return leaf_of(commit, decode(commit.body))
    except ValueError:
        return leaf_of(commit, ())


def opened_by(commit: Commit) -> bytes:
    """The uid of the session that a commit opens; nothing where it opens none."""
    try:
        first = decode(commit.body)[0]
    except (ValueError, IndexError):
        return b""
    return first.uid if isinstance(first, Open) else b""


def tree_of(heads: Iterable[SessionHead]) -> Tree:
    """The tree over all sessions, in the order of their uids."""
    return Tree(head.leaf for head in heads)


class HistoryTree:
    """Follows the commits of a log; `watched` says of which sessions, by uid, it shall keep the heads after how many
    commits."""

    def __init__(self, watched: Mapping[bytes, Collection[int]] | None = None) -> None:
        self.ordinal = 0
        self.first: bytes | None = None  # the uid of the session that opened the log
        self.kept: dict[tuple[bytes, int], SessionHead] = {}
        self._watched = watched or {}
        self._growing: dict[int, tuple[bytes, Growing]] = {}
        self._ends: dict[int, tuple[int, bytes]] = {}

    def follow(self, commit: Commit, mutations: Sequence[AnyMutation]) -> None:
        """Takes the next commit of the log in; one of a session that was never opened is left out."""
        first = mutations[0] if mutations else None
        if isinstance(first, Open) and len(first.uid) == UID_BYTES and commit.session not in self._growing:
            self._growing[commit.session] = first.uid, Growing()
            self.first = self.first or first.uid
        self.ordinal = commit.ordinal
        if commit.session not in self._growing:
            return
        uid, growing = self._growing[commit.session]
        growing.add(leaf_of(commit, mutations))
        self._ends[commit.session] = commit.last, commit.hash
        if growing.size in self._watched.get(uid, ()):
            self.kept[uid, growing.size] = self._head(commit.session)

    def _head(self, session: int) -> SessionHead:
        uid, growing = self._growing[session]
        position, end = self._ends[session]
        return SessionHead(uid, position, growing.size, end, growing.root)

    def heads(self) -> list[SessionHead]:
        """The head of every session, in the order of uids."""
        return sorted(map(self._head, self._growing))
