"""Finds secrets and personal data in a text: a literal first, which costs little, then what must stand around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from vmstore.redact.anchors import Anchors, AnchorWords, KeyPrefixes
from vmstore.redact.assignments import NAMES
from vmstore.redact.forms import FORMS
from vmstore.redact.headers import COOKIES, HEADERS
from vmstore.redact.personal_data import MAIL, MAIL_ELSE, SCANS
from vmstore.redact.span import SURENESS, USUAL, Literal, ScannedText, SecretKind, SecretSpan, TextScan, small
from vmstore.redact.vendor_keys import ANYWHERE, BLOCKS, KEYS

_MARKS = re.compile(r"<(/?)private>", re.IGNORECASE)


def _private(text: str) -> Iterator[SecretSpan]:
    """Blocks that somebody marked, their marks included.

    One that is never closed extends to the end where it begins a line; within one, where the mark
    may only be spoken of, to the end of that line.
    """
    start = -1
    for mark in _MARKS.finditer(text):
        if mark[1] and start >= 0:
            yield SecretSpan(start, mark.end(), SecretKind.PRIVATE)
            start = -1
        elif not mark[1] and start < 0:
            start = mark.start()
    if start >= 0:
        begins = text[text.rfind("\n", 0, start) + 1 : start].strip() == ""
        line = -1 if begins else text.find("\n", start)
        yield SecretSpan(start, len(text) if line < 0 else line, SecretKind.PRIVATE)


LOW: tuple[Literal | TextScan, ...] = (*BLOCKS, *NAMES, *HEADERS, *FORMS, MAIL, *MAIL_ELSE, *COOKIES)
"""All that is looked for where a literal in small letters stands."""


class SearchRules(NamedTuple):
    """Rules to apply where a literal occurs: at its places, and in the whole text."""

    literal: str
    at: tuple[Callable[[ScannedText, int], SecretSpan | None], ...]
    scans: tuple[Callable[[ScannedText], Iterator[SecretSpan]], ...] = ()


def _rules(low: Iterable[Literal | TextScan]) -> tuple[SearchRules, ...]:
    """Rules by their literals."""
    found: dict[str, tuple[list[Any], list[Any]]] = {}
    for rule in low:
        if isinstance(rule, Literal):
            found.setdefault(rule.literal, ([], []))[0].append(rule.at)
        else:
            for literal in rule.needs:
                found.setdefault(literal, ([], []))[1].append(rule.scan)
    return tuple(SearchRules(literal, tuple(at), tuple(scans)) for literal, (at, scans) in found.items())


_LOW = _rules(LOW)
_ANCHORS = Anchors([rules.literal for rules in _LOW])
_COMMON = ("pass", "key", "secret", "token", "auth", "cred", "code", "login", "pw")
_INNER = {
    one.literal: inner for one in _LOW for inner in _COMMON if inner in one.literal and inner != one.literal
}  # of literals that hold one that is looked for anyway, that one
_KEYS = {rules.literal: rules for rules in _rules(KEYS)}
_HEADS = KeyPrefixes((one for one in _KEYS if one not in ANYWHERE), (one for one in _KEYS if one in ANYWHERE))


def spans(text: str, kinds: Collection[SecretKind] = USUAL) -> list[SecretSpan]:
    """The stretches of a text that are secret or say who somebody is, in order, none in another."""
    both, words = small(text), AnchorWords(text)
    found: list[SecretSpan] = []
    for head in _HEADS.within(words):
        found += _at(both, _KEYS[head], _places(text, head, {}))
    known: dict[str, list[int]] = {}
    for number in _ANCHORS.within(words):
        rules = _LOW[number]
        found += _at(both, rules, _places(both.low, rules.literal, known))
    if "<private>" in both.low:
        found += _private(text)
    for scan in SCANS:
        if not scan.kinds.isdisjoint(kinds):
            found += scan.scan(both)
    return apart(span for span in found if span.kind in kinds) if found else found


def _places(where: str, literal: str, known: dict[str, list[int]]) -> list[int]:
    """Places of a literal; one that contains another is searched at that one's places."""
    found = known.get(literal)
    if found is None:
        inner = _INNER.get(literal)
        if inner is not None:
            before = literal.index(inner)
            listed = [place - before for place in _places(where, inner, known) if place >= before]
            found = [place for place in listed if where.startswith(literal, place)]
        else:
            found, place = [], where.find(literal)
            while place >= 0:
                found.append(place)
                place = where.find(literal, place + len(literal))
        known[literal] = found
    return found


def _at(both: ScannedText, rules: SearchRules, places: list[int]) -> list[SecretSpan]:
    """Findings at the places of a literal."""
    found: list[SecretSpan] = []
    if places:
        for scan in rules.scans:
            found += scan(both)
    for at in rules.at:
        done = 0
        for place in places:
            if place >= done and (span := at(both, place)) is not None:
                found.append(span)
                done = span.end  # what was found is not looked at again: it may be long, and be full of the literal
    return found


def apart(found: Iterator[SecretSpan]) -> list[SecretSpan]:
    """Spans that do not touch: where some overlap, all they cover together, as the surest of them."""
    kept: list[SecretSpan] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end, SURENESS[span.kind])):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
            continue
        last = kept[-1]
        surest = min(last.kind, span.kind, key=SURENESS.__getitem__)
        kept[-1] = SecretSpan(last.start, max(last.end, span.end), surest)
    return kept
