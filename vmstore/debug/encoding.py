"""Answers as JSON bytes, whatever texts are in them, masked where they are to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from vmstore.redact.mask import Mask

Redact = Callable[[Any], Any]
"""Masks what nobody else shall see in the texts of a value."""


def encoded(value: Any, redact: Redact | None = None) -> bytes:
    """A value as JSON in UTF-8; lone surrogates, which no UTF-8 holds, are written as escapes."""
    if redact is not None:
        value = redact(msgspec.to_builtins(value))
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def masked(value: Any) -> Any:
    """A value without what is secret in its texts: what one of them gives away is masked in all."""
    mask = Mask()
    for text in strings(value):
        mask.learn(text)
    return mask.value(value, "an answer")


def strings(value: Any) -> Iterator[str]:
    """Every text in a value; the names of fields are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)
