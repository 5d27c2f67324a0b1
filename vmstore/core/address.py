"""Addresses of pages: `vm://namespace/session/page@turn:42#level=2`, or any tail of that.

A name's own / @ # %, spaces and control characters stand percent-encoded, so every name has
exactly one printed form and `parse(str(reference)) == reference`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from vmstore.core.page import Level
from vmstore.core.text.suggest import ANY, suggest
from vmstore.errors import InputError, UnknownError

Name: TypeAlias = tuple[str, str, str]  # namespace, session, page

SCHEMES = ("vm://", "artifact://")
MOMENTS = ("turn", "call", "position")
NUMBER_MAX = 2**63 - 1
SHOWN_MAX = 120  # characters of a text that an error repeats
CANDIDATES_MAX = 5
NEAR_MAX = 10_000  # names compared for the nearest: a wrong name must not cost seconds

RESERVED = re.compile(r"[/@#%\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
STRAY = re.compile(r"%(?![0-9A-Fa-f]{2})|\s")
MOMENT = re.compile(r"(turn|call|position):([0-9]{1,19})", re.ASCII)
LEVEL = re.compile(r"level=([0-3]|full|reduced|abstract|reference)", re.ASCII)
PAGE = re.compile(r"p?([1-9][0-9]{0,18})", re.ASCII)

assert all(MOMENT.fullmatch(f"{word}:{NUMBER_MAX}") for word in MOMENTS), "every moment that is written can be read"
assert all(LEVEL.fullmatch(f"level={text}") for one in Level for text in (int(one), one.word)), "and every level"
assert PAGE.fullmatch(f"p{NUMBER_MAX}"), "and every page"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A page, as far as it was named: where it is, when it is asked of, how much of it."""

    namespace: str | None = None
    session: str | None = None
    page: str
    turn: int | None = None
    call: int | None = None
    position: int | None = None
    level: int | None = None

    def __post_init__(self) -> None:
        if self.namespace is not None and self.session is None:
            raise InputError(f"page {self.page!r}: a namespace without a session; name the session too")
        if "" in (self.namespace, self.session, self.page):
            raise InputError(f"page {self.page!r}: an empty name; leave the part out or name it")
        numbers = [(word, getattr(self, word)) for word in MOMENTS if getattr(self, word) is not None]
        if len(numbers) > 1:
            words = " and ".join(word for word, _ in numbers)
            raise InputError(f"page {self.page!r}: {words} are different moments; give one of them")
        for word, number in numbers:
            _check(f"page {self.page!r}: {word}", number, NUMBER_MAX)
        if self.level is not None:
            _check(f"page {self.page!r}: level", self.level, max(Level))

    def __str__(self) -> str:
        names = [name for name in (self.namespace, self.session, self.page) if name is not None]
        text = "/".join(map(_encode, names))
        if self.namespace is not None:
            text = SCHEMES[0] + text
        for word in MOMENTS:
            if (number := getattr(self, word)) is not None:
                text += f"@{word}:{number}"
        return text if self.level is None else f"{text}#level={self.level}"


def parse(text: str) -> Address:
    """The reference a text spells."""
    start = next((len(scheme) for scheme in SCHEMES if text.startswith(scheme)), 0)
    hash_at = text.find("#", start)
    moment_end = hash_at if hash_at >= 0 else len(text)
    moment_at = text.find("@", start, moment_end)
    path_end = moment_at if moment_at >= 0 else moment_end
    assert start <= path_end <= moment_end <= len(text), "the parts of an address stand in this order"
    *above, page = _names(text, start, path_end)
    return Address(
        namespace=above[-2] if len(above) > 1 else None,
        session=above[-1] if above else None,
        page=page,
        level=_level(text, hash_at + 1) if hash_at >= 0 else None,
        **_moment(text, moment_at + 1, moment_end) if moment_at >= 0 else {},
    )


def page_name(position: int) -> str:
    """The name of the page created at `position` of its session."""
    assert position >= 1, "positions are counted from 1"
    return f"p{position}"


def page_position(name: str) -> int | None:
    """The position a name like `p17` or `17` stands for, None for any other name."""
    found = PAGE.fullmatch(name)
    if found is None or int(found[1]) > NUMBER_MAX:
        return None
    position = int(found[1])
    assert position >= 1, "what `page_name` gives a name to is what a name stands for"
    return position


