"""Messages and records on their way in, without what their session is not to hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from vmstore.capture.steps import (
    CallStep,
    ContinuationStep,
    DetachedPages,
    MessageRef,
    MessageStep,
    MetadataStep,
    ParsedSource,
    RewriteStep,
    Step,
    SummaryStep,
    Track,
)
from vmstore.core.draft import Draft, Part, ReplyDraft
from vmstore.core.page import Modality, Origin
from vmstore.core.redaction import Redaction
from vmstore.redact.redactor import Redactor

READABLE = (Modality.TEXT, Modality.STRUCTURED)


def draft_of(door: Redactor, draft: Draft, where: str) -> Draft:
    """A message with placeholders in its texts, its names and what the source keeps beside it."""
    return msgspec.structs.replace(
        draft,
        skeleton=door.content(draft.skeleton, where),
        parts=tuple(_part(door, part, where) for part in draft.parts),
        aside=None if draft.aside is None else door.content(draft.aside, where),
        hint=_text(door, draft.hint, where),
        links=tuple((kind, door.text(hint, where)) for kind, hint in draft.links),
        tags=tuple(door.text(tag, where) for tag in draft.tags),
        actor=_text(door, draft.actor, where),
        metadata={name: door.text(value, where) for name, value in draft.metadata.items()},
    )


def reply_of(door: Redactor, reply: ReplyDraft, where: str) -> ReplyDraft:
    """An answer with placeholders."""
    return msgspec.structs.replace(
        reply,
        drafts=tuple(draft_of(door, draft, where) for draft in reply.drafts),
        body=None if reply.body is None else door.content(reply.body, where),
        aside=None if reply.aside is None else door.content(reply.aside, where),
        stop=_text(door, reply.stop, where),
        model=_text(door, reply.model, where),
        error=_text(door, reply.error, where),
    )


def reading_of(reading: ParsedSource, policy: Redaction) -> tuple[ParsedSource, dict[str, Redactor]]:
    """A source with placeholders in every record, and the door of each of its tracks.

    What a record looks like depends on it and on those before it, so one that has grown is the
    same as far as it was; a fork continues from the state of its parent.
    """
    doors: dict[str, Redactor] = {}
    tracks = []
    steps: dict[str, list[Step]] = {}
    for track in reading.tracks:
        door = doors[track.part] = Redactor(policy)
        before = steps.get(track.parent or "", [])[: track.inherits] if track.origin is Origin.FORK else []
        for step in before:
            step_of(door, step)
        redrawn = list(track.steps)
        steps[track.part] = [*before, *redrawn]
        tracks.append(_track(door, track, [step_of(door, step) for step in redrawn]))
        door.settle(0)
    return msgspec.structs.replace(reading, tracks=tracks), doors


def _track(door: Redactor, track: Track, steps: Sequence[Step]) -> Track:
    door.clean(track.key or "", "the name that the source gives the session")
    texts = {word: _text(door, getattr(track, word), "the source") for word in ("name", "agent", "user", "title")}
    return msgspec.structs.replace(track, steps=steps, **texts)


def step_of(door: Redactor, step: Step) -> Step:
    """A record of a source with placeholders."""
    where = f"record {step.line}"
    changed: dict[str, Any] = {}
    match step:
        case MessageStep() | SummaryStep() | DetachedPages():
            changed["draft"] = draft_of(door, step.draft, where)
        case CallStep():
            if step.request is not None:
                changed["request"] = tuple(draft_of(door, draft, where) for draft in step.request)
            changed["rest"] = None if step.rest is None else door.content(step.rest, where)
            changed["reply"] = reply_of(door, step.reply, where)
        case ContinuationStep():
            changed["reply"] = reply_of(door, step.reply, where)
        case RewriteStep():
            changed["stands"] = tuple(
                stand if isinstance(stand, MessageRef) else draft_of(door, stand, where) for stand in step.stands
            )
            changed["aside"] = None if step.aside is None else door.content(step.aside, where)
        case MetadataStep():
            changed["aside"], changed["title"] = door.content(step.aside, where), _text(door, step.title, where)
    return msgspec.structs.replace(step, raw=door.content(step.raw, where), **changed)


def _part(door: Redactor, part: Part, where: str) -> Part:
    if part.modality not in READABLE:
        return part
    return msgspec.structs.replace(
        part,
        content=door.content(part.content, where),
        call_id=_text(door, part.call_id, where),
        tool=_text(door, part.tool, where),
        mime_name=_text(door, part.mime_name, where),
    )


def _text(door: Redactor, text: str | None, where: str) -> str | None:
    return None if text is None else door.text(text, where)
