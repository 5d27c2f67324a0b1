"""A cell: sealed bytes that can be destroyed without breaking the chain.

Its commitment is SHA-256(salt, bytes) and is what the log's hashes cover. The random salt keeps
short or guessable content from being confirmed by its hash after it is gone.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

SALT_BYTES = 16
COMMITMENT_BYTES = 32


class Cell(msgspec.Struct, frozen=True, gc=False):
    """Bytes with the salt they were sealed with."""

    salt: bytes
    content: bytes

    @property
    def commitment(self) -> bytes:
        """The SHA-256 of salt and bytes, 32 bytes, which the chain covers instead of the bytes."""
        return commit(self.salt, self.content)

    @property
    def erased(self) -> bool:
        """Whether its bytes were destroyed; its commitment is then no longer to be had from it."""
        return self.salt == _NO_SALT

    def keeps(self, commitment: bytes) -> bool:
        """Whether it holds the bytes that were sealed as `commitment`."""
        return len(self.salt) == SALT_BYTES and commit(self.salt, self.content) == commitment


_NO_SALT = bytes(SALT_BYTES)
ERASED = Cell(_NO_SALT, b"")
"""What stands where a cell was destroyed."""
DAMAGED = Cell(b"", b"")
"""What a damaged row gives for each of its cells: no commitment agrees with it."""


def commit(salt: bytes, content: bytes) -> bytes:
    """The commitment to bytes sealed with a salt."""
    assert len(salt) == SALT_BYTES, "a salt is 16 bytes"
    return sha256(salt + content).digest() if len(content) < 4096 else _commit_large(salt, content)


def _commit_large(salt: bytes, content: bytes) -> bytes:
    digest = sha256(salt)
    digest.update(content)
    return digest.digest()
