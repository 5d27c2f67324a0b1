"""Answers as JSON bytes, whatever texts are in them; and masked, where they are to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from vmstore.redact.mask import Mask, is_blob
from vmstore.redact.span import HANDED_OUT

LEFT_OUT = "left out where other machines can look: nothing can be masked in an image, a sound or a film"
Redact = Callable[[Any], Any]
"""Masks what nobody else shall see in the texts of a value."""


def encoded(value: Any) -> bytes:
    """A value as JSON in UTF-8; lone surrogates, which no UTF-8 holds, are written as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def masked(value: Any) -> Any:
    """A value without what is secret in its texts: what one of them gives away is masked in all.

    Images and other bytes written as letters are left out: nothing can be masked in them.
    """
    value = _readable(value)
    mask = Mask(HANDED_OUT)
    for text in strings(value):
        mask.learn(text)
    return mask.value(value, "an answer")


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return LEFT_OUT if is_blob(value) else value
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        if isinstance(value.get("mime"), str) and isinstance(value.get("text"), str) and "bytes" in value:
            return {**value, "text": "", "missing": LEFT_OUT}  # an image as `texts` tells it
        return {key: _readable(item) for key, item in value.items()}
    return value


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
