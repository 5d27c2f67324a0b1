"""Cells too long for a row of a database: each an object in an object store, named by its commitment.

    <uid of the namespace>/namespace                                 says that its objects lie here
    <uid of the namespace>/<first two hex digits>/<64 hex digits>    a cell, with .aes under a key

An object is put before the commit that names it. What a crash leaves between the two is garbage that `sweep` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.core.system.safe_files import Stray
from vmstore.errors import ConflictError, CorruptError, StoreError
from vmstore.log.frame_encryption import PLAIN, NoEncryption
from vmstore.objects.port import Objects

OBJECT_BYTES_MIN = (256 << 10) + 1  # longer than 256 KiB: an object of its own
MARK = b"vmstore objects 1\n"
REMEDY = "put it back from a version, a replica or a backup of the bucket, or erase what it held with `vmstore erase`"


def not_named(address: str) -> StoreError:
    """The error of a log whose long contents lie where its address does not say."""
    return StoreError(
        f"{address} keeps long contents in an object store, which the address does not name; add blobs= to it",
        code="blobs-not-named",
    )


class CellObjects:
    """The long cells of one namespace in an object store; any thread may use it."""

    def __init__(self, objects: Objects, uid: bytes, vault: NoEncryption = PLAIN) -> None:
        self.objects = objects
        self._folder = uid.hex()
        self._vault = vault
        self._claimed = False

    @property
    def address(self) -> str:
        """The object store's, as messages name it and the namespace records it."""
        return self.objects.address

    def name(self, commitment: bytes) -> str:
        """The name of the object that holds a cell."""
        digits = commitment.hex()
        return f"{self._folder}/{digits[:2]}/{digits}{self._vault.suffix}"

    def claim(self) -> None:
        """Marks the object store as the one that the namespace's objects lie in."""
        self.objects.put(f"{self._folder}/namespace", MARK)
        self._claimed = True

    def _check_claim(self) -> None:
        """Raises StoreError where another object store answers than the one that was marked."""
        if not self._claimed and self.objects.get(f"{self._folder}/namespace") != MARK:
            raise StoreError(
                f"{self.address} holds no objects of this namespace: it is another store of that name, or was emptied; "
                "name the one it was made with by blobs= in the address, its endpoint too, or put its objects back",
                code="blobs-elsewhere",
            )
        self._claimed = True

    def keep(self, commitment: bytes, content: bytes, key: bytes = b"") -> None:
        """Puts a cell's bytes, encrypted where they lie under a key, durable before it returns."""
        assert len(commitment) == COMMITMENT_BYTES, "the object is found again by the whole commitment"
        name = self.name(commitment)
        try:
            self._check_claim()
            closed = self._vault.closed_file(commitment, content, key)
            try:
                self.objects.put(name, closed)
            except ConflictError:
                if self.read(commitment) == content:  # under a nonce of its own
                    return
                self.objects.delete(
                    name
                )  # it is no content that the name may have: damaged, or under a key that is gone
                self.objects.put(name, closed)
        except StoreError as error:
            raise StoreError(f"nothing was logged: {error}", code=error.code) from error

    def holds(self, commitment: bytes) -> bool:
        """Whether the object of a commitment is there."""
        return self.objects.head(self.name(commitment)) is not None

    def read(self, commitment: bytes) -> bytes | None:
        """A cell's bytes, unchecked; None where the object is not there."""
        found = self.objects.get(self.name(commitment))
        return None if found is None else self._vault.opened_file(commitment, found)

    def missing(self, commitment: bytes) -> CorruptError:
        """The error of an object that is not there."""
        return CorruptError(f"{self._at(commitment)} is missing; {REMEDY}", code="object-missing")

    def damaged(self, commitment: bytes) -> CorruptError:
        """The error of an object whose bytes are not those of its name."""
        return CorruptError(f"{self._at(commitment)} is not what was put there; {REMEDY}", code="object-damaged")

    def _at(self, commitment: bytes) -> str:
        return f"{self.address}/{self.name(commitment)}, a content of the log,"

    def remove(self, commitment: bytes) -> bool:
        """Deletes an object; whether it was there."""
        try:
            return self.objects.delete(self.name(commitment))
        except StoreError as error:
            raise StoreError(f"{error}; then run `vmstore erase --finish`", code=error.code) from error

    def strays(self, named: Callable[[bytes], bool]) -> Iterator[tuple[str, Stray]]:
        """Objects that no commitment in use names, by name."""
        for found in self.objects.list(self._folder):
            digits = found.name.rpartition("/")[2].removesuffix(self._vault.suffix)
            try:
                commitment = bytes.fromhex(digits)
            except ValueError:
                commitment = b""
            mine = found.name == self.name(commitment) if len(commitment) == COMMITMENT_BYTES else False
            if found.name != f"{self._folder}/namespace" and not (mine and named(commitment)):
                yield found.name, Stray(f"{self.address}/{found.name}", found.size, found.at_us)
