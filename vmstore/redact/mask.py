"""Shows texts without what is secret in them: placeholders in its place, and a record of what was masked.

A mask is of one document, as an export: the same value has the same placeholder all through it, and
a secret that was found once is masked wherever it stands, with or without what gave it away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from vmstore.redact.find import apart, spans
from vmstore.redact.named import named
from vmstore.redact.span import USUAL, Kind, Span

ECHOES = frozenset((Kind.PASSWORD, Kind.SECRET, Kind.API_KEY, Kind.AUTHORIZATION))
"""Kinds whose values are looked for everywhere."""
ECHO_CHARS_MIN = 6
WORD_CHARS_MIN = 12  # what is letters or digits alone, and shorter, may be a word of other texts
_NUMBERS = frozenset((Kind.PHONE, Kind.CARD, Kind.SSN, Kind.IBAN))


class Masked(NamedTuple):
    """A value that was masked: what it was, the number of its placeholder, how often it stood where."""

    kind: Kind
    number: int
    times: int
    where: dict[str, int]


class Mask:
    """What was masked in one document. `learn` of all its texts first finds what only one of them gives away."""

    def __init__(self, kinds: Collection[Kind] = USUAL) -> None:
        self.kinds = frozenset(kinds)
        self._numbers: dict[Kind, dict[str, int]] = {}
        self._places: dict[tuple[Kind, int], Counter[str]] = {}
        self._echoes: dict[str, Kind] = {}
        self._echo: re.Pattern[str] | None = None
        self._looked: dict[str, list[Span]] = {}  # what was found in texts that were learnt

    def learn(self, text: str) -> None:
        """Remembers the secrets of a text, so that they are masked in every other."""
        if text not in self._looked:
            self._looked[text] = self._spans(text)

    def text(self, text: str, where: str) -> str:
        """A text with placeholders; `where` is what the record calls it."""
        parts: list[str] = []
        done = 0
        for span in self._found(text):
            parts += (text[done : span.start], self._placeholder(text[span.start : span.end], span.kind, where))
            done = span.end
        return "".join((*parts, text[done:])) if parts else text

    def value(self, value: Any, where: str) -> Any:
        """JSON with placeholders in its texts, and for fields whose name says that they are secret."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, list):
            return [self.value(one, where) for one in value]
        if isinstance(value, dict):
            return {self.text(key, where): self._field(key, one, where) for key, one in value.items()}
        return value

    def _field(self, key: str, value: Any, where: str) -> Any:
        kind = named(key, value) if isinstance(value, str) else None
        if kind is None or kind not in self.kinds or _IS_PLACEHOLDER.match(value):
            return self.value(value, where)
        return self._placeholder(value, kind, where)

    def _found(self, text: str) -> list[Span]:
        found = self._looked[text] if text in self._looked else self._spans(text)
        if self._echoes:
            if self._echo is None:
                listed = sorted(self._echoes, key=len, reverse=True)
                self._echo = re.compile("|".join(map(_whole, listed)))
            echoes = [Span(*one.span(), self._echoes[one[0]]) for one in self._echo.finditer(text)]
            found = apart(iter((*found, *echoes)))
        return found

    def _spans(self, text: str) -> list[Span]:
        found = spans(text, self.kinds)
        for span in found:
            self._remember(text[span.start : span.end], span.kind)
        return found

    def _remember(self, value: str, kind: Kind) -> None:
        if kind in ECHOES and value not in self._echoes and _is_known_by_itself(value):
            self._echoes[value] = kind
            self._echo = None

    def _placeholder(self, value: str, kind: Kind, where: str) -> str:
        known = self._numbers.setdefault(kind, {})
        number = known.setdefault(_same(value, kind), len(known) + 1)
        self._places.setdefault((kind, number), Counter())[where] += 1
        return f"[{kind.name} {number}]"

    @property
    def record(self) -> list[Masked]:
        """What was masked, by kind and number; never a value."""
        return [
            Masked(kind, number, places.total(), dict(places))
            for (kind, number), places in sorted(self._places.items())
        ]

    @property
    def counts(self) -> dict[str, int]:
        """How often something of each kind was masked."""
        found: Counter[str] = Counter()
        for (kind, _), places in sorted(self._places.items()):
            found[kind.value] += places.total()
        return dict(found)


_IS_PLACEHOLDER = re.compile(r"\[[A-Z_]+ \d+\]\Z")


def _is_known_by_itself(value: str) -> bool:
    """Whether a secret would not be taken for a word."""
    made = not value.isalpha() and not value.isdigit()
    return len(value) >= (ECHO_CHARS_MIN if made else WORD_CHARS_MIN)


def _whole(value: str) -> str:
    """A value where it is not part of a longer word."""
    before = r"(?<!\w)" if value[0].isalnum() else ""
    after = r"(?!\w)" if value[-1].isalnum() else ""
    return f"{before}{re.escape(value)}{after}"


def _same(value: str, kind: Kind) -> str:
    """A value as it is compared: numbers without their signs between, addresses in small letters."""
    if kind in _NUMBERS:
        return re.sub(r"[^0-9A-Z]", "", value)
    return value.lower() if kind is Kind.EMAIL else value
