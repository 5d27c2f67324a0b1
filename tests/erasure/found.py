"""Finds planted bytes in every file of a store, packed ones opened."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw
import zstandard

from vmstore.log.archive.file import ArchiveLog

ZSTD = b"\x28\xb5\x2f\xfd"


def found_in(folder: Path, planted: Iterable[bytes]) -> dict[bytes, list[str]]:
    """The files that hold each of some bytes, as they are, as JSON or base64, packed or not, or as their words."""
    wanted = list(planted)
    hits: dict[bytes, list[str]] = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        views = [content, *unpacked(content), *frames(file)]
        for item in wanted:
            forms = {item, json.dumps(item.decode("utf-8", "replace"))[1:-1].encode(), base64.b64encode(item)}
            forms |= {item.lower(), base64.b64encode(item)[:-4] or item}
            if any(form in view for view in views for form in forms):
                hits.setdefault(item, []).append(file.relative_to(folder).as_posix())
    return hits


def unpacked(content: bytes) -> Iterator[bytes]:
    """What the zstd frames in some bytes hold, wherever they begin."""
    at = content.find(ZSTD)
    while at >= 0:
        with contextlib.suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(content[at:])
        at = content.find(ZSTD, at + 1)


def frames(file: Path) -> Iterator[bytes]:
    """The cells of a log as it reads them: pages of a file may part a packed frame."""
    if file.suffix == ".archive":
        with contextlib.closing(ArchiveLog(file)) as log:
            for commit in log.tail(0, log.ordinal):
                yield from (
                    cell.content for cell in log.cells(range(commit.cell, commit.cell + commit.cell_count)).values()
                )
    if file.name != "log.sqlite":
        return
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    for form, sizes, content in db.execute("SELECT form, sizes, content FROM frames"):
        if form == 1:
            total = sum(size for size in struct.unpack(f">{len(sizes) // 4}I", sizes) if size != 0xFFFF_FFFF)
            yield zstandard.ZstdDecompressor().decompress(content, max_output_size=total)
    db.close()
