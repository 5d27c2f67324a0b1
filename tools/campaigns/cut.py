"""What a power cut leaves: the files of a trace at any moment, flushed bytes for certain, the rest as chance has it.

A file system keeps what was flushed. Of writes not yet flushed each may be there, missing, or there by
some of its sectors, in any order; changes of names come back in the order they were made, up to
some point not before the last flush of their folder. Where a flush failed, what it was to flush is
gone: file systems take it for written, and no later flush writes it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from campaigns.disk import Event

SECTOR = 512
MODES = ("dropped", "kept", "torn", "reordered", "noise")

Image = dict[str, bytes | None]  # what is left, by path below the root; None is a folder
Wanted = Callable[[str], bool]


def all_files(path: str) -> bool:
    """Every file."""
    return True


class Content:
    """The bytes of a file: those flushed, and the writes and cuts since."""

    def __init__(self, kept: bytes = b"") -> None:
        self.kept = bytearray(kept)
        self.pending: list[tuple[int, bytes | None]] = []  # None cuts to that size

    def flush(self) -> None:
        """Everything written so far stays."""
        for change in self.pending:
            _apply(self.kept, *change)
        self.pending.clear()

    def left(self, mode: str, chance: random.Random) -> bytes:
        """What a power cut leaves of it; `torn 3` has three sectors of the last write."""
        actual_bytearray = bytearray(self.kept)
        if mode == "dropped" or not self.pending:
            return bytes(actual_bytearray)
        if mode == "reordered":  # the last is there, some before it are not
            *early, last = self.pending
            chosen = [change for change in early if chance.random() < 0.5] if len(early) > 1 else []
            for change in (*chosen, last):
                _apply(actual_bytearray, *change)
            return bytes(actual_bytearray)
        for change in self.pending[:-1]:
            _apply(actual_bytearray, *change)
        offset, data = self.pending[-1]
        if data is None or mode == "kept":
            _apply(actual_bytearray, offset, data)
        else:
            _tear(actual_bytearray, offset, data, mode, chance)
        return bytes(actual_bytearray)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    """Does one write, or a cut, to some bytes."""
    if data is None:
        del content[offset:]
    else:
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data


def _tear(content: bytearray, offset: int, data: bytes, mode: str, chance: random.Random) -> None:
    """Writes some sectors of a write: the first ones, or each with noise in what is missing."""
    sectors = range(0, len(data), SECTOR)
    if mode.startswith("torn"):
        _, _, whole = mode.partition(" ")
        _apply(content, offset, data[: int(whole) * SECTOR if whole else chance.choice(sectors)])
        return
    for start in sectors:
        part = data[start : start + SECTOR]
        if chance.random() < 0.5:
            _apply(content, offset + start, part)
        else:
            _apply(content, offset + start, chance.randbytes(len(part)))


class World:
    """The files below a folder at a moment of a trace; None is a folder."""

    def __init__(self, events: Sequence[Event], root: Path) -> None:
        self.events = events
        self.root = str(root)
        self.done = 0
        self.now: dict[str, Content | None] = {}
        self.flushed: dict[str, Content | None] = {}
        self.journal: list[tuple[str, str, Any]] = []  # changes of names not yet flushed
        self.marks: dict[str, Any] = {}

    def load(self, folder: Path) -> None:
        """Takes in what a folder holds as flushed, at the beginning."""
        for path in sorted(folder.rglob("*")):
            content = None if path.is_dir() else Content(path.read_bytes())
            name = os.path.join(self.root, path.relative_to(folder))
            self.now[name] = self.flushed[name] = content

    def advance(self, upto: int) -> None:
        """Lets the trace go on until so many events are done."""
        while self.done < upto:
            self._take(self.events[self.done])
            self.done += 1

    def _take(self, event: Event) -> None:
        kind, path, offset, data = event
        if kind == "mark":
            self.marks[path] = data
            if path == "acked":
                self.marks["asked"] = ()
        elif kind in ("write", "truncate"):
            self._content(path).pending.append((offset, data if kind == "write" else None))
        elif kind == "sync":
            content = self._content(path)
            if data:  # a plain file, whose writes nobody saw
                content.kept = bytearray(data)
            content.flush()
        elif kind == "unsynced":
            self._content(path).pending.clear()
        elif kind == "flush":
            self._flush(path)
        else:
            self._name(kind, path, data)

    def _content(self, path: str) -> Content:
        actual = self.now.get(path)
        if actual is None:
            self._name("make", path, b"")
            actual = self.now[path]
        assert isinstance(actual, Content)
        return actual

    def _name(self, kind: str, path: str, data: Any) -> None:
        """Changes a name, not yet flushed."""
        value: Any = Content() if kind == "make" else None
        if kind in ("rename", "link"):
            value = data[0]
            if path not in self.now and data[1] is not None:
                self._content(path).pending.append((0, data[1]))
        change = (kind, path, value)
        _rename(self.now, *change)
        self.journal.append(change)

    def _flush(self, folder: str) -> None:
        """Makes sure of the names in a folder, and of what was done to names before."""
        last = 0
        for number, (_, path, value) in enumerate(self.journal, 1):
            if folder in (os.path.dirname(path), os.path.dirname(value) if isinstance(value, str) else ""):
                last = number
        for change in self.journal[:last]:
            _rename(self.flushed, *change)
        del self.journal[:last]

    @property
    def open(self) -> list[str]:
        """The files that have writes not yet flushed."""
        return [path for path, content in self.now.items() if content is not None and content.pending]

    def names(self, upto: int) -> dict[str, Content | None]:
        """The files there would be if so many of the changes of names not yet flushed were kept."""
        fields = dict(self.flushed)
        for change in self.journal[:upto]:
            _rename(fields, *change)
        return fields

    def image(self, modes: dict[str, str], named: int, chance: random.Random, wanted: Wanted = all_files) -> Image:
        """What a power cut leaves now of the wanted files; those without a mode keep what was flushed."""
        left: Image = {}
        for path, content in sorted(self.names(named).items()):
            if wanted(path):
                short = path[len(self.root) + 1 :]
                left[short] = None if content is None else content.left(modes.get(path, "dropped"), chance)
        return left


def _rename(names: dict[str, Content | None], kind: str, path: str, value: Any) -> None:
    """Does one change of names."""
    if kind in ("make", "mkdir"):
        names[path] = value
    elif kind == "delete":
        names.pop(path, None)
    elif kind == "link":
        names[value] = names[path]
    elif kind == "rename":
        for name in [name for name in names if name == path or name.startswith(path + "/")]:
            names[value + name[len(path) :]] = names.pop(name)
    else:
        raise AssertionError(f"a trace has no {kind}")


def lay(image: Image, folder: Path) -> None:
    """Writes what a power cut left into an empty folder."""
    for path, content in image.items():
        place = folder / path
        if content is None:
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
