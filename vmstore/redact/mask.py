"""Shows texts without what is secret in them: placeholders in its place, and a record of what was masked.

A mask is of one document, as an export: the same value has the same placeholder all through it, and
a secret that was found once is masked wherever it stands, with or without what gave it away.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection
from itertools import count
from typing import Any, NamedTuple

from vmstore.redact.assignments import named
from vmstore.redact.find import apart, spans
from vmstore.redact.span import USUAL, SecretKind, SecretSpan

ECHOES = frozenset((SecretKind.PASSWORD, SecretKind.SECRET, SecretKind.API_KEY, SecretKind.AUTHORIZATION))
"""Kinds whose values are looked for everywhere."""
ECHO_CHARS_MIN = 6
WORD_CHARS_MIN = 12  # what is letters or digits alone, and shorter, may be a word of other texts
NUMBER_MIN = 10**8  # numbers below have too few digits to be anybody's
JSON_CHARS_MAX = 4 << 20  # longer texts are looked at as they are
BLOB_CHARS_MIN = 512  # no key is so long
_NUMBERS = frozenset((SecretKind.PHONE, SecretKind.CARD, SecretKind.SSN, SecretKind.IBAN))
_BLOB = re.compile(r"[A-Za-z0-9+/\r\n]+={0,2}\s*")
_DATA = re.compile(r"data:[\w.+/;=-]{0,100};base64,")


class MaskedValue(NamedTuple):
    """A value that was masked: what it was, the number of its placeholder, how often it stood where."""

    kind: SecretKind
    number: int
    times: int
    where: dict[str, int]


class Mask:
    """The masking of one document. Call `learn` with all its texts first: one of them may give values away."""

    def __init__(
        self, kinds: Collection[SecretKind] = USUAL, also: Callable[[str], list[SecretSpan]] | None = None
    ) -> None:
        self.kinds = frozenset(kinds)
        self._also = also  # another finder, asked after ours
        self._numbers: dict[SecretKind, dict[str, int]] = {}
        self._places: dict[tuple[SecretKind, int], Counter[str]] = {}
        self._echoes: dict[str, SecretKind] = {}
        self._looked: dict[str, list[SecretSpan]] = {}  # what was found in texts that were learnt

    def learn(self, text: str, *, keep: bool = True) -> None:
        """Remembers the secrets of a text, so that they are masked in every other.

        What was found is kept for when the text itself is masked, unless there is too much of it.
        """
        if text not in self._looked:
            found = self._spans(text)
            if keep:
                self._looked[text] = found

    def trust(self, other: Mask) -> None:
        """Masks everywhere what another mask found, as one that saw all texts before."""
        self._echoes |= other._echoes

    def bytes(self, content: bytes, where: str) -> bytes | None:
        """Bytes that are a text, with placeholders; None where they cannot be read, as those of an image."""
        try:
            text = content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None
        if self.unreadable(text):
            return None
        masked = self.value(text, where)
        return content if masked == text else str(masked).encode("utf-8", "surrogatepass")

    def unreadable(self, text: str) -> bool:
        """Whether a text is bytes written as letters, and no secret that is known is among them."""
        return is_blob(text) and not any(value in text for value in self._echoes)

    def text(self, text: str, where: str) -> str:
        """A text with placeholders; `where` is what the record calls it."""
        return self._place(text, self.found(text), where)

    def value(self, value: Any, where: str) -> Any:
        """JSON with placeholders in its texts, and for fields whose name says that they are secret.

        A text that is itself JSON, as the arguments of a tool, is looked into. Fields whose names
        become the same get a number.
        """
        if isinstance(value, str):
            return self._json(value, where) if value[:1] in ("{", "[") else self.text(value, where)
        if isinstance(value, list | tuple):
            return [self.value(item, self._inner(where, at)) for at, item in enumerate(value)]
        if isinstance(value, dict):
            masked_members: dict[Any, Any] = {}
            for key, item in value.items():
                name = self.text(key, where) if isinstance(key, str) else key
                inner = self._field(key, item, self._inner(where, name))
                masked_members[_free(name, masked_members) if name in masked_members else name] = inner
            return masked_members
        if type(value) is int and abs(value) >= NUMBER_MIN:  # of a card, an account or a person
            masked = self.text(str(value), where)
            return value if masked == str(value) else masked
        return value

    def found(self, text: str) -> list[SecretSpan]:
        """Values to hide in a text, including those that other texts gave away."""
        found = self._looked[text] if text in self._looked else self._spans(text)
        echoes = [
            SecretSpan(*match.span(), self._echoes[value])
            for value in self._echoes
            if value in text
            for match in re.finditer(_whole(value), text)
        ]
        return apart(iter((*found, *echoes))) if echoes else found

    def _json(self, text: str, where: str) -> str:
        """A text that may be JSON: as it was where nothing in it is masked."""
        try:
            document = json.loads(text, object_pairs_hook=_once) if len(text) <= JSON_CHARS_MAX else None
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict | list):
            return self.text(text, where)
        try:
            masked = self.value(document, where)
            return text if masked == document else json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:  # it is nested too deeply to be walked through
            return self.text(text, where)

    def _inner(self, where: str, part: Any) -> str:
        """The name of a value's part in the record."""
        return where

    def _field(self, key: Any, value: Any, where: str) -> Any:
        text = str(value) if type(value) is int else value
        kind = named(key, text) if isinstance(key, str) and isinstance(text, str) else None
        if kind is None or kind not in self.kinds or _IS_PLACEHOLDER.match(text):
            return self.value(value, where)
        found = self.found(text)
        if [span[:2] for span in found] == [(0, len(text))]:  # what it is by itself is surer than a name
            return self._place(text, found, where)
        self._remember(text, kind)
        return self._place(text, [SecretSpan(0, len(text), kind)], where)

    def _place(self, text: str, found: list[SecretSpan], where: str) -> str:
        """A text with placeholders where something was found."""
        parts: list[str] = []
        done = 0
        for span in found:
            value = text[span.start : span.end]
            number = self._number(value, span.kind)
            self._places.setdefault((span.kind, number), Counter())[where] += 1
            parts += (text[done : span.start], f"[{span.kind.name} {number}]")
            done = span.end
        return "".join((*parts, text[done:])) if parts else text

    def _number(self, value: str, kind: SecretKind) -> int:
        known = self._numbers.setdefault(kind, {})
        return known.setdefault(same(value, kind), len(known) + 1)

    def _spans(self, text: str) -> list[SecretSpan]:
        found = spans(text, self.kinds)
        if self._also is not None:
            ours = list(found)
            found = apart(iter((*ours, *(other for other in self._also(text) if not _touches(other, ours)))))
        for span in found:
            self._remember(text[span.start : span.end], span.kind)
        return found

    def _remember(self, value: str, kind: SecretKind) -> None:
        if kind in ECHOES and value not in self._echoes and _is_known_by_itself(value):
            self._echoes[value] = kind

    @property
    def record(self) -> list[MaskedValue]:
        """The masked values by kind and number; never the values themselves."""
        return [
            MaskedValue(kind, number, places.total(), dict(places))
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


def _touches(span: SecretSpan, others: Collection[SecretSpan]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)


def is_blob(text: str) -> bool:
    """Whether a text is bytes written as letters, as images are in messages: nothing can be read in it."""
    data = _DATA.match(text)
    if data is None and len(text) < BLOB_CHARS_MIN:
        return False
    return _BLOB.fullmatch(text, data.end() if data else 0) is not None


def _free(name: str, taken: Collection[str]) -> str:
    """A field's name that none has yet."""
    return next(new for n in count(2) if (new := f"{name} ({n})") not in taken)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError where it has a field twice, for then one of the values would not be seen."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a field is there twice")
    return members


def _is_known_by_itself(value: str) -> bool:
    """Whether a secret would not be taken for a word."""
    made = not value.isalpha() and not value.isdigit()
    return len(value) >= (ECHO_CHARS_MIN if made else WORD_CHARS_MIN)


def _whole(value: str) -> str:
    """A value where it is not part of a longer word."""
    before = r"(?<!\w)" if value[0].isalnum() else ""
    after = r"(?!\w)" if value[-1].isalnum() else ""
    return f"{before}{re.escape(value)}{after}"


def same(value: str, kind: SecretKind) -> str:
    """A value as it is compared: numbers without their signs between, addresses in small letters."""
    if kind in _NUMBERS:
        return re.sub(r"[^0-9A-Z]", "", value)
    return value.lower() if kind is SecretKind.EMAIL else value
