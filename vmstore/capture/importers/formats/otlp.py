"""Reads traces of OpenTelemetry: OTLP as JSON, one export a line or a document, by the GenAI conventions.

Instrumentation writes what it saw of a request, in a form of its own, so calls are derived by the rule
`otel`: a span that asks a model is a call, and its request held the messages the span names, put as
chat messages. A span without them saw the conversation as it stood. Spans of tools and agents are
kept beside the conversation, other spans are nothing of ours.

A session is a conversation (`gen_ai.conversation.id`), or else a trace, and in it each agent that is
named. Spans are taken in the order of the file, in which they ended.
"""

from __future__ import annotations

from typing import Any

from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, unread
from vmstore.capture.importers.formats.otlp_value import attributes, microseconds_of, spans_of, structured
from vmstore.capture.steps import CallStep, MetadataStep, ParsedSource, Step, Track
from vmstore.core.draft import COMPONENT, Draft, ReplyDraft, TokenUsage
from vmstore.core.page import Slot, Status
from vmstore.errors import InputError
from vmstore.providers import Shape, take_message
from vmstore.providers.jsonable import plain
from vmstore.providers.message import json_bytes, name_of
from vmstore.providers.reply import asks, counted

Json = dict[str, Any]

PREFIX = "gen_ai."
ASKING = ("chat", "text_completion", "generate_content")
DETAILS = "gen_ai.client.inference.operation.details"  # an event that has what a span may leave to it
FAILED = (2, "2", "STATUS_CODE_ERROR")
DOLLARS_MAX = 1e9


def recognises(source: SourceFile) -> bool:
    """Whether a file holds an export of spans."""
    values = [source.document] if source.document is not None else [line.value for line in source.lines]
    return any(isinstance(value, dict) and isinstance(value.get("resourceSpans"), list) for value in values)


def read_otlp(source: SourceFile) -> ParsedSource:
    """The sessions of a trace file, in the order they begin."""
    lines = source.lines or [JsonLine(1, json_bytes(source.document), source.document)]
    sessions: dict[tuple[str, str], Track] = {}
    strays: list[Step] = []
    agents = _agents(lines)
    for line in lines:
        if line.problem is not None or not isinstance(line.value, dict):
            strays.append(unread(line, line.problem or "no export of spans"))
            continue
        for span, resource in spans_of(line.value):
            fields = _fields(span)
            if not any(key.startswith(PREFIX) for key in fields):
                continue
            owner = _owner(span, fields, agents)
            track = sessions.setdefault(owner, _track(owner, sessions, resource))
            assert isinstance(track.steps, list), "made here"
            track.steps.append(_step(span, fields, line.number))
    tracks = list(sessions.values()) or [Track(key=None, steps=[])]
    tracks[0].steps = [*strays, *tracks[0].steps]
    return ParsedSource(format="otlp", tracks=tracks, torn=source.torn)


def _track(owner: tuple[str, str], sessions: dict[tuple[str, str], Track], resource: Json) -> Track:
    """A session: its id, and for a further agent of it the agent's name."""
    session, agent = owner
    first = not sessions
    main = not any(known == session for known, _ in sessions)
    name = session if main else f"{session}-{agent or 'other'}"
    service = name_of(resource.get("service.name"))
    return Track(key=name, name=name, part="" if first else name, steps=[], agent=agent or service)


def _fields(span: Json) -> Json:
    """The attributes of a span, and of the event that has the messages where the span leaves them to it."""
    fields = attributes(span)
    events = span.get("events")
    for event in events if isinstance(events, list) else ():
        if isinstance(event, dict) and event.get("name") == DETAILS:
            fields = {**attributes(event), **fields}
    return fields


def _agents(lines: list[JsonLine]) -> dict[str, tuple[str | None, str]]:
    """The parent of each span, and the agent it names, if any."""
    found: dict[str, tuple[str | None, str]] = {}
    for line in lines:
        for span, _ in spans_of(line.value):
            if isinstance(number := span.get("spanId"), str):
                found[number] = (name_of(span.get("parentSpanId")), _agent(attributes(span)))
    return found


def _agent(fields: Json) -> str:
    return name_of(fields.get("gen_ai.agent.name")) or name_of(fields.get("gen_ai.agent.id")) or ""


def _owner(span: Json, fields: Json, agents: dict[str, tuple[str | None, str]]) -> tuple[str, str]:
    """The session of a span, and the agent whose it is: its own, or the next above that is named."""
    session = name_of(fields.get("gen_ai.conversation.id")) or name_of(span.get("traceId")) or "trace"
    agent, seen = _agent(fields), set[str]()
    parent = name_of(span.get("parentSpanId"))
    while not agent and parent in agents and parent not in seen:
        seen.add(parent)
        parent, agent = agents[parent]
    return session, agent


def _step(span: Json, fields: Json, line: int) -> Step:
    raw = json_bytes(span)
    at = microseconds_of(span.get("startTimeUnixNano"))
    if fields.get("gen_ai.operation.name") not in ASKING:
        return MetadataStep(raw=raw, line=line, at=at, aside=raw)
    try:
        reply = _reply(span, fields)
        asked = _messages(fields)
    except InputError as error:
        return unread(JsonLine(line, raw, span), str(error))
    return CallStep(
        raw=raw, line=line, at=at, reply=reply, request=asked or None, derived=True, joins=bool(reply.drafts)
    )


