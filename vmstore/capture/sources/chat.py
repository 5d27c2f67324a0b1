"""Reads conversations written as chat-completions messages.

Five forms: a JSON list of messages; JSON lines of one message each; one object with `messages`;
JSON lines of such objects, a session each; JSON lines of {"request", "response"} exchanges. Only
the last records what the model was sent; elsewhere each assistant message is a call derived by
the rule `before`: it saw the messages before it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.capture.shapes import Shape, take_message, take_reply, take_request
from vmstore.capture.shapes.message import json_bytes, name_of
from vmstore.capture.shapes.reply import error_text
from vmstore.capture.shapes.shape import split_request
from vmstore.capture.skeleton import loads
from vmstore.capture.sources.lines import Line, Source, moment, unread
from vmstore.capture.sources.step import Answer, Note, Reading, Say, Step, Track
from vmstore.capture.sources.talk import Record, Talk
from vmstore.core.page import Slot, Status
from vmstore.errors import InputError


def recognises(source: Source) -> bool:
    """Whether a file holds chat messages, objects with messages, or exchanges."""
    document = source.document
    if isinstance(document, list):
        return any(_is_message(item) for item in document)
    if not source.lines:
        return _holds_messages(document)
    return any(_is_message(v) or _holds_messages(v) or _is_exchange(v) for v in _values(source))


def read_chat(source: Source) -> Reading:
    """The conversations of a file: one, or one for each line that holds a whole one."""
    if isinstance(source.document, list):
        tracks = [_listed(source.document)]
    elif not source.lines:
        tracks = [_held(Talk(), source.document, None)]
    elif any(_holds_messages(value) for value in _values(source)):
        tracks = _held_by_lines(source)
    else:
        tracks = [_by_lines(source)]
    return Reading(format="chat-completions", tracks=tracks, torn=source.torn)


def _values(source: Source) -> list[Any]:
    return [line.value for line in source.lines]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and (isinstance(value.get("role"), str) or _is_header(value))


def _is_header(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("vm"), dict) and "role" not in value


def _holds_messages(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list)


def _is_exchange(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("request"), dict)


def _listed(document: list[Any]) -> Track:
    """The conversation of a JSON list of messages."""
    talk = Talk()
    track = Track(key=None, steps=talk.steps)
    for n, message in enumerate(document, 1):
        raw = json_bytes(message)
        if n == 1 and _is_header(message):
            _head(track, talk, raw, 1, message["vm"])
        else:
            talk.hear(raw, n, message)
    return track


def _by_lines(source: Source) -> Track:
    """The conversation of JSON lines: a message or an exchange each, perhaps a header first."""
    talk = Talk()
    track = Track(key=None, steps=talk.steps)
    for n, line in enumerate(source.lines):
        if line.problem is not None:
            talk.steps.append(unread(line))
        elif n == 0 and _is_header(line.value):
            _head(track, talk, line.raw, line.number, line.value["vm"])
        elif _is_exchange(line.value):
            talk.steps.append(_exchange(line))
        else:
            talk.hear(line.raw, line.number, line.value)
    return track


def _head(track: Track, talk: Talk, raw: bytes, line: int, vm: Record) -> None:
    track.key = track.name = name_of(vm.get("session"))
    track.title, track.agent, track.user = (name_of(vm.get(key)) for key in ("title", "agent", "user"))
    note = Note(raw=raw, line=line, at=moment(vm.get("at")), aside=json_bytes(vm), title=track.title)
    talk.steps.append(note)


def _held_by_lines(source: Source) -> list[Track]:
    """One conversation for each line that holds one; what cannot be read stays with the one before."""
    tracks: list[Track] = []
    strays: list[Step] = []
    steps = strays
    for line in source.lines:
        if not _holds_messages(line.value):
            steps.append(unread(line, line.problem or "no object with messages"))
            continue
        talk = Talk()
        try:
            track = _held(talk, line.value, line.number)
        except InputError as error:
            steps.append(unread(line, str(error)))
            continue
        steps = talk.steps
        track.part = str(line.number)
        track.name = source.stem if len(source.lines) == 1 else f"{source.stem}-{line.number}"
        tracks.append(track)
    if not tracks:
        return [Track(key=None, steps=strays)]
    tracks[0].steps = [*strays, *tracks[0].steps]
    return tracks


def _held(talk: Talk, body: Record, line: int | None) -> Track:
    """The conversation an object with `messages` holds, its tools and system prompt first."""
    talk.model = name_of(body.get("model"))
    about = {key: value for key, value in body.items() if key != "messages"}
    if about:
        raw = json_bytes(about)
        talk.steps.append(Note(raw=raw, line=line or 1, aside=raw))
    split = split_request(body)
    for n, (slot, message) in enumerate(split.messages, 1):
        if slot is Slot.MESSAGES:
            talk.hear(json_bytes(message), line or n, message)
        else:
            draft = take_message(split.shape, slot, message)
            talk.steps.append(Say(raw=json_bytes(message), line=line or n, draft=draft))
    return Track(key=None, steps=talk.steps)


def _exchange(line: Line) -> Step:
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
        told = loads(reply.aside) if reply.aside else {}
        reply = msgspec.structs.replace(reply, aside=json_bytes({**told, "exchange": beside}))
    return Answer(
        raw=line.raw,
        line=line.number,
        at=moment(record.get("at")),
        reply=msgspec.structs.replace(reply, model=reply.model or request.model),
        request=request.drafts,
        rest=request.rest,
        shape=request.shape,
        joins=bool(reply.drafts),
    )
