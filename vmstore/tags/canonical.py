"""Names of tags that mean the same: one spelling of each, other forms of a word, slips, short forms.

A form that differs by case, accents, signs or the plural is the same tag by itself. What may be a slip or a short
form is only suggested: an alias is said by somebody, and stands in the log.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

TAG_CHARS_MAX = 48
SLIP_CHARS = (5, 9)  # from so many letters on one slip is taken for one, from so many two
SHORT_CHARS = 4  # a short form has as many at most
LONG_CHARS = 6  # and what it stands for as many at least
SUGGESTED_MAX = 100
NAMES_MAX = 2_000  # of which pairs are looked at; those of the fewest pages are left out


_NO_PLURAL = frozenset(("news", "series", "species", "always", "perhaps", "canvas", "atlas"))


class SuggestedAlias(NamedTuple):
    """A name that may mean another, and what speaks for it: plural, slip or short form."""

    alias: str
    canonical: str
    why: str


@lru_cache(maxsize=1 << 14)
def spelled(name: str) -> str:
    """A tag in its one spelling: small letters and digits of any script, joined by hyphens; empty without any."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(sign if sign.isalnum() else " " for sign in plain if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", "-".join(kept.split()))[:TAG_CHARS_MAX].rstrip("-")


@lru_cache(maxsize=1 << 14)
def singular(name: str) -> str:
    """A spelled name with its last word in the singular, as English makes it."""
    head, joint, word = name.rpartition("-")
    if len(word) > 3 and word.isascii() and word not in _NO_PLURAL and not word.endswith(("ss", "us", "is", "ics")):
        if word.endswith("ies") and len(word) > 4:
            word = word[:-3] + "y"
        elif word.endswith(("ches", "shes", "sses", "xes", "zes")):
            word = word[:-2]
        elif word.endswith("s"):
            word = word[:-1]
    return head + joint + word


def known_as(name: str, known: Iterable[str], aliases: Mapping[str, str]) -> str:
    """The tag that a name is: what it counts as, else a known one that differs by its number, else its own spelling."""
    name = spelled(name)
    end = aliases.get(name)
    if end is not None:
        return end
    there = frozenset(known)
    if name in there:
        return name
    alone = singular(name)
    alike = next((other for other in sorted(there) if singular(other) == alone), None)
    return alone if alike is None else aliases.get(alike, alike)


def slips(one: str, other: str, most: int) -> int:
    """How many letters to add, leave out, change or swap make one word of the other; `most` and one where more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, before, row = before, row, [at]
        for to, sign in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != sign))
            if at > 1 < to and letter == other[to - 2] and one[at - 2] == sign:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def suggested(pages: Mapping[str, int], aliases: Mapping[str, str]) -> list[SuggestedAlias]:
    """Names that may mean the same, each with the one that more pages have; those that are aliases are left out."""
    ranked = sorted((name for name in pages if name not in aliases), key=lambda name: (-pages[name], name))[:NAMES_MAX]
    found: list[SuggestedAlias] = []
    taken: set[str] = set()
    for at, name in enumerate(ranked):
        for other in ranked[at + 1 :]:
            if other in taken:
                continue
            for alias, canonical in ((other, name), (name, other)):
                why = _why(alias, canonical)
                if why is not None and alias not in taken:
                    found.append(SuggestedAlias(alias, canonical, why))
                    taken.add(alias)
                    break
        if len(found) >= SUGGESTED_MAX:
            break
    return found[:SUGGESTED_MAX]


def _why(alias: str, canonical: str) -> str | None:
    """What speaks for one name meaning another."""
    short, long = spelled(alias), spelled(canonical)
    if not short or not long or alias == canonical:
        return None
    if singular(short) == singular(long):
        return "plural" if short != long else "spelling"
    if _digits(short) != _digits(long):
        return "short form" if _numbered(short, long) else None
    most = sum(len(short) >= letters for letters in SLIP_CHARS)
    if most and short[0] == long[0] and slips(short, long, most) <= most:
        return "slip"
    return "short form" if _shortened(short, long) else None


def _digits(name: str) -> str:
    return "".join(sign for sign in name if sign.isdigit())


def _numbered(short: str, long: str) -> bool:
    """Whether a name counts the letters it leaves out: k8s for kubernetes."""
    inner = short[1:-1]
    return inner.isdecimal() and len(long) == int(inner[:4]) + 2 and (short[0], short[-1]) == (long[0], long[-1])


def _shortened(short: str, long: str) -> bool:
    """Whether a short name is the beginning of a long one, its initials, or letters of it in their order: db."""
    if "-" in short or not short.isalpha() or len(long) < LONG_CHARS:
        return False
    if long.startswith(short) and 3 <= len(short) <= len(long) // 2 + 1:
        return "-" not in long
    parts = long.split("-")
    if len(parts) > 1:
        return short == "".join(part[0] for part in parts if part)
    if len(short) > SHORT_CHARS or short[0] != long[0] or set(short) & set("aeiou"):
        return False
    letters = iter(long)
    return all(letter in letters for letter in short)
