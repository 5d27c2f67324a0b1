"""Contents by the position that made them, as text that a page can show and no browser runs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from vmstore.core.erasure import gone
from vmstore.core.page import Level, Mime, Modality
from vmstore.core.text.page_line import LINE_CHARS, about, page_line
from vmstore.errors import UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.reads.page_lines import requests
from vmstore.views.stored_cells import read_cells

CUT_BYTES = 64 << 10
DIGEST_BYTES = 8


class ContentText(msgspec.Struct, omit_defaults=True):
    """One content: its text, or an image's as a data URL; `bytes` is its length, `cut` says there is more of it.

    `missing` says why there is none: its source never held it, or it was erased. `line` is what it is read by in
    lists, where that is not its beginning; `asked` what the tool was asked whose answer it is.
    """

    text: str
    bytes: int
    cut: bool
    mime: str | None = None
    missing: str | None = None
    line: str | None = None
    asked: str | None = None


class _Sealed(NamedTuple):
    page: int
    level: int
    size: int
    cell: int | None
    commitment: bytes | None


def texts(store: Store, session: Session, positions: Sequence[int], *, whole: bool = False) -> dict[str, ContentText]:
    """The contents made at some positions, by position; raises UnknownError where one of them made none."""
    ns = store._ns
    with ns.asking():
        lane = Branch(ns.views, ns.key(session.name) or 0)
        end = session.info().position
        known = {row[0]: _Sealed(*row[1:]) for row in lane.rows(_CONTENTS, positions) if row[0] <= end}
        for position in positions:
            if position not in known:
                raise UnknownError(_nothing_at(lane, session.name, position, end))
        pages = {place.page for place in known.values()}
        kinds = {page: (modality, mime) for page, modality, mime in lane.rows(_KINDS, pages)}
        asked = requests(lane, ns.log, pages)
        found = {}
        for position in dict.fromkeys(positions):
            sealed = known[position]
            modality, mime = kinds[sealed.page]
            if sealed.cell is None:
                found[str(position)] = ContentText("", 0, False, missing="its source never held it")
                continue
            try:
                content = read_cells(ns.log, lane.db, {sealed.cell: sealed.commitment})[sealed.cell]
            except UnknownError as error:
                found[str(position)] = ContentText("", sealed.size, False, missing=str(error))
                continue
            # A shorter form of an image is text, unless it is a thumbnail.
            picture = modality == Modality.IMAGE and (sealed.level == Level.FULL or _kind(content) is not None)
            found[str(position)] = made = _image(content, whole) if picture else _text(content, whole)
            if made.mime is None:
                request = asked.get(sealed.page)
                made.asked = None if request is None else about(request)
                made.line = _line(page_line(content, modality, mime, request), made.text)
        return found


def _line(line: str, text: str) -> str | None:
    """The line of a content; None where its text begins so."""
    begins = " ".join(text[: 2 * LINE_CHARS].split())
    return None if begins.startswith(line.removesuffix("…")) else line


def line_of_masked(text: str) -> str | None:
    """The line of a text that was masked: one that is cut first may hold half a secret, which nobody would know."""
    kind = Modality.STRUCTURED if text[:1] in ("{", "[") else Modality.TEXT
    return _line(page_line(text.encode("utf-8", "replace"), kind), text)


def digests(store: Store, session: Session, key: bytes) -> list[str]:
    """Of each page in order a text that is equal where two first contents are; empty where there is no content.

    Ids of tool calls do not count: two runs never have the same. It is keyed, and says nothing of a content.
    """
    ns = store._ns
    with ns.asking():
        lane = Branch(ns.views, ns.key(session.name) or 0)
        rows = [
            row
            for stretch in reversed(lane.upto(session.info().position))
            for row in lane.db.execute(_FIRST, (stretch.session, stretch.high))
        ]
        sealed = {cell: commitment for cell, commitment in rows if cell is not None}
        found = read_cells(ns.log, lane.db, sealed, gone)
        return [_digest(found.get(cell, b""), key) for cell, _ in rows]


def _digest(content: bytes, key: bytes) -> str:
    plain = _IDS.sub(b"", content) if content.startswith(b"{") else content
    return hashlib.blake2b(plain, digest_size=DIGEST_BYTES, key=key).hexdigest() if plain else ""


def _text(content: bytes, whole: bool) -> ContentText:
    cut = len(content) > CUT_BYTES and not whole
    shown = content[:CUT_BYTES].decode("utf-8", "ignore") if cut else content.decode("utf-8", "replace")
    return ContentText(shown, len(content), cut)


def _image(content: bytes, whole: bool) -> ContentText:
    """An image as a data URL, whole or not at all: a part of one shows nothing.

    Chat requests hold images as data URLs, or as addresses, which are shown as text and never fetched.
    """
    size = len(content)
    if content.startswith(_DATA):
        try:
            content = base64.b64decode(content.partition(b",")[2], validate=True)
        except binascii.Error:
            content = b""
    elif content.startswith((b"http:", b"https:")):
        return _text(content, whole)
    mime = _kind(content)
    if mime is None:
        return ContentText("", size, False, missing="it is no picture of a kind that is shown here")
    if size > CUT_BYTES and not whole:
        return ContentText("", size, True, mime.type)
    return ContentText(f"data:{mime.type};base64,{base64.b64encode(content).decode()}", size, False, mime.type)


def _kind(content: bytes) -> Mime | None:
    """Which of the pictures that no browser takes for more a content is, by how it begins."""
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return Mime.WEBP
    return next((mime for begin, mime in _BEGINNINGS.items() if content.startswith(begin)), None)


def _nothing_at(lane: Branch, session: str, position: int, end: int) -> str:
    """What to say where a position made no content: which one near it did."""
    near = [
        row[0]
        for stretch in lane.upto(end)
        for sql in _NEAREST
        for row in lane.db.execute(sql, (stretch.session, min(position, stretch.high)))
        if row[0] is not None
    ]
    nearest = f"the nearest before it is at position {max(near)}" if near else "none was made before it"
    return f"position {position} of session {session!r} made no content; {nearest}"


_DATA = b"data:"
_IDS = re.compile(rb'"(?:id|call_id|tool_call_id|tool_use_id|toolCallId|thoughtSignature)":\s?"[^"]*",?')
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": Mime.PNG,
    b"\xff\xd8\xff": Mime.JPEG,
    b"GIF87a": Mime.GIF,
    b"GIF89a": Mime.GIF,
}
_CONTENTS = """SELECT position, page, level, size, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_KINDS = """SELECT page, modality, mime FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_NEAREST = (
    "SELECT max(page) FROM pages WHERE session = ? AND page <= ?",
    "SELECT max(position) FROM changes WHERE session = ? AND position <= ?",
)
_FIRST = "SELECT cell, commitment FROM versions WHERE session = ? AND page <= ? AND position = page ORDER BY page"
