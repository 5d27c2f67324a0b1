"""Recognises the parts of a message that are a model's thinking, for any provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vmstore.core.draft import Part
from vmstore.core.page import Modality
from vmstore.core.text.skeleton import HOLES, loads, part_of

KEYS = frozenset({"reasoning_content", "reasoning", "thinking"})  # under which it stands
KINDS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})  # of a part
WORDS = (b"reasoning", b"thinking", b"thought", b"summary_text")  # one of them is in every message with thoughts


def thoughts(skeleton: bytes) -> tuple[int, ...]:
    """The parts of a message that are thinking, by index, as far as its skeleton says so."""
    if not any(word in skeleton for word in WORDS):
        return ()
    try:
        return tuple(sorted(_within(loads(skeleton), thinks=False)))
    except (ValueError, TypeError):  # an earlier version let in what is no skeleton
        return ()


def is_thought(part: Part) -> bool:
    """Whether a part that was taken whole is thinking, as where a provider has sealed it."""
    if part.modality is not Modality.STRUCTURED or not any(word in part.content for word in WORDS):
        return False
    value = loads(part.content)
    return isinstance(value, dict) and _thinks(value)


def _within(value: Any, *, thinks: bool) -> Iterator[int]:
    """The holes in a value that stand for thinking."""
    if isinstance(value, list):
        for item in value:
            yield from _within(item, thinks=thinks)
    elif isinstance(value, dict):
        kind = next(iter(value), None)
        if len(value) == 1 and kind in HOLES:
            yield from [part_of(value)] * thinks
            return
        thinks = thinks or _thinks(value)
        for key, item in value.items():
            yield from _within(item, thinks=thinks or key in KEYS)


def _thinks(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    return (isinstance(kind, str) and kind in KINDS) or part.get("thought") is True
