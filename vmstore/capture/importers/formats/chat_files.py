"""Reads conversations written as messages of the four shapes: chat, Responses, Anthropic, Gemini.

Five forms: a JSON list of messages or exchanges; JSON lines of one message each; one object that holds a
conversation; JSON lines of such objects, a session each; {"request", "response"} exchanges, alone
or one a line. Only the last record what the model was sent; elsewhere calls are derived by the
rule `before`: an answer saw the messages before it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.capture.importers.formats.chat_steps import ChatSteps, Record
from vmstore.capture.importers.formats.detect import FORMATS, HOLDS, holds, is_answer, is_exchange, is_header
from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, moment, unread
from vmstore.capture.steps import CallStep, MessageStep, MetadataStep, ParsedSource, Step, Track
from vmstore.core.page import Slot, Status
from vmstore.core.text.skeleton import loads
from vmstore.errors import InputError
from vmstore.providers import Shape, take_message, take_reply, take_request
from vmstore.providers.message import json_bytes, name_of
from vmstore.providers.reply import error_text
from vmstore.providers.request import split_request

ALIKE = (Shape.CHAT, Shape.ANTHROPIC)  # a body tells which of the two it is
ANSWERS = ("output", "usage", "status", "id", "object", "created_at", "error", "incomplete_details")


def read_messages(shape: Shape, source: SourceFile) -> ParsedSource:
    """The conversations of a file in a shape: one, or one for each line that holds a whole one."""
    if isinstance(source.document, list):
        tracks = [_listed(shape, source.document)]
    elif not source.lines:
        tracks = [_alone(shape, source.document)]
    elif any(_holds(shape, line.value) for line in source.lines):
        tracks = _held_by_lines(shape, source)
    else:
        tracks = [_by_lines(shape, source)]
    # What a file of messages grows by may tell its shape, so they are one source under any.
    return ParsedSource(format=FORMATS[shape], known_as=FORMATS[Shape.CHAT], tracks=tracks, torn=source.torn)


def _holds(shape: Shape, value: Any) -> bool:
    """Whether a value holds a conversation; chat's and Anthropic's may stand in one file."""
    if shape in ALIKE:
        return isinstance(value, dict) and isinstance(value.get(HOLDS[shape]), list)
    return holds(shape, value)


def _listed(shape: Shape, document: list[Any]) -> Track:
    """The conversation of a JSON list of messages."""
    talk = ChatSteps(shape)
    track = Track(key=None, steps=talk.steps)
    for n, message in enumerate(document, 1):
        raw = json_bytes(message)
        if n == 1 and is_header(message):
            _head(track, talk, raw, 1, message["vm"])
        elif is_exchange(message):
            talk.steps.append(_exchange(JsonLine(n, raw, message)))
        else:
            talk.hear(raw, n, message)
    return track


def _alone(shape: Shape, document: Record) -> Track:
    """The conversation of one object: an exchange, or what holds messages."""
    if not _holds(shape, document):
        return Track(key=None, steps=[_exchange(JsonLine(1, json_bytes(document), document))])
    talk = ChatSteps(shape)
    _hold(talk, document, None)
    return Track(key=None, steps=talk.steps)


def _by_lines(shape: Shape, source: SourceFile) -> Track:
    """The conversation of JSON lines: a message or an exchange each, perhaps a header first."""
    talk = ChatSteps(shape)
    track = Track(key=None, steps=talk.steps)
    for n, line in enumerate(source.lines):
        if line.problem is not None:
            talk.steps.append(unread(line))
        elif n == 0 and is_header(line.value):
            _head(track, talk, line.raw, line.number, line.value["vm"])
        elif is_exchange(line.value):
            talk.steps.append(_exchange(line))
        else:
            talk.hear(line.raw, line.number, line.value)
    return track


def _head(track: Track, talk: ChatSteps, raw: bytes, line: int, vm: Record) -> None:
    track.key = track.name = name_of(vm.get("session"))
    track.title, track.agent, track.user = (name_of(vm.get(key)) for key in ("title", "agent", "user"))
    note = MetadataStep(raw=raw, line=line, at=moment(vm.get("at")), aside=json_bytes(vm), title=track.title)
    talk.steps.append(note)


def _held_by_lines(shape: Shape, source: SourceFile) -> list[Track]:
    """One conversation for each line that holds one; what cannot be read stays with the one before.

    A line that answers on after another (`previous_response_id`) continues its conversation.
    """
    tracks: list[Track] = []
    strays: list[Step] = []
    steps = strays
    answered: dict[str, ChatSteps] = {}  # by the id of the last answer in it
    for line in source.lines:
        if not _holds(shape, line.value):
            steps.append(unread(line, line.problem or f"no object with {HOLDS[shape]}"))
            continue
        before = answered.pop(name_of(line.value.get("previous_response_id")) or "", None)
        talk = before or ChatSteps(shape)
        try:
            _hold(talk, line.value, line.number)
        except InputError as error:
            steps.append(unread(line, str(error)))
            continue
        steps = talk.steps
        if shape is Shape.RESPONSES and (name := name_of(line.value.get("id"))):
            answered[name] = talk
        if before is None:
            single = len(source.lines) == 1
            name = source.stem if single else f"{source.stem}-{line.number}"
            tracks.append(Track(key=None, name=name, part=str(line.number), steps=steps))
    if not tracks:
        return [Track(key=None, steps=strays)]
    tracks[0].steps = [*strays, *tracks[0].steps]
    return tracks


def _hold(talk: ChatSteps, body: Record, line: int | None) -> None:
    """Hears the conversation an object holds: its tools and system prompt first, an answer it has last."""
    shape = talk.shape
    talk.model = name_of(body.get("model"))
    answer = {key: body[key] for key in ANSWERS if key in body} if is_answer(shape, body) else {}
    about = {key: value for key, value in body.items() if key != HOLDS[shape] and key not in answer}
    split = split_request(
        {key: value for key, value in body.items() if key not in answer}, None if shape in ALIKE else shape
    )
    if about:
        raw = json_bytes(about)
        talk.steps.append(MetadataStep(raw=raw, line=line or 1, aside=raw))
    for n, (slot, message) in enumerate(split.messages, 1):
        raw = json_bytes(message)
        if slot is Slot.MESSAGES:
            talk.hear(raw, line or n, message)
        elif talk.stands(slot, raw):
            talk.steps.append(MessageStep(raw=raw, line=line or n, draft=take_message(split.shape, slot, message)))
    if answer:
        raw = json_bytes(answer)
        talk.hear(raw, line or len(split.messages) + 1, {"model": body.get("model"), **answer}, whole=False)


def _exchange(line: JsonLine) -> Step:
    """A recorded call: its request as it was sent, its response as it came."""
    record = line.value
    try:
        request = take_request(record["request"])
        reply = take_reply(Shape(request.shape), record.get("response"))
    except InputError as error:
        return unread(line, str(error))
    why = error_text(record.get("error"))
    if why is not None and reply.status is not Status.OK:
        reply = msgspec.structs.replace(reply, status=Status.FAILED, error=why)
    beside = {key: value for key, value in record.items() if key not in ("request", "response")}
    if beside:
        aside = loads(reply.aside) if reply.aside else {}
        reply = msgspec.structs.replace(reply, aside=json_bytes({**aside, "exchange": beside}))
    return CallStep(
        raw=line.raw,
        line=line.number,
        at=moment(record.get("at")),
        reply=msgspec.structs.replace(reply, model=reply.model or request.model),
        request=request.drafts,
        rest=request.rest,
        shape=request.shape,
        joins=bool(reply.drafts),
    )
