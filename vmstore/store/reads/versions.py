"""The versions of a page, each with what it added to the one it was made from, and the pages it is seen with."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.erasure import gone
from vmstore.core.page import Method
from vmstore.log.port import Log
from vmstore.namespace.page_rows import actor, described
from vmstore.namespace.results import Affinity, Version
from vmstore.views.branch import Branch
from vmstore.views.reads.page_calls import company
from vmstore.views.reads.page_lines import page_lines
from vmstore.views.stored_cells import read_cells

DIFF_LINES_MAX = 20_000  # a diff of more takes minutes


class _Content(NamedTuple):
    """One content of a page as the view holds it."""

    position: int
    version: int
    level: int
    tokens: int
    size: int
    method: int | None
    cell: int | None
    commitment: bytes | None


def versions_of(lane: Branch, log: Log, page: int, position: int, *, delta: bool) -> list[Version]:
    """Every content of a page up to a position, in order, each beside the one it was made from.

    A version is made from the one before, a shorter form from the version it stands for.
    """
    contents = [
        _Content(*row)
        for stretch in reversed(lane.upto(position))
        for row in lane.db.execute(_CONTENTS, (stretch.session, page, stretch.high))
    ]
    ((labels, role),) = lane.rows(_MAKER, [page])
    texts = _texts(lane, log, contents) if delta else {}
    full: dict[int, _Content] = {}
    found = []
    for content in contents:
        before = full.get(content.version if content.level else content.version - 1)
        found.append(
            Version(
                page=page_name(page),
                version=content.version,
                parent=None if before is None else before.version,
                position=content.position,
                level=content.level,
                tokens=content.tokens,
                tokens_added=content.tokens - (before.tokens if before else 0),
                bytes=content.size,
                bytes_added=content.size - (before.size if before else 0),
                actor=actor(labels, role),
                method=None if content.method is None else Method(content.method).word,
                delta=_diff(page, before, content, texts) if delta and before is not None else None,
            )
        )
        if not content.level:
            full[content.version] = content
    return found


def _texts(lane: Branch, log: Log, contents: list[_Content]) -> dict[int, str]:
    """The contents that are text, by position."""
    cells = read_cells(log, lane.db, {one.cell: one.commitment for one in contents if one.cell is not None}, gone)
    found = {}
    for one in contents:
        content = b"\0" if one.cell is None else cells[one.cell]
        try:
            if b"\0" not in content:
                found[one.position] = content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            continue
    return found


def _diff(page: int, before: _Content, after: _Content, texts: dict[int, str]) -> str | None:
    """A unified diff of two contents; None where one is no text, or both are too long to compare."""
    if before.position not in texts or after.position not in texts:
        return None
    old, new = (texts[version.position].splitlines(keepends=True) for version in (before, after))
    if len(old) + len(new) > DIFF_LINES_MAX:
        return None
    names = (f"{page_name(page)}@position:{version.position}#level={version.level}" for version in (before, after))
    return "".join(_ended(unified_diff(old, new, next(names), next(names))))


def _ended(lines: Iterator[str]) -> Iterator[str]:
    """Lines of a diff, each ended, so that a text without a last line end does not run into the next."""
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ no line end\n"


def affinity_of(lane: Branch, log: Log, page: int, position: int, limit: int | None) -> list[Affinity]:
    """The pages that calls up to a position saw together with a page, nearest first."""
    own, found = company(lane, position, page)
    near = list(islice(found, limit))
    pages: dict[int, Any] = {
        neighbour.position: neighbour for neighbour in described(lane, position, [neighbour.page for neighbour in near])
    }
    texts = page_lines(lane, log, pages)
    return [
        Affinity(
            page=page_name(neighbour.page),
            affinity=neighbour.shared / (own + neighbour.calls - neighbour.shared),
            shared=neighbour.shared,
            calls=neighbour.calls,
            role=pages[neighbour.page].role,
            type=pages[neighbour.page].type,
            tokens=pages[neighbour.page].tokens,
            text=texts.get(neighbour.page, ""),
        )
        for neighbour in near
    ]


_CONTENTS = """SELECT position, version, level, tokens, size, method, cell, commitment FROM versions
  WHERE session = ? AND page = ? AND position <= ? ORDER BY position"""
_MAKER = "SELECT labels, role FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
