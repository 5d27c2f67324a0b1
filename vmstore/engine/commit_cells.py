"""The cells of a commit under way: taken down as they come, sealed together when somebody asks."""

from __future__ import annotations

from vmstore.cells.cell import SALT_BYTES, Cell, commit
from vmstore.core import clock
from vmstore.core.clock import IdSource

assert clock.SALT_BYTES == SALT_BYTES, "what is drawn as a salt is as long as a cell takes it"


class Sealing:
    """Contents in order, each with its digest; an index gives the commitment."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self.contents: list[bytes] = []
        self.digests: list[bytes] = []
        self._salts: list[bytes] = []
        self._commitments: list[bytes] = []

    def __getitem__(self, index: int) -> bytes:
        return self.commitments[index]

    def add(self, content: bytes, digest: bytes) -> int:
        """Takes a content down; the index of its cell."""
        self.contents.append(content)
        self.digests.append(digest)
        assert len(self.contents) == len(self.digests), "a cell is known again by the digest at its index"
        return len(self.contents) - 1

    @property
    def commitments(self) -> list[bytes]:
        """What each cell is sealed as."""
        new = self.contents[len(self._salts) :]
        if new:
            salts = self._ids.salts(len(new))
            assert len(salts) == len(new), "each content has a salt of its own"
            self._salts += salts
            self._commitments += map(commit, salts, new)
        return self._commitments

    def cells(self) -> tuple[Cell, ...]:
        """The cells, sealed."""
        sealed = len(self.commitments)
        assert sealed == len(self._salts) == len(self.contents), "each cell has the salt and bytes it was sealed with"
        return tuple(map(Cell, self._salts, self.contents)) if sealed else ()
