"""Answers as JSON bytes, whatever texts are in them, masked where they are to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

Redact = Callable[[str], str]
"""Masks what nobody else shall see in a text."""


def encoded(value: Any, redact: Redact | None = None) -> bytes:
    """A value as JSON in UTF-8; lone surrogates, which no UTF-8 holds, are written as escapes."""
    if redact is not None:
        value = masked(msgspec.to_builtins(value), redact)
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def masked(value: Any, redact: Redact) -> Any:
    """A value with every text in it masked; the names of fields stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: masked(inner, redact) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked(inner, redact) for inner in value]
    return value
