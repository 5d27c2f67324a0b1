"""The manifest's bytes: those of a published one stay readable and are written the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refusals import refused
from vmstore.cold.catalogue import opened, sealed
from vmstore.cold.manifest import KIND, Manifest, PublishedSegment, PublishedSession, StoredObject, decoded, encoded
from vmstore.core.clock import SeededIds
from vmstore.errors import CorruptError

GOLDEN = Path(__file__).parents[1] / "golden" / "cold-1.json"


def stored(name: str) -> StoredObject:
    """An object of a name."""
    return StoredObject(f"default/{name}", len(name), name.encode().hex().ljust(64, "0"))


MANIFEST = Manifest(
    kind=KIND,
    number=17,
    before="ab" * 32,
    namespace="01" * 16,
    at=1_700_000_000_000_000,
    encrypted=False,
    catalogue=stored("catalogues/c"),
    sessions=[
        PublishedSession("02" * 16, 1, 29, "cd" * 32, 7, 20, 29, stored("archives/a.archive")),
        PublishedSession(
            "03" * 16, 6, 14, "ef" * 32, 2, 3, 4, stored("archives/b.archive"), "02" * 16, ["02" * 16], 5, 9, 1
        ),
    ],
    segments=[
        PublishedSegment("918d1304-0-11-cb2e7b9df27783c2", {"mutations": stored("segments/mutations/m.parquet")})
    ],
    tables=["delta"],
)


def test_the_bytes_of_a_manifest_stay() -> None:
    """A manifest is written as the bytes that were published, and these are read as what they were written from."""
    assert encoded(MANIFEST) == GOLDEN.read_bytes()
    assert decoded(GOLDEN.read_bytes(), "golden") == MANIFEST


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, encoded(MANIFEST)[:-9]])
def test_what_is_no_manifest_is_named(content: bytes) -> None:
    """Bytes that are no manifest, or half of one, are refused by the name of the object."""
    with refused("not-a-manifest", CorruptError, "s3://team/cold/manifests/1"):
        decoded(content, "s3://team/cold/manifests/1")


def test_a_manifest_of_a_later_version_is_refused() -> None:
    """A manifest of another kind is not half understood."""
    with refused("not-a-manifest", CorruptError, "vmstore cold 2"):
        decoded(encoded(MANIFEST).replace(KIND.encode(), b"vmstore cold 2"), "there")


def test_a_catalogue_does_not_tell_a_guess() -> None:
    """Two catalogues of the same names have no byte string in common that tells these, and both give the names."""
    names = {"02" * 16: "trip", "03" * 16: "other"}
    first, second = (sealed(names, SeededIds(seed), None) for seed in (1, 2))
    assert first != second
    assert opened(first, "there", None) == opened(second, "there", None) == names
    with refused("not-a-manifest", CorruptError, "there"):
        opened(first[:-5], "there", None)
