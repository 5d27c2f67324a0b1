"""Messages and texts in fewer tokens: what a tool printed is cut in its middle, and so is any other long text."""

from __future__ import annotations

from typing import Any

GAP = " […] "
TEXTS = ("content", "text", "output", "result")
CALLS = ("tool_use", "function_call", "thinking", "redacted_thinking", "reasoning", "image", "image_url")


def cut(text: str, characters: int) -> str:
    """A text of at most so many characters: its beginning, and half as much of its end."""
    if len(text) <= characters:
        return text
    end = max(0, characters - len(GAP)) // 3
    begin = max(0, characters - len(GAP) - end)
    return text[:begin] + GAP + (text[-end:] if end else "")


def shortened(message: Any, characters: int) -> Any:
    """A message in a provider's shape with no text longer than that; calls and what is signed stay as they are."""
    if isinstance(message, list):
        return [shortened(part, characters) for part in message]
    if not isinstance(message, dict) or message.get("type") in CALLS:
        return message
    return {
        key: (cut(value, characters) if isinstance(value, str) and key in TEXTS else _inner(key, value, characters))
        for key, value in message.items()
    }


def _inner(key: str, value: Any, characters: int) -> Any:
    is_said = key in TEXTS or key in ("parts", "functionResponse", "response")
    return shortened(value, characters) if is_said and isinstance(value, (dict, list)) else value
