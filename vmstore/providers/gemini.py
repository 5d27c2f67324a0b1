"""Gemini contents and replies, in the camel case of its REST API and the snake case of its SDK."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import Modality, Role, Slot
from vmstore.providers.message import Holes, closed, role_of, spoken, whole
from vmstore.providers.parts import media_of, take_base64
from vmstore.providers.reply import added, counted, pick, settled
from vmstore.providers.stream import add, dicts, joined

CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
INLINE = ("inlineData", "inline_data")
FILE = ("fileData", "file_data")
MEDIA = ("mimeType", "mime_type")
CANDIDATES = ("candidates",)
SAYINGS = frozenset({"result", "output", "error"})  # the one key under which a tool's words stand


def take_content(content: Any, slot: Slot = Slot.MESSAGES) -> Draft:
    """One content: its parts, each a page; a content without a role is the user's."""
    role = Role.USER if slot is Slot.MESSAGES else Role.SYSTEM
    if isinstance(content, str):
        return spoken(content, role, slot)
    if not isinstance(content, dict):
        return whole(content, Role.OTHER if slot is Slot.MESSAGES else role, slot)
    if slot is Slot.MESSAGES:
        role = role_of(content.get("role"), Role.USER)
    holes = Holes()
    parts = content.get("parts")
    if isinstance(parts, list):
        taken = {**content, "parts": [take_part(holes, part) for part in parts]}
        return closed(holes, taken, content, role, slot)
    return closed(holes, take_part(holes, content), content, role, slot)


def take_part(holes: Holes, part: Any) -> Any:
    """The skeleton of a part; its signature and flags stay there."""
    if isinstance(part, str):
        return holes.text(part)
    if not isinstance(part, dict):
        return holes.json(part)
    if isinstance(text := part.get("text"), str):
        return {**part, "text": holes.text(text)}
    if key := _key(part, CALL):
        call = part[key]
        return {**part, key: holes.call(call, call.get("id"), call.get("name"))}
    if key := _key(part, RESPONSE):
        return {**part, key: _response(holes, part[key])}
    if key := _key(part, INLINE):
        data = take_base64(holes, part[key].get("data"), pick(part[key], *MEDIA))
        if data:
            return {**part, key: {**part[key], "data": data}}
    return holes.json(part, _modality(part))


def _key(part: dict[str, Any], spellings: tuple[str, ...]) -> str | None:
    """The spelling under which a part holds an object, None where it holds none."""
    return next((key for key in spellings if isinstance(part.get(key), dict)), None)


def _modality(part: dict[str, Any]) -> Modality:
    for spellings in (INLINE, FILE):
        if key := _key(part, spellings):
            media = pick(part[key], *MEDIA)
            modality = media_of(media)[0] if isinstance(media, str) else Modality.STRUCTURED
            return Modality.STRUCTURED if modality is Modality.TEXT else modality
    return Modality.STRUCTURED


def _response(holes: Holes, response: dict[str, Any]) -> Any:
    """A tool's result: its words where it is one text, else the JSON it answered with."""
    since, answer = len(holes.parts), response.get("response")
    taken: Any = holes.json(response) if answer is None else {**response, "response": _said(holes, answer)}
    holes.answers(since, response.get("id"), response.get("name"))
    return taken


def _said(holes: Holes, value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        ((key, text),) = value.items()
        if key in SAYINGS and isinstance(text, str):
            return {key: holes.text(text)}
    return holes.json(value)


def gemini_reply(body: dict[str, Any], ended: bool) -> ReplyDraft:
    """The reply in a generated content; its first candidate is the answer."""
    candidates = pick(body, *CANDIDATES)
    candidates = [c for c in candidates if isinstance(c, dict)] if isinstance(candidates, list) else []
    first = candidates[0] if candidates else {}
    content = first.get("content")
    answer = {"role": "model", **content} if isinstance(content, dict) else None
    blocked = pick(pick(body, "promptFeedback", "prompt_feedback"), "blockReason", "block_reason")
    if blocked is not None and not candidates:
        body = {**body, "error": f"the prompt was blocked: {blocked}"}
    return settled(
        body,
        [take_content(answer)] if answer and answer.get("parts") else [],
        stop=pick(first, "finishReason", "finish_reason") or blocked,
        model=pick(body, "modelVersion", "model_version"),
        usage=gemini_usage(pick(body, "usageMetadata", "usage_metadata")),
        ended=ended and bool(candidates),
    )


def gemini_usage(usage: Any) -> TokenUsage:
    """Usage as Gemini reports it; prompt tokens include the cached, thoughts are output."""
    return TokenUsage(
        tokens_in=counted(pick(usage, "promptTokenCount", "prompt_token_count")),
        tokens_cached=counted(pick(usage, "cachedContentTokenCount", "cached_content_token_count")),
        tokens_out=added(
            pick(usage, "candidatesTokenCount", "candidates_token_count"),
            pick(usage, "thoughtsTokenCount", "thoughts_token_count"),
        ),
    )


def gemini_stream(chunks: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """The content its chunks add up to, and whether the first candidate came to its end."""
    body: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        body.update((k, v) for k, v in chunk.items() if k not in CANDIDATES and v is not None)
        for piece in dicts(pick(chunk, *CANDIDATES)):
            whole = candidates.setdefault(counted(piece.get("index")) or 0, {})
            content = piece.get("content")
            whole.update((k, v) for k, v in piece.items() if k != "content" and v is not None)
            if isinstance(content, dict):
                known = whole.setdefault("content", {"parts": []})
                known.update((k, v) for k, v in content.items() if k != "parts" and v is not None)
                for part in dicts(content.get("parts")):
                    _join_part(known["parts"], part)
    body["candidates"] = [joined(candidates[index]) for index in sorted(candidates)]
    first = body["candidates"][0] if candidates else {}
    return body, pick(first, "finishReason", "finish_reason") is not None


def _join_part(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """A text is continued where the last part is a text of the same kind; anything else is a part."""
    last = parts[-1] if parts else {}
    same = part.keys() == last.keys() <= {"text", "thought"} and part.get("thought") == last.get("thought")
    if same and isinstance(part.get("text"), str):
        add(last, "text", part["text"])
    else:
        parts.append(dict(part))
