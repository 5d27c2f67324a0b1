"""Turns the messages of a conversation into steps, one after the other, with what their key `vm` says of them.

Messages are of any of the four shapes. Items of the Responses API that the model gave in a row are
one call; of the other shapes each of its messages is one.

The key `vm` is ours: names, times, types, sources and usage, which a chat message has no place
for. The model never saw it. All of its fields are optional: `id`, `at`, `type`, `derives`,
`supersedes`, `references`, `tags`, `importance`, `actor`, `keeps_from`; of answers also `usage`,
`model`, `latency_ms`, `cost_usd`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.capture.importers.formats.detect import is_answer
from vmstore.capture.importers.formats.jsonl import AT_MS_MAX, moment
from vmstore.capture.steps import CallStep, ContinuationStep, MessageStep, Step, SummaryStep, UnreadableStep
from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import LinkKind, Modality, PageType, Role, Slot, Status
from vmstore.errors import InputError
from vmstore.providers import Shape, take_message, take_reply
from vmstore.providers.message import json_bytes, name_of
from vmstore.providers.reply import asks, counted, microseconds, nanodollars

Record = dict[str, Any]

SAYS = ("content", "tool_calls", "function_call", "refusal", "audio")
ASKS = ("tool_calls", "function_call")
LINKS = {
    "derives": LinkKind.DERIVES,
    "supersedes": LinkKind.SUPERSEDES,
    "references": LinkKind.REFERENCES,
}


class ChatSteps:
    """The steps of one conversation as its messages come in."""

    def __init__(self, shape: Shape = Shape.CHAT, model: str | None = None) -> None:
        self.steps: list[Step] = []
        self.shape = shape
        self.model = model  # of answers that name none themselves
        self._named: dict[str, int] = {}  # which step a message's own name stands for
        self._answering = False  # the last message was the model's
        self._standing: dict[Slot, bytes] = {}

    def hear(self, raw: bytes, line: int, message: Any, *, whole: bool = True) -> None:
        """Adds the step of one message; one that cannot be read is kept as it stands.

        An answer that is not `whole` was put together from what the source says of it.
        """
        try:
            step = (
                self._answer(raw, line, message, whole=whole)
                if is_answer(self.shape, message)
                else self._step(raw, line, message)
            )
        except InputError as error:
            step = UnreadableStep(raw=raw, line=line, reason=str(error))
        else:
            self._answering = isinstance(step, (CallStep, ContinuationStep))
        self.steps.append(step)

    def stands(self, slot: Slot, raw: bytes) -> bool:
        """Whether tools or instructions are new in the conversation; takes them as its own."""
        new = self._standing.get(slot) != raw
        self._standing[slot] = raw
        return new

    def _answer(self, raw: bytes, line: int, body: Record, *, whole: bool) -> CallStep:
        """The call of an answer that is there as the provider gave it."""
        reply = take_reply(self.shape, body)
        reply = msgspec.structs.replace(reply, model=reply.model or self.model, body=reply.body if whole else None)
        at = body.get("created_at")  # in seconds, where an answer tells it at all
        at = moment(at * 1000) if isinstance(at, (int, float)) and abs(at) < AT_MS_MAX else None
        return CallStep(raw=raw, line=line, at=at, reply=reply, joins=bool(reply.drafts))

    def _step(self, raw: bytes, line: int, message: Any) -> Step:
        bare, vm = _parted(self.shape, message)
        draft = _noted(take_message(self.shape, Slot.MESSAGES, bare), vm)
        at = moment(vm.get("at"))
        kept_from = self._kept_from(vm.get("keeps_from"))
        if draft.hint is not None:
            self._named[draft.hint] = len(self.steps)
        if "keeps_from" in vm:
            return SummaryStep(raw=raw, line=line, at=at, draft=draft, kept_from=kept_from)
        if draft.role is not Role.ASSISTANT:
            return MessageStep(raw=raw, line=line, at=at, draft=draft)
        reply = ReplyDraft(
            Status.OK,
            (draft,),
            model=name_of(vm.get("model")) or self.model,
            usage=_usage(vm),
            final=not asks((draft,)) and not (isinstance(bare, dict) and any(bare.get(key) for key in ASKS)),
        )
        if self.shape is Shape.RESPONSES and self._answering:
            return ContinuationStep(raw=raw, line=line, at=at, reply=reply)
        return CallStep(raw=raw, line=line, at=at, reply=reply)

    def _kept_from(self, name: Any) -> int | None:
        if name is None:
            return None
        if not isinstance(name, str) or name not in self._named:
            raise InputError(f"keeps_from refers to {name!r}, but no earlier message has that ID")
        return self._named[name]


def _parted(shape: Shape, message: Any) -> tuple[Any, Record]:
    """A message without its `vm`, and that; refuses what is no message of its shape."""
    if isinstance(message, str) and shape in (Shape.RESPONSES, Shape.GEMINI):
        return message, {}
    if shape is Shape.RESPONSES:
        known = isinstance(message, dict) and any(isinstance(message.get(key), str) for key in ("type", "role"))
        what = "no object with a type or a role"
    elif shape is Shape.GEMINI:
        known, what = isinstance(message, dict) and "parts" in message, "no object with parts"
    else:
        known = isinstance(message, dict) and isinstance(message.get("role"), str)
        what = "no object with a role"
    if not known:
        raise InputError(f"not a message: {what}")
    if shape in (Shape.CHAT, Shape.ANTHROPIC) and not any(key in message for key in SAYS):
        raise InputError(f"a message of role {message['role']!r} without content or tool calls")
    vm = message.get("vm", {})
    if not isinstance(vm, dict):
        raise InputError(f"vm is {type(vm).__name__}, not an object")
    return {key: value for key, value in message.items() if key != "vm"}, vm


def _noted(draft: Draft, vm: Record) -> Draft:
    """A draft with what `vm` says of it: its name, its type, where it comes from."""
    if not vm:
        return draft
    default = PageType.SUMMARY if "keeps_from" in vm else PageType.TRANSCRIPT
    kind = PageType.of(str(vm.get("type")), default)
    assert isinstance(kind, PageType)
    # A claim or a summary that is put in front of the model is nobody's word.
    spoken = kind is PageType.TRANSCRIPT and "keeps_from" not in vm
    return msgspec.structs.replace(
        draft,
        parts=draft.parts
        if spoken
        else tuple(
            msgspec.structs.replace(part, type=kind) if part.modality is Modality.TEXT else part for part in draft.parts
        ),
        human=draft.human and spoken,
        aside=json_bytes(vm),
        hint=name_of(vm.get("id")) or draft.hint,
        links=tuple((LINKS[key], name) for key in LINKS for name in _names(vm.get(key))),
        tags=tuple(dict.fromkeys(_names(vm.get("tags")))),
        importance=_importance(vm.get("importance")),
        actor=name_of(vm.get("actor")),
    )


def _importance(value: Any) -> int | None:
    """A share from 0 to 1 in parts per million; what is none is left out."""
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return round(value * 1_000_000) if valid else None


def _names(value: Any) -> list[str]:
    return [name for item in value if (name := name_of(item)) is not None] if isinstance(value, list) else []


def _usage(vm: Record) -> TokenUsage:
    usage = vm.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return TokenUsage(
        tokens_in=counted(usage.get("tokens_in")),
        tokens_cached=counted(usage.get("tokens_cached")),
        tokens_out=counted(usage.get("tokens_out")),
        cost=nanodollars(vm.get("cost_usd")),
        latency=microseconds(vm.get("latency_ms")),
        tokens_written=counted(usage.get("tokens_written")),
    )
