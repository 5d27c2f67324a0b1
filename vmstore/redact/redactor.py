"""Removes secrets from what a session records: masked or refused before it is written.

A door is of one session. It gives each value a number and keeps it as long as it lives; the values
stay in memory. A process that opens the session later finds the numbers again where the same text comes
again, and gives others the next free number: see `again`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from vmstore.core.redaction import HiddenKind, Redaction
from vmstore.errors import RefusedError
from vmstore.redact.mask import Mask, same
from vmstore.redact.span import SecretKind, SecretSpan

SEEN_MAX = 200_000  # texts whose masked form is remembered
KEPT_CHARS_MAX = 64  # of a text that stands for itself among them
LEAST_CHARS = 6  # nothing shorter is secret
_PLACEHOLDER = re.compile(r"\[([A-Z_]+) (\d{1,9})\]")


class MaskedPart(NamedTuple):
    """Placeholders in a text: the count of each, and the number of characters the text lost."""

    found: tuple[tuple[int, int, int], ...]
    chars: int

    @property
    def times(self) -> int:
        """How many placeholders."""
        return sum(times for *_, times in self.found)


class Redactor(Mask):
    """Masks or refuses secrets in what a session records; a value keeps its number throughout."""

    def __init__(self, policy: Redaction) -> None:
        super().__init__()
        self.policy = policy
        self.position = 0  # of the session, up to which its numbers are known
        self._highest: Counter[SecretKind] = Counter()
        self._longer: dict[tuple[SecretKind, int], int] = {}  # by how many characters each value is longer
        self._seen: dict[str | bytes, str] = {}
        self._templates: dict[str, list[list[int]]] = {}
        self._new: list[tuple[SecretKind, str]] = []  # values numbered, and texts seen, since the last time it settled
        self._new_seen: list[str | bytes] = []

    # ---- texts and values

    def text(self, text: str, where: str) -> str:
        """A text with placeholders; RefusedError, which names no value, where the session refuses such."""
        return text if self.unreadable(text) else self._cached(text, where, super().text)

    def _json(self, text: str, where: str) -> str:
        return self._cached(text, where, super()._json)

    def _cached(self, text: str, where: str, make: Callable[[str, str], str]) -> str:
        """A text as it was masked before, though more may be known by now: it stands in the log so."""
        if len(text) < LEAST_CHARS:
            return text
        key: str | bytes = text
        if len(text) > KEPT_CHARS_MAX:
            key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= SEEN_MAX:
                self._seen.clear()
            made = make(text, where)
            known = self._seen[key] = made if made != text else ""
            self._new_seen.append(key)
        return known or text

    def content(self, content: bytes, where: str) -> bytes:
        """Bytes with placeholders where they are a text, or JSON; others, as images, cannot be read and stay."""
        masked = self.bytes(content, where)
        return content if masked is None else masked

    def clean(self, text: str, what: str) -> None:
        """RefusedError where a name holds something to be hidden: by its placeholder nobody would find it."""
        found = self.found(text)
        if found:
            raise RefusedError(
                f"{what} {_holds(found)}, and this session is not to hold such; give another one",
                code="hides-in-a-name",
            )

    def _inner(self, where: str, part: Any) -> str:
        return f"{where}[{part}]" if isinstance(part, int) else f"{where}.{part}"

    def _place(self, text: str, found: list[SecretSpan], where: str) -> str:
        if found and self.policy is Redaction.REFUSE:
            raise RefusedError(
                f"{where} {_holds(found)}, and the session refuses that (redaction = refuse): nothing was written; "
                "take it out, or let the session mask such with redaction='mask'",
                code="hides-in-a-content",
            )
        if found and self._templates:
            self._recognise(text, found)
        return super()._place(text, found, where)

    def _number(self, value: str, kind: SecretKind) -> int:
        known, canonical = self._numbers.setdefault(kind, {}), same(value, kind)
        number = known.get(canonical)
        if number is None:
            self._highest[kind] += 1
            number = known[canonical] = self._highest[kind]
            self._new.append((kind, canonical))
        self._longer[kind, number] = len(value) - len(f"[{kind.name} {number}]")
        return number

    # ---- commits

    def settle(self, position: int) -> None:
        """Everything masked so far is in the log, up to a position."""
        self.position = position
        self._new, self._new_seen = [], []

    def forget(self) -> None:
        """Releases the placeholder numbers of a batch that was not written."""
        for kind, canonical in reversed(self._new):
            if self._numbers[kind].pop(canonical, 0) == self._highest[kind]:
                self._highest[kind] -= 1
            self._echoes.pop(canonical, None)
        for key in self._new_seen:
            self._seen.pop(key, None)
        self._new, self._new_seen = [], []

    # ---- what was masked before

    def used(self, kind: int, number: int) -> None:
        """A number that stands in the log."""
        if HiddenKind(kind).name in SecretKind.__members__:
            secret_kind = SecretKind[HiddenKind(kind).name]
            self._highest[secret_kind] = max(self._highest[secret_kind], number)

    def again(self, contents: Iterable[bytes]) -> None:
        """Contents that were masked, in order: a text that differs from one by its values alone has its numbers.

        Until `recognised`: who sends a conversation again sends what it held first.
        """
        for content in contents:
            for text in _texts(content):
                if numbers := [
                    int(found[2]) for found in _PLACEHOLDER.finditer(text) if found[1] in SecretKind.__members__
                ]:
                    self._templates.setdefault(_template(text), []).append(numbers)

    def recognised(self) -> None:
        """From here on nothing is taken for what was masked before."""
        self._templates.clear()

    def _recognise(self, text: str, found: list[SecretSpan]) -> None:
        parts: list[str] = []
        done = 0
        for span in found:
            parts += (text[done : span.start], f"[{span.kind.name} 0]")
            done = span.end
        template = self._templates.get(_template("".join((*parts, text[done:]))))
        if not template:
            return
        numbers = template.pop(0) if len(template) > 1 else template[0]
        placed = _slots(numbers, text, found)
        taken = {(kind, n) for kind, known in self._numbers.items() for n in known.values()}
        for span, number in zip(found, placed, strict=False):
            known = self._numbers.setdefault(span.kind, {})
            value = same(text[span.start : span.end], span.kind)
            if value not in known and (span.kind, number) not in taken and number <= self._highest[span.kind]:
                known[value] = number

    # ---- the record

    def masked(self, content: bytes) -> MaskedPart | None:
        """The placeholders of this session in a content; None where there are none."""
        if b"[" not in content:
            return None
        counts: Counter[tuple[SecretKind, int]] = Counter()
        for name, digits in _PLACEHOLDER.findall(content.decode("utf-8", "replace")):
            kind = SecretKind.__members__.get(name)
            if kind is not None and 0 < int(digits) <= self._highest[kind]:
                counts[kind, int(digits)] += 1
        if not counts:
            return None
        found = tuple(sorted((int(HiddenKind[kind.name]), number, times) for (kind, number), times in counts.items()))
        return MaskedPart(found, sum(self._longer.get(counted, 0) * times for counted, times in counts.items()))


def _slots(numbers: list[int], text: str, found: list[SecretSpan]) -> list[int]:
    """The numbers of a masked text's placeholders that stand for the values found in the text as it is."""
    before = [match.start() for match in _PLACEHOLDER.finditer(text) if match[1] in SecretKind.__members__]
    marks = sorted([(start, False) for start in before] + [(span.start, True) for span in found])
    return [number for (_, wanted), number in zip(marks, numbers, strict=False) if wanted]


def _template(text: str) -> str:
    return _PLACEHOLDER.sub(r"[\1 0]", text)


def _texts(content: bytes) -> list[str]:
    """The texts in a content: its own, or those of the JSON it is."""
    decoded = content.decode("utf-8", "replace")
    try:
        value = json.loads(decoded) if decoded[:1] in ("{", "[", '"') else decoded
    except (ValueError, RecursionError):
        value = decoded
    found: list[str] = []
    waiting = [value]
    while waiting:
        waiting_value = waiting.pop()
        if isinstance(waiting_value, str):
            found.append(waiting_value)
        elif isinstance(waiting_value, list):
            waiting += reversed(waiting_value)
        elif isinstance(waiting_value, dict):
            waiting += [part for pair in reversed(waiting_value.items()) for part in reversed(pair)]
    return found


def _holds(found: Iterable[SecretSpan]) -> str:
    counts = Counter(span.kind for span in found)
    listed = ", ".join(f"{count} of kind {kind.value}" for kind, count in sorted(counts.items()))
    return f"holds what is to be hidden ({listed})"
