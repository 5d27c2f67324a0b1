"""Looks at the beginning of a session file: where it was worked, and what a person said first.

Reads no more than that needs: a piece of the file, a larger one where the first says nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from vmstore.capture.importers.formats import READERS
from vmstore.capture.importers.formats.decompress import is_packed, unpack
from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, split
from vmstore.capture.steps import MessageStep, ParsedSource
from vmstore.core.page import Modality
from vmstore.core.system.safe_files import regular
from vmstore.errors import InputError
from vmstore.providers.message import name_of

PIECES = (64 << 10, 1 << 20)  # bytes read at first, and at most
WORDS_MAX = 200


class Preview(NamedTuple):
    """The beginning of a file as data; None in a field that does not stand there."""

    folder: str | None
    words: str | None


def glance(path: Path, format: str) -> Preview:
    """Previews a file of a format; empty where it is of another format or cannot be read."""
    seen = Preview(None, None)
    for size in PIECES:
        try:
            data, whole = _piece(path, size)
            lines, _ = split(data)
            source = SourceFile(path=path, lines=lines)
            if READERS[format].recognises(source):
                seen = Preview(_folder(lines), _words(READERS[format].read(source)))
        except (OSError, InputError):
            return seen
        if whole or seen.words is not None:
            break
    return seen


def _piece(path: Path, size: int) -> tuple[bytes, bool]:
    """The first bytes of a file, unpacked, to the end of a line; whether they are all there are."""
    with regular(path) as file:
        data = file.read(size)
        whole = len(data) < size
    if is_packed(data):
        data = unpack(path, data, size)
        whole = whole and len(data) < size
    return data if whole else data[: data.rfind(b"\n") + 1], whole


def _folder(lines: list[JsonLine]) -> str | None:
    """The working folder that the first record to tell it names."""
    for line in lines:
        record: Any = line.value if isinstance(line.value, dict) else {}
        for fields in (record, record.get("payload")):
            if isinstance(fields, dict) and (folder := name_of(fields.get("cwd"))):
                return folder
    return None


def _words(reading: ParsedSource) -> str | None:
    """The first words of a person's, on one line."""
    for step in reading.tracks[0].steps:
        if isinstance(step, MessageStep) and step.draft.human:
            texts = (p.content.decode("utf-8", "replace") for p in step.draft.parts if p.modality is Modality.TEXT)
            line = " ".join(" ".join(texts).split())
            return line[:WORDS_MAX] or None
    return None