def _messages(fields: Json) -> tuple[Draft, ...]:
    """The messages of a request, tools and instructions first."""
    drafts: list[Draft] = []
    if tools := structured(fields.get("gen_ai.tool.definitions")):
        drafts.append(take_message(Shape.CHAT, Slot.TOOLS, plain(tools, "the tool definitions")))
    said: list[Json] = []
    if instructions := structured(fields.get("gen_ai.system_instructions")):
        said += chat_messages({"role": "system", "parts": instructions})
    for message in _listed(fields, "gen_ai.input.messages"):
        said += chat_messages(message)
    drafts += [take_message(Shape.CHAT, Slot.MESSAGES, plain(message, "a message")) for message in said]
    return tuple(drafts)


def _reply(span: Json, fields: Json) -> ReplyDraft:
    """The answer to a call: the first of its messages, its usage, and what broke it."""
    answers = _listed(fields, "gen_ai.output.messages")
    drafts = tuple(
        take_message(Shape.CHAT, Slot.MESSAGES, plain(message, "an answer"))
        for answer in answers[:1]
        for message in chat_messages({**answer, "role": "assistant"})
    )
    given = span.get("status")
    status: Json = given if isinstance(given, dict) else {}
    failed = status.get("code") in FAILED
    began, ended = (microseconds_of(span.get(f"{name}TimeUnixNano")) for name in ("start", "end"))
    reasons = fields.get("gen_ai.response.finish_reasons")
    stop = answers[0].get("finish_reason") if answers else None
    return ReplyDraft(
        Status.FAILED if failed else Status.OK,
        drafts,
        stop=name_of(stop) or (name_of(reasons[0]) if isinstance(reasons, list) and reasons else None),
        model=name_of(fields.get("gen_ai.response.model")) or name_of(fields.get("gen_ai.request.model")),
        usage=TokenUsage(
            tokens_in=counted(fields.get("gen_ai.usage.input_tokens")),
            tokens_cached=counted(fields.get("gen_ai.usage.cache_read.input_tokens")),
            tokens_out=counted(fields.get("gen_ai.usage.output_tokens")),
            latency=counted(ended - began) if began is not None and ended is not None else None,
            tokens_written=counted(fields.get("gen_ai.usage.cache_creation.input_tokens")),
            cost=_nano(fields.get("vmstore.cost")),
        ),
        component=_component(fields.get("vmstore.component")),
        final=not failed and not asks(drafts),
        aside=json_bytes({"otel": {key: item for key, item in fields.items() if not key.endswith(BULKY)}}),
        error=(name_of(status.get("message")) or name_of(fields.get("error.type")) or "error") if failed else None,
    )


def _nano(dollars: Any) -> int | None:
    """A cost of ours in nano-dollars."""
    is_cost = isinstance(dollars, int | float) and not isinstance(dollars, bool) and 0 <= dollars < DOLLARS_MAX
    return round(dollars * 1e9) if is_cost else None


def _component(given: Any) -> str | None:
    """The part of a memory that made a call, where our own export says so."""
    return given if isinstance(given, str) and COMPONENT.fullmatch(given) else None


BULKY = (".messages", ".system_instructions", ".definitions")  # attributes that are pages


def _listed(fields: Json, key: str) -> list[Json]:
    listed = structured(fields.get(key))
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def chat_messages(message: Json) -> list[Json]:
    """A message of the conventions as chat messages: each answer of a tool is one of its own."""
    parts = message.get("parts")
    listed = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    content: list[Json] = []
    results: list[Json] = []
    calls: list[Json] = []
    thoughts: list[str] = []
    for part in listed:
        kind = part.get("type")
        if kind == "tool_call_response":
            results.append(_result(part))
        elif kind == "tool_call":
            calls.append(_call(part))
        elif kind in ("reasoning", "thinking") and isinstance(part.get("content"), str):
            thoughts.append(part["content"])
        else:
            content.append(_content(part))
    if not content and not calls and not thoughts:
        return results
    texts = [part["text"] for part in content if part["type"] == "text"]
    alone = len(content) == 1 and len(texts) == 1
    made: Json = {"role": name_of(message.get("role")) or "user", "content": texts[0] if alone else content or None}
    if thoughts:
        made["reasoning_content"] = "\n".join(thoughts)
    if calls:
        made["tool_calls"] = calls
    if name := name_of(message.get("name")):
        made["name"] = name
    return [made, *results]


def _content(part: Json) -> Json:
    kind, mime = part.get("type"), part.get("mime_type")
    if kind == "text" and isinstance(part.get("content"), str):
        return {"type": "text", "text": part["content"]}
    if kind == "blob" and isinstance(part.get("content"), str) and str(mime).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{part['content']}"}}
    if kind == "uri" and part.get("modality") == "image" and isinstance(part.get("uri"), str):
        return {"type": "image_url", "image_url": {"url": part["uri"]}}
    return {**part, "type": str(kind)}


def _call(part: Json) -> Json:
    arguments = part.get("arguments")
    text = arguments if isinstance(arguments, str) else json_bytes(arguments).decode("utf-8", "replace")
    return {"id": part.get("id"), "type": "function", "function": {"name": part.get("name"), "arguments": text}}


def _result(part: Json) -> Json:
    answer = part.get("response", part.get("result"))
    text = answer if isinstance(answer, str) else json_bytes(answer).decode("utf-8", "replace")
    return {"role": "tool", "tool_call_id": part.get("id"), "content": text}
