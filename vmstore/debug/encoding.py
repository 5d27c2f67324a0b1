"""Answers as JSON bytes, whatever texts are in them, masked where they are to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

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