def resolve(reference: Address, known: Iterable[Name]) -> Name:
    """The one known name a reference is a tail of.

    A page listed under several names (its own and its hint) is found by each of them.
    """
    names = set(known)
    within = [name for name in names if _holds(reference, name)]
    matches = [name for name in within if name[2] == reference.page]
    position = page_position(reference.page)
    if not matches and position is not None:
        matches = [name for name in within if name[2] == page_name(position)]
    if len(matches) == 1:
        return matches[0]
    raise UnknownError(
        _ambiguous(reference, matches) if matches else _unknown(reference, names, within), code="no-such-name"
    )


def _holds(reference: Address, name: Name) -> bool:
    return reference.namespace in (None, name[0]) and reference.session in (None, name[1])


def _ambiguous(reference: Address, matches: list[Name]) -> str:
    shown = [str(Address(namespace=n, session=s, page=p)) for n, s, p in sorted(matches)[:CANDIDATES_MAX]]
    more = len(matches) - len(shown)
    rest = f" and {more} more" if more else ""
    return f"page {reference.page!r} could be any of {', '.join(shown)}{rest}; write one of them in full"


def _unknown(reference: Address, names: set[Name], within: list[Name]) -> str:
    if not names:
        return f"no page {reference.page!r}: there are no pages here; import or record a session first"
    if within:
        where = "" if reference.session is None else f" in session {reference.session!r}"
        nearest = _nearest_page(reference.page, {name[2] for name in within})
        return f"no page {reference.page!r}{where}; the nearest is {nearest!r}"
    sessions = {name[1] for name in names if reference.namespace in (None, name[0])}
    if not sessions:
        nearest = _nearest(str(reference.namespace), {name[0] for name in names})
        return f"no namespace {reference.namespace!r}; the nearest is {nearest!r}"
    return f"no session {reference.session!r}; the nearest is {_nearest(str(reference.session), sessions)!r}"


def _nearest_page(page: str, pages: set[str]) -> str:
    position = page_position(page)
    numbered = {at: name for name in pages if (at := page_position(name)) is not None}
    if position is None or not numbered:
        return _nearest(page, pages)
    return numbered[min(numbered, key=lambda at: (abs(at - position), at))]


def _nearest(word: str, words: set[str]) -> str:
    assert words, "the nearest is chosen from at least one word"
    some = sorted(words)[:NEAR_MAX]
    return str(suggest(word, some, ANY))


def _names(text: str, start: int, end: int) -> list[str]:
    names, place = [], start
    for segment in text[start:end].split("/"):
        if not segment:
            raise _refused(text, place, "a name is missing", "write page, session/page or vm://namespace/session/page")
        names.append(_decode(text, place, segment))
        place += len(segment) + 1
    assert place == end + 1, "an error is placed at the character where its name begins"
    if len(names) > 3:
        raise _refused(text, start, f"{len(names)} names where at most 3 fit", "write / inside a name as %2F")
    return names


def _moment(text: str, start: int, end: int) -> dict[str, int]:
    found = MOMENT.fullmatch(text, start, end)
    if found is None or int(found[2]) > NUMBER_MAX:
        raise _refused(text, start, "no moment", "write @turn:42, @call:7 or @position:99, or @ in a name as %40")
    return {found[1]: int(found[2])}


def _level(text: str, start: int) -> int:
    found = LEVEL.fullmatch(text, start)
    if found is None:
        raise _refused(text, start, "no level", "write #level=0 to #level=3, or # in a name as %23")
    return int(found[1]) if found[1].isdigit() else Level[found[1].upper()]


def _encode(name: str) -> str:
    return RESERVED.sub(lambda found: "".join(f"%{byte:02X}" for byte in _utf8(found[0])), name)


def _decode(text: str, place: int, segment: str) -> str:
    stray = STRAY.search(segment)
    if stray is not None:
        remedy = f"write it as {''.join(f'%{byte:02X}' for byte in _utf8(stray[0]))}"
        raise _refused(text, place + stray.start(), f"{stray[0]!r} cannot stand in a name", remedy)
    try:
        return ENCODED.sub(lambda found: _text(bytes.fromhex(found[0].replace("%", ""))), segment)
    except UnicodeDecodeError:
        raise _refused(
            text, place, "percent codes that are no UTF-8", "write each as the UTF-8 bytes of a character"
        ) from None


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _check(what: str, number: object, limit: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= limit:
        raise InputError(f"{what} {number!r} is not possible; pass a whole number from 0 to {limit}")


def _refused(text: str, place: int, why: str, remedy: str) -> InputError:
    shown = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"
    return InputError(f"reference {shown!r}, character {place + 1}: {why}; {remedy}", code="not-an-address")
