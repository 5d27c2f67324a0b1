"""The manifest of a cold tier: all objects of a namespace that are there, and what they hold.

    <namespace>/manifests/0000000017.json

Manifests are numbered and written with a put that only creates, so of two publishers one is told that another was
first. The newest one is the truth; an object that none names does not count. No word that anybody wrote is in one.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from vmstore.errors import CorruptError

KIND = "vmstore cold 1"
FOLDER = "manifests"
NUMBER_DIGITS = 10


class StoredObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object by its name below the tier, its bytes and their SHA-256."""

    name: str
    size: int
    sha256: str


class PublishedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session up to a position, in an archive.

    `key` is its key in the log it came from, `hash` what its chain ends with, `parent` the uid of what it was forked
    from. `commits`, `cells` and `mutations` count what it wrote itself, `past_commits` and `past_cells` what stands
    before that in the archive: what it shares with other sessions, whose uids are `past`. `erased` counts the cells
    of all of it that are destroyed.
    """

    uid: str
    key: int
    position: int
    hash: str
    commits: int
    cells: int
    mutations: int
    archive: StoredObject
    parent: str | None = None
    past: list[str] = []
    past_commits: int = 0
    past_cells: int = 0
    erased: int = 0


class PublishedSegment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column segment by the name of its folder, and its files."""

    name: str
    files: dict[str, StoredObject]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The objects of a namespace in a tier at one time.

    `before` is SHA-256 of the manifest before, `at` in microseconds since 1970, `namespace` its uid. Sessions come
    after those they were forked from. `tables` are the forms in which other engines have the segments, `delta` and
    `iceberg`, and which each later publication goes on with.
    """

    kind: str
    number: int
    before: str | None
    namespace: str
    at: int
    encrypted: bool
    catalogue: StoredObject
    sessions: list[PublishedSession]
    segments: list[PublishedSegment] = []
    tables: list[str] = []

    @property
    def objects(self) -> list[StoredObject]:
        """Every object it names."""
        files = [file for segment in self.segments for file in segment.files.values()]
        return [self.catalogue, *(session.archive for session in self.sessions), *files]


class FoundManifest(NamedTuple):
    """A manifest as it was read, and SHA-256 of its bytes."""

    manifest: Manifest
    sha256: str


def encoded(manifest: Manifest) -> bytes:
    """The bytes of a manifest."""
    return msgspec.json.encode(manifest) + b"\n"


def decoded(content: bytes, where: str) -> Manifest:
    """The manifest of some bytes; CorruptError names where they are from."""
    try:
        found = msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CorruptError(
            f"{where} is no manifest of a cold tier ({error}); delete it, or put back what was there",
            code="not-a-manifest",
        ) from error
    if found.kind != KIND:
        raise CorruptError(
            f"{where} is a manifest of another version of vmstore ({found.kind[:40]!r}); use that one",
            code="not-a-manifest",
        )
    return found


def name_of(namespace: str, number: int) -> str:
    """The name of a manifest below the tier."""
    return f"{namespace}/{FOLDER}/{number:0{NUMBER_DIGITS}}.json"
