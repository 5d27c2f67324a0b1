"""The text that one part of a stream adds to an answer, for any provider."""

from __future__ import annotations

from typing import Any

from vmstore.providers.request import Shape, shape_of_body
from vmstore.providers.stream import dicts


def words_of(part: dict[str, Any]) -> str:
    """The words that a part of a stream brings for the user to read; thoughts and calls bring none."""
    match shape_of_body(part):
        case Shape.CHAT:
            first = next((item for item in dicts(part.get("choices")) if not item.get("index")), {})
            delta = first.get("delta")
            return _content(delta.get("content")) if isinstance(delta, dict) else ""
        case Shape.ANTHROPIC if part.get("type") == "content_block_delta":
            delta = part.get("delta")
            return _text(delta) if isinstance(delta, dict) and delta.get("type") == "text_delta" else ""
        case Shape.ANTHROPIC if part.get("type") == "content_block_start":
            block = part.get("content_block")
            return _text(block) if isinstance(block, dict) and block.get("type") == "text" else ""
        case Shape.RESPONSES if part.get("type") == "response.output_text.delta":
            return part["delta"] if isinstance(part.get("delta"), str) else ""
        case Shape.GEMINI:
            candidate = next(dicts(part.get("candidates")), {})
            content = candidate.get("content")
            parts = dicts(content.get("parts")) if isinstance(content, dict) else ()
            return "".join(_text(item) for item in parts if not item.get("thought"))
    return ""


def _content(content: Any) -> str:
    return content if isinstance(content, str) else "".join(map(_text, dicts(content)))


def _text(part: dict[str, Any]) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""
