"""A commit: the atomic unit of writing, one row, one link of a session's hash chain.

hash = SHA-256(hash of the session's commit before, header, body, commitments of its cells).
A session's chain starts from its uid, or for a fork from its parent's hash at the fork point.
"""

from __future__ import annotations

import struct
from hashlib import sha256

import msgspec

from vmstore.cells.cell import COMMITMENT_BYTES, Cell

_HEADER = struct.Struct(">QIqqiQ")  # first, count, at, lag, request, length of the body
NO_REQUEST = -1

assert _HEADER.size == 40, "the header is hashed: another width would break every chain there is"


class Commit(msgspec.Struct, frozen=True):
    """1 to n mutations of one session, positions `first` to `last`.

    `at` is when it happened, in microseconds since 1970; `lag` how much later it was logged.
    `request` is the index of the cell that holds its request id, or -1. `session` is the
    session's key in this log (the ordinal of its first commit; 0 in that commit before it is
    stored); `cells` is empty when the row was read without them.
    """

    first: int
    count: int
    at: int
    lag: int
    body: bytes
    commitments: bytes
    hash: bytes
    request: int = NO_REQUEST
    session: int = 0
    ordinal: int = 0
    cell: int = 0  # the log's number of the first cell
    cells: tuple[Cell, ...] = ()

    @property
    def last(self) -> int:
        """The position of its last mutation."""
        return self.first + self.count - 1

    @property
    def logged_at(self) -> int:
        """The time of logging, in microseconds since 1970."""
        return self.at + self.lag

    def commitment(self, index: int) -> bytes:
        """The commitment of its cell `index`."""
        found = self.commitments[index * COMMITMENT_BYTES : (index + 1) * COMMITMENT_BYTES]
        assert len(found) == COMMITMENT_BYTES, "a cell's index is within its commit"
        return found

    @property
    def cell_count(self) -> int:
        """How many cells it brought."""
        return len(self.commitments) // COMMITMENT_BYTES


def seal(
    previous: bytes,
    first: int,
    count: int,
    at: int,
    lag: int,
    body: bytes,
    cells: tuple[Cell, ...],
    request: int,
    commitments: bytes | None = None,
) -> Commit:
    """A commit linked to the hash before it; `commitments` are those of its cells, where they are at hand."""
    if commitments is None:
        commitments = b"".join([cell.commitment for cell in cells])
    assert len(commitments) == COMMITMENT_BYTES * len(cells), "the hash covers each cell once, in order"
    digest = link(previous, first, count, at, lag, request, body, commitments)
    return Commit(first, count, at, lag, body, commitments, digest, request, cells=cells)


def link(
    previous: bytes, first: int, count: int, at: int, lag: int, request: int, body: bytes, commitments: bytes
) -> bytes:
    """The hash of a commit that follows `previous`."""
    header = _HEADER.pack(first, count, at, lag, request, len(body))
    return sha256(b"".join((previous, header, body, commitments))).digest()


def relink(previous: bytes, commit: Commit) -> bytes:
    """The hash a stored commit ought to have after `previous`."""
    return link(
        previous,
        commit.first,
        commit.count,
        commit.at,
        commit.lag,
        commit.request,
        commit.body,
        commit.commitments,
    )


def follows(previous: bytes, commit: Commit) -> bool:
    """Whether a stored commit is linked to `previous`; one with a number that no commit can have is not."""
    try:
        return relink(previous, commit) == commit.hash
    except (struct.error, OverflowError):
        return False


def genesis(uid: bytes) -> bytes:
    """The hash that a session's chain starts from."""
    return sha256(b"vmstore session" + uid).digest()
