"""Generated conversations in the formats of four providers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]


class ProviderPart(NamedTuple):
    """A piece of a message: a text, thought, image, call or result; `name` is the call's id."""

    kind: str
    text: str = ""
    name: str = ""
    data: bytes = b""


@dataclass
class ProviderMessage:
    """One message: who says it, its parts, what else stands in it. An odd one is its `raw` value."""

    who: str
    parts: list[ProviderPart] = field(default_factory=list)
    extra: Json = field(default_factory=dict)
    raw: Any = None
    before: list[ProviderPart] | None = None  # its parts before they were changed


class ProviderFormat(NamedTuple):
    """A provider's format of requests, and of answers with token counts."""

    request: Callable[[Sequence[ProviderMessage], Json, Sequence[int]], Json]
    response: Callable[[ProviderMessage | None, int | None], Json]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _arguments(part: ProviderPart) -> Json:
    return {"text": part.text}


def _systems(messages: Sequence[ProviderMessage]) -> tuple[list[ProviderMessage], list[ProviderMessage]]:
    """The system messages, which some providers keep beside the rest, and the rest."""
    return [message for message in messages if message.who == "system"], [
        message for message in messages if message.who != "system"
    ]


def _texts(messages: Iterable[ProviderMessage]) -> list[str]:
    return [part.text for message in messages for part in message.parts]


# ---- chat completions


def _chat_request(messages: Sequence[ProviderMessage], settings: Json, tools: Sequence[int]) -> Json:
    request = {**settings, "messages": [message for message_of in messages for message in _chat(message_of)]}
    if tools:
        request["tools"] = [{"type": "function", "function": {"name": f"t{n}"}} for n in tools]
    return request


def _chat(said: ProviderMessage) -> list[Any]:
    if said.who == "odd":
        return [said.raw]
    if said.who == "tool":
        return [{"role": "tool", "tool_call_id": part.name, "content": part.text, **said.extra} for part in said.parts]
    message: Json = {"role": said.who, **said.extra}
    calls = [part for part in said.parts if part.kind == "call"]
    thoughts = [part.text for part in said.parts if part.kind == "think"]
    spoken = [part for part in said.parts if part.kind not in ("call", "think")]
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if len(spoken) == 1 and spoken[0].kind != "image":
        message["content"] = spoken[0].text
    else:
        message["content"] = [_chat_part(part) for part in spoken] or None
    if calls:
        message["tool_calls"] = [_chat_call(part) for part in calls]
    return [message]


def _chat_part(part: ProviderPart) -> Json:
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + _base64(part.data)}}
    return {"type": "text", "text": part.text}


def _chat_call(part: ProviderPart) -> Json:
    asked = {"name": "look", "arguments": json.dumps(_arguments(part))}
    return {"id": part.name, "type": "function", "function": asked}


def _chat_response(spoken: ProviderMessage | None, tokens: int | None) -> Json:
    response: Json = {"id": "r", "model": "m-1-2026", "choices": []}
    if spoken is not None:
        asks = any(part.kind == "call" for part in spoken.parts)
        (message,) = _chat(spoken)
        response["choices"] = [{"index": 0, "message": message, "finish_reason": "tool_calls" if asks else "stop"}]
    if tokens is not None:
        response["usage"] = {"prompt_tokens": tokens, "completion_tokens": 5}
    return response


# ---- Anthropic


def _anthropic_request(messages: Sequence[ProviderMessage], settings: Json, tools: Sequence[int]) -> Json:
    systems, rest = _systems(messages)
    request: Json = {**settings, "max_tokens": 99, "messages": [_anthropic(one) for one in rest]}
    if systems:
        texts = _texts(systems)
        request["system"] = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
    if tools:
        request["tools"] = [{"name": f"t{n}", "input_schema": {"type": "object"}} for n in tools]
    return request


def _anthropic(message: ProviderMessage) -> Any:
    if message.who == "odd":
        return message.raw
    role = "user" if message.who == "tool" else message.who
    if len(message.parts) == 1 and message.parts[0].kind == "text":
        return {"role": role, "content": message.parts[0].text, **message.extra}
    return {"role": role, "content": [_anthropic_block(part) for part in message.parts], **message.extra}


def _anthropic_block(part: ProviderPart) -> Json:
    match part.kind:
        case "image":
            source = {"type": "base64", "media_type": "image/png", "data": _base64(part.data)}
            return {"type": "image", "source": source}
        case "think":
            return {"type": "thinking", "thinking": part.text, "signature": "sig"}
        case "call":
            return {"type": "tool_use", "id": part.name, "name": "look", "input": _arguments(part)}
        case "result":
            return {"type": "tool_result", "tool_use_id": part.name, "content": part.text}
    return {"type": "text", "text": part.text}


