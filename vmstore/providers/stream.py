"""Streams: texts that arrive in pieces, joined once at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Pieces(list[str]):
    """A text still arriving; joining once keeps a long answer from being copied at each piece."""


def add(into: dict[str, Any], key: str, text: str) -> None:
    """Adds a piece to the text under a key."""
    known = into.get(key)
    if isinstance(known, Pieces):
        known.append(text)
    else:
        into[key] = Pieces([known, text] if isinstance(known, str) else [text])


def joined(value: Any) -> Any:
    """A copy of `value` with its pieces joined to texts."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: joined(item) for key, item in value.items()}
    return [joined(item) for item in value] if isinstance(value, list) else value


def grow(into: dict[str, Any], delta: dict[str, Any], constant: frozenset[str]) -> None:
    """Adds a delta to what came before: texts and lists grow, objects grow inside, the rest stays."""
    for key, value in delta.items():
        known = into.get(key)
        if known is not None and known != "" and (value is None or key in constant):
            continue
        if isinstance(value, str) and isinstance(known, (str, Pieces)):
            add(into, key, value)
        elif isinstance(value, dict):
            into[key] = known if isinstance(known, dict) else {}
            grow(into[key], value, constant)
        elif isinstance(value, list) and isinstance(known, list):
            into[key] = known + value
        else:
            into[key] = value


def dicts(values: Any) -> Iterator[dict[str, Any]]:
    """The objects in what should be a list of them."""
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


def numbered(values: list[Any], index: Any) -> dict[str, Any]:
    """The object at a place of a list that grows as its places are named."""
    place = index if type(index) is int and 0 <= index <= len(values) else max(len(values) - 1, 0)
    if place == len(values):
        values.append({})
    if not isinstance(values[place], dict):
        values[place] = {}
    found: dict[str, Any] = values[place]
    return found
