"""The answers of units as a file of JSON lines, each written when it is there, so that a killed run goes on.

One process writes it, the one that wants the answers. A line that a crash tore is
dropped, and its unit done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from vmstore.errors import InputError

Line = TypeVar("Line", bound=msgspec.Struct)


class ResultsFile(Generic[Line]):
    """Lines by what they are known by; in memory alone where no file is given."""

    def __init__(self, path: Path | None, line: type[Line], key: Callable[[Line], bytes]) -> None:
        self.path = path
        self._type, self._key = line, key
        self._lines: dict[bytes, Line] = {}
        if path is not None and path.exists():
            self._load(path)

    def _load(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for nth, text in enumerate(content[:whole].splitlines(), 1):
            try:
                line = msgspec.json.decode(text, type=self._type)
            except msgspec.DecodeError as error:
                remedy = "name another file, or move this one away"
                raise InputError(
                    f"{path}, line {nth}, is no result of this command ({error}); {remedy}",
                    code="not-a-result",
                ) from error
            self._lines[self._key(line)] = line
        if whole < len(content):
            os.truncate(path, whole)

    def find(self, key: bytes) -> Line | None:
        """The line of a unit that was done."""
        return self._lines.get(key)

    def add(self, line: Line, *, lasting: bool = True) -> None:
        """Keeps a line; one that is not `lasting` for this run alone."""
        self._lines[self._key(line)] = line
        if self.path is not None and lasting:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")

    @property
    def name(self) -> str | None:
        """The file in messages."""
        return None if self.path is None else str(self.path)