def _anthropic_response(message: ProviderMessage | None, tokens: int | None) -> Json:
    blocks = [] if message is None else [_anthropic_block(part) for part in message.parts]
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    response: Json = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": stop}
    if tokens is not None:
        response["usage"] = {"input_tokens": tokens, "cache_read_input_tokens": 0, "output_tokens": 5}
    return response


# ---- Responses


def _responses_request(messages: Sequence[ProviderMessage], settings: Json, tools: Sequence[int]) -> Json:
    request: Json = {**settings, "input": [item for message in messages[1:] for item in _responses(message)]}
    if messages and messages[0].who == "system":
        request["instructions"] = "".join(_texts(messages[:1]))
    else:
        request["input"] = [item for message in messages for item in _responses(message)]
    if tools:
        request["tools"] = [{"type": "function", "name": f"t{n}"} for n in tools]
    return request


def _responses(message: ProviderMessage) -> list[Any]:
    if message.who == "odd":
        return [message.raw]
    items: list[Any] = []
    spoken = [part for part in message.parts if part.kind in ("text", "image")]
    for part in message.parts:
        if part.kind == "think":
            items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": part.text}]})
        elif part.kind == "call":
            arguments = json.dumps(_arguments(part))
            items.append({"type": "function_call", "call_id": part.name, "name": "look", "arguments": arguments})
        elif part.kind == "result":
            items.append({"type": "function_call_output", "call_id": part.name, "output": part.text, **message.extra})
        elif part is spoken[0]:
            content = [_responses_part(message.who, each) for each in spoken]
            items.append({"type": "message", "role": message.who, "content": content, **message.extra})
    return items


def _responses_part(who: str, part: ProviderPart) -> Json:
    if part.kind == "image":
        return {"type": "input_image", "image_url": "data:image/png;base64," + _base64(part.data)}
    return {"type": "output_text" if who == "assistant" else "input_text", "text": part.text}


def _responses_response(message: ProviderMessage | None, tokens: int | None) -> Json:
    output = [] if message is None else _responses(message)
    response: Json = {"object": "response", "status": "completed", "model": "m-1-2026", "output": output}
    if tokens is not None:
        response["usage"] = {"input_tokens": tokens, "output_tokens": 5}
    return response


# ---- Gemini


def _gemini_request(messages: Sequence[ProviderMessage], settings: Json, tools: Sequence[int]) -> Json:
    systems, rest = _systems(messages)
    request: Json = {**settings, "contents": [_gemini(message) for message in rest]}
    if systems:
        request["systemInstruction"] = {"parts": [{"text": text} for text in _texts(systems)]}
    if tools:
        request["tools"] = [{"functionDeclarations": [{"name": f"t{n}"} for n in tools]}]
    return request


def _gemini(message: ProviderMessage) -> Any:
    if message.who == "odd":
        return message.raw
    role = "model" if message.who == "assistant" else "user"
    return {"role": role, "parts": [_gemini_part(part) for part in message.parts], **message.extra}


def _gemini_part(part: ProviderPart) -> Json:
    match part.kind:
        case "image":
            return {"inlineData": {"mimeType": "image/png", "data": _base64(part.data)}}
        case "think":
            return {"text": part.text, "thought": True}
        case "call":
            return {"functionCall": {"name": "look", "id": part.name, "args": _arguments(part)}}
        case "result":
            return {"functionResponse": {"name": "look", "id": part.name, "response": {"output": part.text}}}
    return {"text": part.text}


def _gemini_response(message: ProviderMessage | None, tokens: int | None) -> Json:
    response: Json = {"modelVersion": "m-1-2026", "candidates": []}
    if message is not None:
        response["candidates"] = [{"content": _gemini(message), "finishReason": "STOP"}]
    if tokens is not None:
        response["usageMetadata"] = {"promptTokenCount": tokens, "candidatesTokenCount": 5}
    return response


WORDS = {
    "chat": ProviderFormat(_chat_request, _chat_response),
    "anthropic": ProviderFormat(_anthropic_request, _anthropic_response),
    "responses": ProviderFormat(_responses_request, _responses_response),
    "gemini": ProviderFormat(_gemini_request, _gemini_response),
}
SHAPES = tuple(WORDS)
