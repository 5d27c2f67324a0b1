"""Shorter forms of texts: their central sentences, their key points, their topics.

A sentence is central where it shares words with many others: its degree in the graph of sentences,
an edge for each term two of them share, counted without making the graph. Sentences stand word for word, so numbers,
names and paths in them are exact; what is left out is marked. Code is kept whole or named, never cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

from vmstore.core.page import Method
from vmstore.vm.compressors import code, data
from vmstore.vm.compressors.form import NO_SHORTER, Form, Material, NoForm, NoFormReason, text_form
from vmstore.vm.compressors.reference_line import reference
from vmstore.vm.recall.text_pieces import CHARS_MAX as CHARS_READ
from vmstore.vm.recall.text_pieces import PieceKind, TextPiece, bounded, pieces, readable
from vmstore.vm.recall.topics import profile, topics

SHARE = 3  # a summary takes a third of its text,
CHARS_MAX = 8_000  # and no more than this
CHARS_MIN = 160  # a third of a short text holds no sentence; it may take this much, up to two thirds
POINTS_MAX = 7
POINTS_SHARE = 10
POINTS_SCORE = 5  # what is five times less central than the best is no key point
POINTS_CHARS = (150, 1_200)
POINT_CHARS_MAX = 180
TOPICS_CHARS_MAX = 120
CODE_NAMES_MAX = 8
CODE_CHARS_MAX = 400  # a longer block of code is named
GAP = "[…]"
TERMS_ENOUGH = 6  # a sentence of fewer terms counts for less
HOLDERS_MAX = 50  # what stands in more sentences than that is no more central


class RankedPiece(NamedTuple):
    """A piece of a text as it may stand in a summary, and how central it is."""

    piece: TextPiece
    text: str
    terms: tuple[str, ...]
    score: int


def summary(material: Material) -> Form | NoForm:
    """Level 1: the central sentences in their order, `[…]` where something is left out."""
    text = _read(material)
    if isinstance(text, NoForm):
        return text
    if (value := data.container(text)) is not None:
        return data.samples_of(value, len(text))
    room = min(max(len(text) // SHARE, min(CHARS_MIN, 2 * len(text) // 3)), CHARS_MAX)
    if code.is_printed(text):
        return code.kept(text, room)
    ranked = _ranked(text)
    if _mostly_code(ranked, len(text)):
        return code.kept(text, room)
    chosen = _chosen(ranked, room)
    return text_form(_joined(ranked, chosen), Method.SENTENCES) if chosen else NO_SHORTER


def key_points(material: Material) -> Form | NoForm:
    """Level 2: the few most central sentences as a list; a long one ends in `…` after a whole word."""
    text = _read(material)
    if isinstance(text, NoForm):
        return text
    if (value := data.container(text)) is not None:
        return data.schema_of(value)
    least, most = POINTS_CHARS
    room = min(max(len(text) // POINTS_SHARE, least), most)
    if code.is_printed(text):
        return code.kept(text, room)
    ranked = _ranked(text)
    if _mostly_code(ranked, len(text)):
        return code.kept(text, room)
    points = [
        piece._replace(text=_shortened(" ".join(piece.text.split()))) for piece in ranked if _can_be_a_point(piece)
    ]
    best = max((piece.score for piece in points), default=0)
    points = [piece for piece in points if piece.score * POINTS_SCORE >= best]
    chosen = _chosen(points, room, POINTS_MAX)
    listed = "\n".join("- " + _ITEM_SIGN.sub("", points[at].text) for at in chosen)
    return text_form(listed, Method.KEY_POINTS) if chosen else NO_SHORTER


def tags(material: Material) -> Form | NoForm:
    """Level 3: the topics and the length, in one line; of what is no text a reference."""
    text = readable(material.content)
    if not material.content:
        return NoForm(NoFormReason.EMPTY, "the page has no content")
    if text is None:
        return reference(material, "no UTF-8")
    if (value := data.container(text)) is not None:
        return data.reference_of(value, len(text))
    named = list(topics(text))
    while named and len(", ".join(named)) > TOPICS_CHARS_MAX:
        named.pop()
    size = f"{len(text):,} characters"
    return text_form(f"[{', '.join(named)}; {size}]" if named else f"[{size}]", Method.TOPICS)


def _read(material: Material) -> str | NoForm:
    if not material.content:
        return NoForm(NoFormReason.EMPTY, "the page has no content")
    text = readable(material.content)
    return NoForm(NoFormReason.NO_TEXT, "the bytes are no UTF-8") if text is None else text


def _ranked(text: str) -> list[RankedPiece]:
    """The pieces of a text in order, each with its score; of a long text those of its beginning and its end."""
    head, tail = bounded(text)
    found = pieces(head)
    if tail:
        below = found[-1].line + 2 if found else 0
        found += [piece._replace(line=piece.line + below) for piece in pieces(tail)]
    shown = [_named(piece) for piece in found]
    terms = [tuple(profile(one).weights) for one in shown]
    degrees = _degrees(terms)
    ranked = []
    for at, (piece, words) in enumerate(zip(found, terms, strict=True)):
        # "Wow, Caroline!" shares all its words with the others and says nothing.
        term_count = min(len(words), TERMS_ENOUGH)
        score = degrees[at] * term_count // TERMS_ENOUGH * _EXACT_WEIGHT[_EXACT.search(shown[at]) is not None] // 4
        if at == 0 or at == len(found) - 1 or found[at - 1].kind is PieceKind.HEADING:
            score = score * 3 // 2  # texts open with what they are about and close with what follows from it
        ranked.append(RankedPiece(piece, shown[at], words, score))
    return ranked


def _degrees(terms: Sequence[tuple[str, ...]]) -> list[int]:
    """For each piece, the terms shared with all others over the square root of its own, times a thousand."""
    holders: dict[str, int] = {}
    for words in terms:
        for word in words:
            holders[word] = holders.get(word, 0) + 1
    degrees = []
    for words in terms:
        shared = sum(min(holders[word] - 1, HOLDERS_MAX) for word in words)
        degrees.append((1_000 * shared + 100 * len(words)) // (1 + isqrt(4 * len(words))))
    return degrees


def _chosen(ranked: Sequence[RankedPiece], room: int, count_max: int = 1_000_000) -> list[int]:
    """The best pieces that fit together into so many characters, in their order; none says what another did."""
    chosen: list[int] = []
    seen: set[str] = set()
    order = sorted(range(len(ranked)), key=lambda at: (-ranked[at].score, at))
    for at in order:
        piece = ranked[at]
        cost = len(piece.text) + len(GAP) + 2
        news = sum(word not in seen for word in piece.terms)
        if cost > room or not piece.terms or news * 4 < len(piece.terms):
            continue
        room -= cost
        seen.update(piece.terms)
        chosen.append(at)
        if len(chosen) == count_max:
            break
    return sorted(chosen)


def _joined(ranked: Sequence[RankedPiece], chosen: Sequence[int]) -> str:
    """The chosen pieces as they stood: in one line where they were in one, a mark where pieces are missing."""
    parts: list[str] = []
    before = -1
    for at in chosen:
        same_line = before >= 0 and ranked[before].piece.line == ranked[at].piece.line
        between = " " if same_line else "\n"
        if at != before + 1:
            parts.append((between if parts else "") + GAP)
        parts.append((between if parts else "") + ranked[at].text)
        before = at
    if before != len(ranked) - 1:
        parts.append(" " + GAP)
    return "".join(parts)


def _named(piece: TextPiece) -> str:
    """A piece as a summary shows it: a long block of code by its length and the names it defines."""
    if piece.kind is not PieceKind.CODE:
        return piece.text
    count = piece.text.count("\n") + 1
    if len(piece.text) <= CODE_CHARS_MAX:
        return piece.text
    names = code.names(piece.text)
    more = f", {len(names) - CODE_NAMES_MAX} more" if len(names) > CODE_NAMES_MAX else ""
    named = f": {', '.join(names[:CODE_NAMES_MAX])}{more}" if names else ""
    return f"[code, {count:,} lines{named}]"


def _mostly_code(ranked: Sequence[RankedPiece], chars: int) -> bool:
    """Whether so little stands beside the code that a summary of it would say nothing."""
    pieces = [
        one.piece
        for one in ranked
        if one.piece.kind is PieceKind.CODE and not one.piece.text.startswith(("```", "~~~"))
    ]
    return sum(len(piece.text) for piece in pieces) * 5 > 3 * min(chars, CHARS_READ)


def _can_be_a_point(piece: RankedPiece) -> bool:
    """Headings say nothing alone, and lines of code joined to one would be another program."""
    return piece.piece.kind is not PieceKind.HEADING and not (piece.piece.kind is PieceKind.CODE and "\n" in piece.text)


def _shortened(text: str) -> str:
    """A text cut after a whole word where it is too long for a point; what has no spaces there is not cut."""
    if len(text) <= POINT_CHARS_MAX:
        return text
    end = text.rfind(" ", POINT_CHARS_MAX // 2, POINT_CHARS_MAX)
    return text if end < 0 else text[:end].rstrip(",;:–-") + " …"


# A sentence with a number, a path, a name in code or a quotation tells what cannot be guessed again.
_EXACT = re.compile(r"\d|\w/\w|\w\.\w|\w_\w|`|[\"“«]|[a-z][A-Z]")
_EXACT_WEIGHT = {True: 5, False: 4}
_ITEM_SIGN = re.compile(r"^(?:[-*+•]|\d{1,3}[.)])\s+")
