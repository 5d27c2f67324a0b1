"""A cold tier: one namespace below a prefix of an object store.

default/manifests/0000000001.json
default/archives/<sha256>.archive       a session, as `vmstore archive` makes them
default/segments/<sha256>.parquet       a table of a column segment
default/catalogues/<sha256>             the names of the sessions
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from vmstore.cold.manifest import FOLDER, FoundManifest, Manifest, StoredObject, decoded, encoded, name_of
from vmstore.errors import StoreError, UnknownError
from vmstore.objects.port import ObjectInfo, Objects

LAKE, DELTA_LOG = "iceberg", "_delta_log"
SUFFIXES = {"archives": ".archive", "segments": ".parquet", "catalogues": ""}


class ColdTier:
    """The objects of a namespace in a tier, found by its newest manifest."""

    def __init__(self, objects: Objects, namespace: str) -> None:
        self.objects = objects
        self.namespace = namespace
        self.address = objects.address

    def numbers(self) -> list[int]:
        """The numbers of the manifests that are there, in order."""
        return sorted(_number(info) for info in self.objects.list(f"{self.namespace}/{FOLDER}"))

    def newest(self) -> FoundManifest | None:
        """The newest manifest; None where nothing was published."""
        numbers = self.numbers()
        return self._read(numbers[-1]) if numbers else None

    def manifest(self, number: int | None = None) -> FoundManifest:
        """The manifest of a number, or the newest one; raises StoreError or UnknownError where there is none."""
        numbers = self.numbers()
        if not numbers:
            raise StoreError(
                f"nothing of namespace {self.namespace!r} is at {self.address}; `vmstore publish STORE ADDRESS` puts "
                "it there",
                code="no-cold-tier",
            )
        if number is not None and number not in numbers:
            raise UnknownError(
                f"{self.address} has no manifest {number}; it has {numbers[0]} to {numbers[-1]}", code="no-manifest"
            )
        return self._read(numbers[-1] if number is None else number)

    def _read(self, number: int) -> FoundManifest:
        name = name_of(self.namespace, number)
        content = self.objects.get(name)
        if content is None:
            raise UnknownError(f"{self.address} lost manifest {number} just now; open it again", code="no-manifest")
        found = decoded(content, f"{self.address}/{name}")
        return FoundManifest(found, hashlib.sha256(content).hexdigest())

    def add(self, manifest: Manifest) -> FoundManifest:
        """Writes the next manifest; ConflictError (`object-exists`) where another publisher was first."""
        content = encoded(manifest)
        self.objects.put(name_of(self.namespace, manifest.number), content)
        return FoundManifest(manifest, hashlib.sha256(content).hexdigest())

    def put(self, folder: str, content: bytes) -> StoredObject:
        """Writes an object under the name of its bytes."""
        digest = hashlib.sha256(content).hexdigest()
        name = f"{self.namespace}/{folder}/{digest}{SUFFIXES[folder.partition('/')[0]]}"
        self.objects.put(name, content)
        return StoredObject(name, len(content), digest)

    def strays(self, before_us: int) -> Iterator[ObjectInfo]:
        """Objects that count no more: named neither by the newest manifest nor by one that was it since a time.

        What was written since is spared: somebody may be about to name it.
        """
        numbers = self.numbers()
        kept: set[str] = set()
        for number in reversed(numbers):
            found = self._read(number)
            kept |= {name_of(self.namespace, number), *(stored.name for stored in found.manifest.objects)}
            if found.manifest.at <= before_us:  # those before it were replaced by then
                break
        for info in self.objects.list(self.namespace):
            parts = info.name.split("/")
            if info.name not in kept and info.at_us < before_us and parts[1] != LAKE and DELTA_LOG not in parts:
                yield info


def namespaces(objects: Objects) -> list[str]:
    """The names of the namespaces that are published at an address, in order."""
    return sorted({info.name.split("/")[0] for info in objects.list() if f"/{FOLDER}/" in info.name})


def _number(info: ObjectInfo) -> int:
    digits = info.name.rpartition("/")[2].removesuffix(".json")
    return int(digits) if digits.isdecimal() else 0
