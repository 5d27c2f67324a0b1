"""Snapshots: what a live session was folded into, kept in a file, so that a new process need not read it all again.

A view like the others: delete `live/` and nothing is lost but time. A snapshot is of one place in the log,
known by the position and the hash of the commit there, and of no store in which something was erased since.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from vmstore.core.system.safe_files import destroy, read_within
from vmstore.live.recall.index import RecallIndex
from vmstore.live.snapshots.codec import LEFT_OUT, image, restored
from vmstore.live.transcript import Transcript
from vmstore.views.dispatch import uncollected
from vmstore.vm.kernel.state import State
from vmstore.vm.metrics.metrics import Metrics

FOLDING = ("vm/*/*.py", "live/**/*.py", "core/**/*.py")
EVERY = 4_096  # mutations: who read so many leaves a snapshot
WORK_OF_A_PAGE = 16  # to read the words of a page, in mutations
_DIGEST_BYTES = 32


class FoldedSession(NamedTuple):
    """A folded session, as a snapshot keeps it."""

    state: State
    spoken: Transcript
    metrics: Metrics
    words: RecallIndex

    @property
    def work(self) -> int:
        """The cost of folding it, in mutations."""
        return self.state.position + WORK_OF_A_PAGE * self.words.looked_at


def pictured(folded: FoldedSession) -> bytes:
    """All of it as bytes; TypeError where something of it is of no class that can be kept."""
    return msgspec.msgpack.encode([[*folded.state.here], *map(image, folded)])


def unfold(written: bytes, into: FoldedSession) -> None:
    """Has what is new, and fresh, be what `pictured` wrote; ValueError where that is something else.

    Nothing is changed by what cannot be read, nor by what other code wrote, which has other attributes.
    """
    with uncollected():
        here, *parts = msgspec.msgpack.decode(written)
        pairs = [*zip(map(restored, parts), into, strict=True)]
        del parts
    for made, fresh in pairs:
        if type(made) is not type(fresh) or vars(made).keys() | LEFT_OUT.get(type(fresh), set()) != vars(fresh).keys():
            raise ValueError("it is of another version")
    pages = {page: pairs[0][0].pages[page] for page in here}
    for made, fresh in pairs:
        vars(fresh).update(vars(made))
    into.state.here = pages


class SnapshotImage(NamedTuple):
    """A snapshot as it was read: the position and the hash of the commit it stands at, and what was written."""

    position: int
    hash: bytes
    written: bytes


class Snapshot:
    """The snapshot of one session, in a file of its own.

    `erasure` is the last erasure of the store, whatever it was of: contents and names may be in here.
    """

    def __init__(self, folder: Path, session: int) -> None:
        self.file = folder / f"{session}.fold"
        self.work = 0  # of what lies in the file, as far as is known

    def read(self, erasure: int) -> SnapshotImage | None:
        """Reads the snapshot; None where there is none, or none that is still valid."""
        try:
            data = memoryview(read_within(self.file, link=False))  # no part of it is copied
            if hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
                return None
            version, position, hash_, erased, written = _HEAD.decode(data[_DIGEST_BYTES:])
        except (OSError, ValueError, msgspec.MsgspecError):
            return None
        return (
            SnapshotImage(position, hash_, written) if version and (version, erased) == (_version(), erasure) else None
        )

    def write(self, position: int, hash_: bytes, erasure: int, folded: FoldedSession) -> None:
        """Rewrites the file; a folder that cannot be written to, or what no file can hold, is left as it is."""
        try:
            encoded = msgspec.msgpack.encode((_version(), position, hash_, erasure, pictured(folded)))
        except (TypeError, ValueError, OverflowError):
            return
        beside = self.file.with_suffix(f".{os.getpid()}.new")
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(exist_ok=True)
            beside.write_bytes(hashlib.sha256(encoded).digest() + encoded)
            os.replace(beside, self.file)
            self.work = folded.work

    def remove(self) -> None:
        """Overwrites and removes it."""
        destroy(self.file.parent, self.file)
        self.work = 0


_HEAD = msgspec.msgpack.Decoder(tuple[str, int, bytes, int, bytes])


@cache
def _version() -> str:
    """Names the code that folds: what it wrote before it was changed may stand otherwise now; empty where unknown."""
    package, digest = Path(__file__).parents[2], hashlib.sha256()
    files = sorted(file for pattern in FOLDING for file in package.glob(pattern))
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest() if files else ""
