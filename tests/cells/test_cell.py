"""A cell's commitment hides and binds its bytes."""

from __future__ import annotations

import hashlib

import pytest

from vmstore.cells.cell import COMMITMENT_BYTES, DAMAGED, ERASED, SALT_BYTES, Cell, commit


def test_a_commitment_is_the_hash_of_salt_and_bytes() -> None:
    """SHA-256 over sixteen bytes of salt, then the content."""
    cell = Cell(b"0123456789abcdef", b"content")
    assert cell.commitment == hashlib.sha256(b"0123456789abcdefcontent").digest()
    assert len(cell.commitment) == COMMITMENT_BYTES == 32


def test_the_same_bytes_sealed_twice_do_not_show_it() -> None:
    """Another salt gives another commitment, so equal content cannot be told from outside."""
    assert commit(b"a" * SALT_BYTES, b"yes") != commit(b"b" * SALT_BYTES, b"yes")


@pytest.mark.parametrize("length", [0, 15, 17, 32])
def test_a_salt_has_one_length(length: int) -> None:
    """A salt of another length is refused, else bytes could move between salt and content."""
    with pytest.raises(AssertionError, match="16 bytes"):
        commit(b"s" * length, b"")


def test_a_cell_is_frozen() -> None:
    """Sealed bytes cannot be changed in place."""
    cell = Cell(b"s" * SALT_BYTES, b"content")
    with pytest.raises(AttributeError):
        cell.content = b"other"  # type: ignore[misc]


def test_what_stands_for_a_lost_cell_holds_nothing() -> None:
    """A destroyed cell has a salt of zeros and no bytes, a damaged one neither, and no commitment agrees with that."""
    assert (ERASED.salt, ERASED.content, ERASED.erased) == (bytes(SALT_BYTES), b"", True)
    assert (DAMAGED.salt, DAMAGED.content, DAMAGED.erased) == (b"", b"", False)
    assert not DAMAGED.keeps(hashlib.sha256(b"").digest())


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4097, 70_000])
def test_a_content_of_any_length_is_sealed_alike(length: int) -> None:
    """However its hash is worked out, a cell keeps what was sealed, and no other bytes."""
    cell = Cell(b"s" * SALT_BYTES, b"x" * length)
    assert cell.commitment == hashlib.sha256(cell.salt + cell.content).digest()
    assert cell.keeps(cell.commitment) and not Cell(cell.salt, cell.content + b"x").keeps(cell.commitment)
