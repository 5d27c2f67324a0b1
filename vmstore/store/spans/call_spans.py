"""The calls of a session as spans, one a call, with ids that are the same each time they are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from vmstore.core.draft import Draft
from vmstore.core.page import Slot
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.results import CallInfo
from vmstore.providers import Shape, split_request, take_message
from vmstore.store.spans.message_parts import conventional, parts_of
from vmstore.store.wire import Wire

Json = dict[str, Any]
Masking = Callable[[Any], Any]

PROVIDERS = {
    Shape.CHAT: "openai",
    Shape.RESPONSES: "openai",
    Shape.ANTHROPIC: "anthropic",
    Shape.GEMINI: "gcp.gemini",
}
PARAMETERS = {  # of a request, and of Gemini's generationConfig
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "top_k": "top_k",
    "topK": "top_k",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
}
CLIENT = 3  # the kind of a span that asks somebody else
OK, ERROR = 1, 2


class TracedSession(Protocol):
    """A session whose calls are written as spans."""

    @property
    def name(self) -> str: ...
    @property
    def wire(self) -> Wire: ...
    def calls(self) -> list[CallInfo]: ...


def spans_of(
    session: TracedSession, calls: Sequence[CallInfo], *, content: bool = True, masked: Masking | None = None
) -> Iterator[Json]:
    """Each of some calls of a session as a span; without `content` what was said stays out, else it is `masked`."""
    for call in calls:
        yield _span(session, call, content=content, masked=masked or (lambda value: value))


def exported(spans: Iterable[Json]) -> Json:
    """Spans as a request to export them, as OTLP has it in JSON."""
    resource = {"attributes": _attributes({"service.name": "vmstore"})}
    scope = {"name": "vmstore"}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": list(spans)}]}]}


def _span(session: TracedSession, call: CallInfo, *, content: bool, masked: Masking) -> Json:
    fields: Json = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": session.name,
        "gen_ai.usage.input_tokens": call.tokens_reported,
        "gen_ai.usage.output_tokens": call.tokens_out,
        "gen_ai.usage.cache_read.input_tokens": call.tokens_cached,
        "gen_ai.usage.cache_creation.input_tokens": call.tokens_written,
        "vmstore.call": call.call,
        "vmstore.turn": call.turn,
        "vmstore.fidelity": call.fidelity,
        "vmstore.component": call.component,
        "vmstore.cost": call.cost,
        "vmstore.cost_estimated": call.cost_estimated,
    }
    fields |= _request(session, call, content=content, masked=masked)
    fields |= _response(session, call, content=content, masked=masked)
    span: Json = {
        "traceId": _id(session.name, 32),
        "spanId": _id(f"{session.name}\n{call.call}", 16),
        "name": f"chat {fields.get('gen_ai.request.model') or ''}".strip(),
        "kind": CLIENT,
        "startTimeUnixNano": str(call.at * 1_000),
        "endTimeUnixNano": str(call.at * 1_000 + int((call.latency_ms or 0) * 1_000_000)),
        "status": {"code": OK},
    }
    if call.status != "ok":
        why = masked(call.error or call.status)
        fields["error.type"] = call.status
        span["status"] = {"code": ERROR, "message": why if call.error else call.status}
    return {**span, "attributes": _attributes(fields)}


def _request(session: TracedSession, call: CallInfo, *, content: bool, masked: Masking) -> Json:
    """The attributes of a request: its messages, tools, model and parameters."""
    try:
        request = session.wire.request(call=call.call)
    except UnknownError:
        request = {"model": call.model, "messages": session.wire.messages(call=call.call)}
    try:
        split = split_request(request)
        drafts = [take_message(split.shape, slot, value) for slot, value in split.messages]
    except InputError:
        return {"gen_ai.request.model": call.model}
    fields: Json = {"gen_ai.provider.name": PROVIDERS[split.shape], "gen_ai.request.model": call.model or split.model}
    settings = request.get("generationConfig")
    given = {**request, **(settings if isinstance(settings, dict) else {})}
    for key, name in PARAMETERS.items():
        if isinstance(given.get(key), int | float):
            fields[f"gen_ai.request.{name}"] = given[key]
    if not content:
        return fields
    said = [conventional(draft) for draft in drafts if draft.slot is Slot.MESSAGES]
    fields["gen_ai.input.messages"] = _text(masked(said))
    for draft, (slot, value) in zip(drafts, split.messages, strict=True):
        if slot is Slot.TOOLS:
            fields["gen_ai.tool.definitions"] = _text(masked(value))
        elif slot is Slot.SYSTEM:
            fields["gen_ai.system_instructions"] = _text(masked(parts_of(draft)))
    return fields


def _response(session: TracedSession, call: CallInfo, *, content: bool, masked: Masking) -> Json:
    """The attributes of a response: its message, its model, why it ended."""
    try:
        response = session.wire.response(call=call.call)
    except UnknownError:  # a gap
        return {}
    body = response.body if isinstance(response.body, dict) else {}
    number = body.get("id", body.get("responseId"))
    fields: Json = {
        "gen_ai.response.model": response.model,
        "gen_ai.response.id": number if isinstance(number, str) else None,
        "gen_ai.response.finish_reasons": [response.stop] if response.stop else None,
    }
    parts = [part for value in response.messages for part in _said(value)] if content else []
    if parts:
        answer = {"role": "assistant", "parts": parts, "finish_reason": response.stop or "stop"}
        fields["gen_ai.output.messages"] = _text(masked([answer]))
    return fields


def _said(value: Any) -> list[Json]:
    """The parts of an answer's message, of whichever provider's shape it is."""
    try:
        draft: Draft = take_message(_shape(value), Slot.MESSAGES, value)
    except InputError:
        return []
    return parts_of(draft)


def _shape(value: Any) -> Shape:
    """The shape of one message."""
    if isinstance(value, dict):
        if "parts" in value:
            return Shape.GEMINI
        if isinstance(value.get("type"), str):
            return Shape.RESPONSES
        if isinstance(value.get("content"), list):
            return Shape.ANTHROPIC
    return Shape.CHAT


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _attributes(fields: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in fields.items() if value is not None]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _id(text: str, digits: int) -> str:
    """An id that a name always has."""
    return hashlib.sha256(f"vmstore\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:digits]
