"""Chat messages of any provider as text people can read; `--json` has them exact."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vmstore.shell.terminal.format import number
from vmstore.shell.terminal.layout import Line, StyledText

if TYPE_CHECKING:
    from vmstore.namespace.results import Response

VALUE_CHARS = 600  # a value that is no text, like an image in base64, is cut here
TEXT_KEYS = ("text", "thinking", "reasoning", "output", "content", "parts", "summary")


def transcript(messages: Sequence[Any]) -> list[Line]:
    """Messages in order: the speaker, then the text, indented."""
    lines: list[Line] = []
    for index, message in enumerate(messages, 1):
        lines.append(_head(index, message))
        for text in _said(message):
            lines += [f"   {line}" for line in text.rstrip().split("\n")]
        lines.append("")
    return lines


def response_lines(found: Response) -> list[Line]:
    """A response: its body as JSON, or its messages and what stands beside them; what failed."""
    lines: list[Line] = [found.error] if found.error else []
    if found.body is not None:
        return [*lines, *json.dumps(found.body, ensure_ascii=False, indent=2).split("\n")]
    return [*lines, *transcript(found.messages)]


def _head(index: int, message: Any) -> Line:
    fields = message if isinstance(message, dict) else {}
    role = str(fields.get("role") or fields.get("type") or "message")
    about = [str(fields[key]) for key in ("name", "tool_call_id", "call_id") if fields.get(key)]
    return (
        StyledText(f"{number(index)} ", "dim"),
        StyledText(role, "head"),
        StyledText(" " + " ".join(about) if about else "", "dim"),
    )


def _said(value: Any) -> Iterator[str]:
    """The texts of a message, a part or a list of parts; what is no text stands as short JSON."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, list):
        for part in value:
            yield from _said(part)
    elif isinstance(value, dict):
        yield from _part(value)
    elif value is not None:
        yield _short(value)


def _part(part: dict[str, Any]) -> Iterator[str]:
    asked = _asked(part)
    if asked is not None:
        yield asked
        return
    answered = part.get("functionResponse")
    found = [answered.get("response")] if isinstance(answered, dict) else [part[k] for k in TEXT_KEYS if k in part]
    if not found and not part.get("tool_calls"):
        yield _short({k: v for k, v in part.items() if k != "role"})
    for value in found:
        yield from _said(value)
    for call in part.get("tool_calls") or ():
        yield from _said(call)


def _asked(part: dict[str, Any]) -> str | None:
    """A request for a tool, in whichever of the providers' forms."""
    for key in ("function", "functionCall"):
        if isinstance(part.get(key), dict):
            part = part[key]
    given = next((part[key] for key in ("arguments", "input", "args") if key in part), None)
    if "name" not in part or given is None:
        return None
    return f"→ {part['name']}({given if isinstance(given, str) else _short(given)})"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= VALUE_CHARS:
        return text
    return f"{text[:VALUE_CHARS]}… ({number(len(text))} characters; --json has them all)"
