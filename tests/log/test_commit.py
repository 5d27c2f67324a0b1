"""A commit's hash covers what happened, and only that."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import msgspec
import pytest

from vmstore.cells.cell import Cell
from vmstore.log.commit import Commit, genesis, link, relink, seal

CELLS = (Cell(b"s" * 16, b"hello"), Cell(b"t" * 16, b""))
PREVIOUS = genesis(b"u" * 16)


def sealed() -> Commit:
    """A commit of three mutations and two cells."""
    return seal(PREVIOUS, 5, 3, 1_000, 20, b"\x93body", CELLS, 1)


def test_the_hash_is_what_the_format_says() -> None:
    """Previous hash, five header fields, length of the body, body and commitments, in SHA-256."""
    commit = sealed()
    commitments = b"".join(hashlib.sha256(cell.salt + cell.content).digest() for cell in CELLS)
    header = struct.pack(">QIqqi", 5, 3, 1_000, 20, 1)
    expected = hashlib.sha256(PREVIOUS + header + struct.pack(">Q", 5) + b"\x93body" + commitments).digest()
    assert (commit.commitments, commit.hash) == (commitments, expected)
    assert genesis(b"u" * 16) == hashlib.sha256(b"vmstore session" + b"u" * 16).digest()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("first", 6),
        ("count", 4),
        ("at", 1_001),
        ("at", -1_000),
        ("lag", 21),
        ("lag", -20),
        ("request", 0),
        ("request", -1),
        ("body", b"\x93bodY"),
        ("body", b"\x93bod"),
        ("commitments", b""),
        ("commitments", bytes(64)),
    ],
)
def test_every_hashed_field_changes_the_hash(field: str, value: Any) -> None:
    """A commit with one hashed field changed has another hash."""
    commit = sealed()
    assert relink(PREVIOUS, commit) == commit.hash
    assert relink(PREVIOUS, msgspec.structs.replace(commit, **{field: value})) != commit.hash


@pytest.mark.parametrize("replaced", [{"session": 9}, {"ordinal": 9}, {"cell": 9}, {"cells": ()}, {"hash": b"other"}])
def test_where_a_commit_lies_is_outside_its_hash(replaced: dict[str, Any]) -> None:
    """Session keys, ordinals and cell numbers belong to one log, so a session can move to another."""
    commit = sealed()
    assert relink(PREVIOUS, msgspec.structs.replace(commit, **replaced)) == commit.hash


def test_a_commit_is_linked_to_the_one_before() -> None:
    """The same commit after another hash has another hash."""
    commit = sealed()
    assert relink(genesis(b"v" * 16), commit) != commit.hash


def test_bytes_cannot_move_between_body_and_commitments() -> None:
    """The length of the body is hashed, so where it ends is fixed."""
    left = link(PREVIOUS, 1, 1, 0, 0, -1, b"abcd", b"efgh")
    right = link(PREVIOUS, 1, 1, 0, 0, -1, b"abcdef", b"gh")
    assert left != right


@pytest.mark.parametrize("cell", [Cell(b"s" * 16, b"hellO"), Cell(b"S" * 16, b"hello"), Cell(b"s" * 16, b"")])
def test_a_changed_cell_changes_the_hash(cell: Cell) -> None:
    """Content and salt both reach the commit's hash through the commitment."""
    assert seal(PREVIOUS, 5, 3, 1_000, 20, b"\x93body", (cell, CELLS[1]), 1).hash != sealed().hash


def test_a_commit_tells_what_it_holds() -> None:
    """Its last position, its logged time and its commitments follow from its fields."""
    commit = sealed()
    assert (commit.last, commit.logged_at, commit.cell_count) == (7, 1_020, 2)
    assert [commit.commitment(i) for i in (0, 1)] == [cell.commitment for cell in CELLS]
    with pytest.raises(AssertionError):
        commit.commitment(2)
