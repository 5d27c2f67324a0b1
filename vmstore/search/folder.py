"""The folder `text/` of a namespace: its segments as files, and the mark that says which count.

A segment's file is written once, under the digest of what it holds. The mark is written last, and at once; what
it does not name is left over from a process that was killed, or was merged into others, and goes.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from vmstore.core.system.safe_files import read_within
from vmstore.search.place import MARK
from vmstore.search.segment import TextSegment, opened

VERSION = 5
SUFFIX = ".seg"
NAME_CHARS = 24  # of a digest; the mark has all of it

State = tuple[int, int, int] | None


class SegmentFile(NamedTuple):
    """A segment as the mark names it."""

    name: str
    digest: str
    docs: int


class IndexMark(NamedTuple):
    """How far an index has followed the log: the commit and its hash, what was erased by then, by which rules."""

    version: int = VERSION
    ordinal: int = 0
    hash: str = ""
    erasure: int = 0
    rules: str = ""
    segments: tuple[SegmentFile, ...] = ()


class IndexFolder:
    """The files of one index."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark: tuple[State, IndexMark] = (None, IndexMark())
        self._open: dict[str, tuple[State, TextSegment]] = {}  # what was compared with its digest, and its state then

    @property
    def there(self) -> bool:
        """Whether anything stands where it lies, a link that leads nowhere too."""
        return os.path.lexists(self.path)

    def mark(self) -> IndexMark:
        """What is marked; a mark of nothing where there is none that can be read."""
        state = _state(f"{self.path}/{MARK}")
        if state is None:
            return IndexMark()
        if self._mark[0] != state:
            self._mark = state, self._read()
        return self._mark[1]

    def _read(self) -> IndexMark:
        try:
            stored = json.loads(read_within(self.path / MARK, link=False))
            files = tuple(
                SegmentFile(str(name), str(digest), int(docs)) for name, digest, docs in stored.pop("segments")
            )
            mark = IndexMark(**stored, segments=files)
            return mark if type(mark.ordinal) is int and type(mark.erasure) is int else IndexMark()
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return IndexMark()

    def segments(self, mark: IndexMark) -> tuple[list[TextSegment], str | None]:
        """The segments of a mark; or none, with the name of a file that is not what was written.

        What was compared with its digest once is not read again, unless its file changed since.
        """
        found = []
        kept = {}
        for file in mark.segments:
            if "/" in file.name or not file.name.endswith(SUFFIX):
                return [], file.name
            state = _state(f"{self.path}/{file.name}")
            known = self._open.get(file.name)
            if state is None or known is None or known[0] != state:
                segment = self._mapped(file)
                if segment is None:
                    return [], file.name
                known = state, segment
            kept[file.name] = known
            found.append(known[1])
        self._open = kept
        return found, None

    def _mapped(self, file: SegmentFile) -> TextSegment | None:
        try:
            with (self.path / file.name).open("rb") as held:
                buffer = mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ)
            if sha256(buffer).hexdigest() != file.digest:
                return None
            segment = opened(buffer)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return segment if segment.docs == file.docs else None

    def write(self, segment: TextSegment) -> SegmentFile:
        """Writes a segment, unless its file is there."""
        self.path.mkdir(exist_ok=True)
        pieces = list(segment.pieces())
        digest = sha256()
        for piece in pieces:
            digest.update(piece)
        name = digest.hexdigest()[:NAME_CHARS] + SUFFIX
        beside = self.path / f"{name}.new"
        with beside.open("wb") as file:
            file.writelines(pieces)
        os.replace(beside, self.path / name)
        self._open[name] = _state(self.path / name), segment
        return SegmentFile(name, digest.hexdigest(), segment.docs)

    def settle(self, mark: IndexMark) -> None:
        """Writes the mark, and removes what it does not name."""
        beside = self.path / f"{MARK}.new"
        beside.write_text(json.dumps(mark._asdict()))
        os.replace(beside, self.path / MARK)
        self._clear({file.name for file in mark.segments} | {MARK})

    def _clear(self, kept: Iterable[str]) -> None:
        for file in self.path.iterdir():
            if file.name not in kept:
                with suppress(OSError):
                    file.unlink() if not file.is_dir() else shutil.rmtree(file)

    def remove(self) -> None:
        """Removes everything."""
        self._open = {}
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path)
        else:  # something else in its place: a file, or a link, of which only the link goes
            self.path.unlink(missing_ok=True)


def _state(file: Path | str) -> State:
    """What shows that a file may have changed; None where it is not there."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def total(segments: Sequence[TextSegment]) -> int:
    """How many texts some segments have together."""
    return sum(segment.docs for segment in segments)
