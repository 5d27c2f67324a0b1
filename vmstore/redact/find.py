"""Finds secrets and personal data in a text: a literal first, which costs little, then what must stand around it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from vmstore.redact.keys import KEYS
from vmstore.redact.named import NAMED
from vmstore.redact.people import MAIL, SCANS
from vmstore.redact.span import SURENESS, USUAL, Kind, Literal, Span, Text, small

_OPENS, _CLOSES = "<private>", "</private>"


def _private(text: Text, place: int) -> Span:
    """A block that somebody marked, its marks included.

    One that is never closed goes on to the end where it begins a line; within one, where the mark
    may only be spoken of, to the end of that line.
    """
    close = text.low.find(_CLOSES, place)
    if close >= 0:
        return Span(place, close + len(_CLOSES), Kind.PRIVATE)
    line = -1 if text.low[max(place - 1, 0) : place].strip(" \t") == "" else text.low.find("\n", place)
    return Span(place, len(text.text) if line < 0 else line, Kind.PRIVATE)


LITERALS: tuple[Literal, ...] = (Literal(_OPENS, _private, low=True), *KEYS, *NAMED, MAIL)


def spans(text: str, kinds: Collection[Kind] = USUAL) -> list[Span]:
    """The stretches of a text that are secret or say who somebody is, in order, none in another."""
    both = small(text)
    found: list[Span] = []
    for literal in LITERALS:
        found += _at_places(both, literal)
    for scan in SCANS:
        if not scan.kinds.isdisjoint(kinds):
            found += scan.scan(text)
    return apart(span for span in found if span.kind in kinds)


def _at_places(both: Text, literal: Literal) -> Iterator[Span]:
    text = both.low if literal.low else both.text
    step = len(literal.literal)
    place = text.find(literal.literal)
    while place >= 0:
        found = literal.at(both, place)
        if found is not None:
            yield found
        # What was found is not looked at again: it may be long, and be full of the literal.
        place = text.find(literal.literal, max(place + step, found.end if found is not None else 0))


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
