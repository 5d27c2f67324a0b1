"""Finds secrets and personal data in a text: a literal first, which costs little, then what must stand around it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from vmstore.redact.forms import SCANS as FORMS
from vmstore.redact.headers import COOKIES, HEADERS
from vmstore.redact.keys import BLOCKS, KEYS
from vmstore.redact.named import NAMES
from vmstore.redact.people import MAIL, MAIL_ELSE
from vmstore.redact.people import SCANS as PEOPLE
from vmstore.redact.span import SURENESS, USUAL, Kind, Literal, Span, Text, small

_MARKS = re.compile(r"<(/?)private>", re.IGNORECASE)


def _private(text: str) -> Iterator[Span]:
    """Blocks that somebody marked, their marks included.

    One that is never closed goes on to the end where it begins a line; within one, where the mark
    may only be spoken of, to the end of that line.
    """
    start = -1
    for mark in _MARKS.finditer(text):
        if mark[1] and start >= 0:
            yield Span(start, mark.end(), Kind.PRIVATE)
            start = -1
        elif not mark[1] and start < 0:
            start = mark.start()
    if start >= 0:
        begins = text[text.rfind("\n", 0, start) + 1 : start].strip() == ""
        line = -1 if begins else text.find("\n", start)
        yield Span(start, len(text) if line < 0 else line, Kind.PRIVATE)


LITERALS = (*KEYS, *BLOCKS, *NAMES, *HEADERS, MAIL, *MAIL_ELSE)
_SCANS = (*FORMS, COOKIES, *PEOPLE)


def spans(text: str, kinds: Collection[Kind] = USUAL) -> list[Span]:
    """The stretches of a text that are secret or say who somebody is, in order, none in another."""
    both = small(text)
    found: list[Span] = []
    for literal in LITERALS:
        if both.has(literal.literal, low=literal.low):
            found += _at_places(both, both.low if literal.low else text, literal)
    if "<private>" in both.low:
        found += _private(text)
    for scan in _SCANS:
        if not scan.kinds.isdisjoint(kinds) and (not scan.needs or any(both.has(one) for one in scan.needs)):
            found += scan.scan(both)
    return apart(span for span in found if span.kind in kinds) if found else found


def _at_places(both: Text, where: str, literal: Literal) -> Iterator[Span]:
    """What is found at the places of a literal."""
    step, place = len(literal.literal), where.find(literal.literal)
    while place >= 0:
        found = literal.at(both, place)
        if found is not None:
            yield found
        # What was found is not looked at again: it may be long, and be full of the literal.
        place = where.find(literal.literal, max(place + step, found.end if found is not None else 0))


def apart(found: Iterator[Span]) -> list[Span]:
    """Spans that do not touch: where some overlap, all they cover together, as the surest of them."""
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end, SURENESS[span.kind])):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
            continue
        last = kept[-1]
        surest = min(last.kind, span.kind, key=SURENESS.__getitem__)
        kept[-1] = Span(last.start, max(last.end, span.end), surest)
    return kept
