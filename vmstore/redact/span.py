"""What is found in a text: a kind of secret or of personal data, and the stretch it takes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple


class Kind(enum.StrEnum):
    """What is masked, from the surest to the least sure: where two claim a stretch, the first one names it."""

    PRIVATE = enum.auto()  # a <private> block
    PRIVATE_KEY = enum.auto()  # a PEM block
    JWT = enum.auto()
    API_KEY = enum.auto()  # known by its vendor's prefix
    AUTHORIZATION = enum.auto()  # what a header carries
    PASSWORD = enum.auto()  # of a name that says so, or of an address
    SECRET = enum.auto()  # of a name that says so
    IBAN = enum.auto()
    CARD = enum.auto()
    SSN = enum.auto()  # of social security, tax or identity: the number by which a state knows somebody
    EMAIL = enum.auto()
    PHONE = enum.auto()
    IP = enum.auto()


SURENESS = {kind: rank for rank, kind in enumerate(Kind)}
USUAL = frozenset(Kind) - {Kind.IP}
"""What is looked for unless somebody says otherwise: addresses of machines are found in every log."""


class Span(NamedTuple):
    """A stretch of a text, from character `start` up to, not including, `end`, and what it is."""

    start: int
    end: int
    kind: Kind


class Text(NamedTuple):
    """A text, the same in small letters, character for character, and its words, each once."""

    text: str
    low: str
    long: bytes  # those long enough to hold a key, as they are written
    words: bytes  # all of them, in small letters
    foreign: str  # those with other letters than ASCII's, in small ones

    def has(self, literal: str, *, low: bool = True) -> bool:
        """Whether a literal can stand in the text: whether its longest word does, not `low` in a long one."""
        if not literal.isascii():
            return max(literal.split(), key=len) in self.foreign
        return _longest(literal) in (self.words if low else self.long)


class Literal(NamedTuple):
    """Looks at the places of a literal and nowhere else: `at` says what stands there, if anything."""

    literal: str
    at: Callable[[Text, int], Span | None]
    low: bool = False  # whether it is looked for in small letters


class Scan(NamedTuple):
    """Looks at a whole text: for what has no literal, as numbers, or for many values behind one literal."""

    kinds: frozenset[Kind]
    scan: Callable[[Text], Iterator[Span]]
    needs: tuple[str, ...] = ()  # literals in small letters: without one of them there is nothing to look for


KEY_CHARS_MIN = 20
"""No key is shorter, what gives it away included."""
_SIGNS = bytes(one for one in range(128) if not (chr(one).isalnum() or chr(one) in "_-./+=:~%$@"))
_APART = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))


def small(text: str) -> Text:
    """A text beside itself in small letters; the one letter that would become two is taken for another."""
    words = set(text.encode("utf-8", "surrogatepass").translate(_APART).split())
    long = b"\n".join([word for word in words if len(word) >= KEY_CHARS_MIN])
    foreign = b"\n".join([word for word in words if not word.isascii()]).decode("utf-8", "surrogatepass").lower()
    return Text(text, text.replace("\u0130", "I").lower(), long, b"\n".join(words).lower(), foreign)


@cache
def _longest(literal: str) -> bytes:
    return max(literal.encode().translate(_APART).split(), key=len, default=b"")
