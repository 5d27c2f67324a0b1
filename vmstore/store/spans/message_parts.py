"""Messages of any provider as the GenAI conventions write them: a role, and parts of text, calls and answers."""

from __future__ import annotations

import base64
from typing import Any

from vmstore.capture.thought_parts import is_thought, thoughts
from vmstore.core.draft import Draft, Part
from vmstore.core.page import Modality
from vmstore.core.text.json_text import loads
from vmstore.core.text.page_line import tool_request

Json = dict[str, Any]
MEDIA = {Modality.IMAGE: "image", Modality.AUDIO: "audio", Modality.VIDEO: "video"}


def conventional(draft: Draft) -> Json:
    """A message by the conventions."""
    return {"role": draft.role.word, "parts": parts_of(draft)}


def parts_of(draft: Draft) -> list[Json]:
    """The parts of a message by the conventions."""
    thinking = thoughts(draft.skeleton)
    return [_part(part, thought=number in thinking or is_thought(part)) for number, part in enumerate(draft.parts)]


def _part(part: Part, *, thought: bool) -> Json:
    text = part.content.decode("utf-8", "replace")
    if part.is_result:
        answer = _value(text) if part.modality is Modality.STRUCTURED else text
        return {"type": "tool_call_response", "id": part.call_id, "response": answer}
    if part.is_call and (asked := tool_request(part.content)) is not None:
        return {"type": "tool_call", "id": part.call_id, "name": asked.tool, "arguments": asked.arguments}
    if thought:
        return {"type": "reasoning", "content": text}
    if part.modality is Modality.TEXT:
        return {"type": "text", "content": text}
    value = _value(text) if part.modality is Modality.STRUCTURED or part.content.startswith(b"{") else None
    if isinstance(value, dict):
        address = value.get("image_url")
        url = address.get("url") if isinstance(address, dict) else address
        if isinstance(url, str):
            return {"type": "uri", "modality": "image", "uri": url}
        return {**value, "type": str(value.get("type") or "json")}
    mime = part.mime_name or part.mime.type
    if text.startswith("data:") and ";base64," in text:
        head, _, content = text.partition(";base64,")
        return {"type": "blob", "modality": MEDIA.get(part.modality, "file"), "mime_type": head[5:], "content": content}
    content = base64.b64encode(part.content).decode()
    return {"type": "blob", "modality": MEDIA.get(part.modality, "file"), "mime_type": mime, "content": content}


def _value(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return text
