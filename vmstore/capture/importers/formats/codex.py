"""Reads rollouts of the Codex agent: JSON lines of a time, a type and a payload.

The files hold the items of the conversation, not the requests, so every call is derived, by the
rule `codex`:
 - A call saw the base instructions of the header and the items before it, and answered with the
   items of the model's that follow in a row: reasoning, messages, calls of tools.
 - A token count after items of the model's is what their call used; one before any is of the
   call that follows.
 - A compaction replaces the items by its `replacement_history`. Where an older one has none, what
   was said by people and by the program stays, and its message stands after it as the summary.
 - A rollback takes the last turns of the person's away.
 - A turn that is aborted, or an error, while an answer was awaited is a call that left nothing.
 - Words that the program puts in the person's place (environment, instructions, notices) open no
   turn. Snapshots of the work tree are no items of the conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from vmstore.capture.importers.formats.codex_record import (
    Record,
    is_codex,
    is_own_words,
    kind_of,
    payload_of,
    saying,
    summed_up,
    title_of,
    usage_of,
)
from vmstore.capture.importers.formats.jsonl import JsonLine, SourceFile, moment, unread
from vmstore.capture.steps import (
    CallStep,
    ContinuationStep,
    MessageRef,
    MessageStep,
    MetadataStep,
    ParsedSource,
    RewriteStep,
    Step,
    Track,
)
from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import Role, Slot, Status
from vmstore.errors import InputError
from vmstore.providers.message import json_bytes, name_of, spoken
from vmstore.providers.reply import error_text
from vmstore.providers.responses import take_item

NOTES = frozenset(
    {
        "turn_context",
        "world_state",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "retained_context",
        "rollout_reference",
        "realtime_item",
    }
)
INSTRUCTING = (Role.USER, Role.DEVELOPER, Role.SYSTEM)  # who speaks in what an old compaction keeps
STOPPED = b"aborted"  # how the output of a tool begins that was stopped with its turn
ENDS = {"turn_aborted": Status.ABORTED, "error": Status.FAILED}


def recognises(source: SourceFile) -> bool:
    """Whether a file holds a line of a rollout."""
    return any(is_codex(line.value) for line in source.lines)


def read_codex(source: SourceFile) -> ParsedSource:
    """The session of a rollout."""
    rollout = _Rollout()
    for line in source.lines:
        try:
            rollout.take(line)
        except InputError as error:
            rollout.steps.append(unread(line, str(error)))
    track = Track(key=rollout.key, name=rollout.key or source.stem, steps=rollout.steps, agent=rollout.agent)
    return ParsedSource(format="codex", tracks=[track], torn=source.torn)


class _Item(msgspec.Struct, frozen=True):
    """An item that is in the conversation: where it came from, what it says."""

    stand: MessageRef
    draft: Draft

    @property
    def key(self) -> Hashable:
        """Equal for items that say the same."""
        return saying(self.draft)


class _Rollout:
    """One pass over a file."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.key: str | None = None
        self.agent: str | None = None
        self.model: str | None = None
        self.items: list[_Item] = []  # what the conversation holds
        self.answer: int | None = None  # the step of the last answer, while its items may go on
        self.counted: TokenUsage | None = None  # what it used, once that was reported
        self.final = True
        self.awaited = False  # somebody spoke and the model has not answered yet
        self.used = TokenUsage()  # what the next answer used, where that was reported before it
        self.reported: Any = None  # the last token count, which is repeated with each change of limits

    def take(self, line: JsonLine) -> None:
        """Adds the step of one line."""
        if line.problem is not None:
            self.steps.append(unread(line))
            return
        kind, payload = kind_of(line.value), payload_of(line.value)
        if kind == "session_meta":
            self._meta(line, payload)
        elif kind == "response_item":
            self._item(line, payload)
        elif kind == "inter_agent_communication":
            self._say(line, take_item(payload))
        elif kind == "compacted":
            self._compacted(line, payload)
        elif kind in ("event_msg", "token_usage_record"):
            self._event(line, kind, payload)
        elif kind in NOTES:
            self.model = name_of(payload.get("model")) or self.model
            self._note(line)
        else:
            raise InputError(f"unknown record type {kind!r}")

    def _meta(self, line: JsonLine, payload: Record) -> None:
        """The header: of a copied session a second one follows, of the one it was copied from."""
        first = self.key is None
        if first:
            self.key = name_of(payload.get("id")) or name_of(payload.get("session_id"))
            self.agent = name_of(payload.get("agent_nickname")) or name_of(payload.get("agent_role"))
        base = payload.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else base
        if not first or not isinstance(text, str) or not text:
            self._note(line)
            return
        rest = {**line.value, "payload": {key: value for key, value in payload.items() if key != "base_instructions"}}
        draft = msgspec.structs.replace(spoken(text, Role.SYSTEM, Slot.SYSTEM), aside=json_bytes(rest))
        self.steps.append(MessageStep(raw=line.raw, line=line.number, at=_at(line), draft=draft))

    def _item(self, line: JsonLine, item: Record) -> None:
        if not isinstance(item.get("type"), str):
            raise InputError("an item without a type")
        if item["type"] == "ghost_snapshot":
            self._note(line)
            return
        draft = take_item(item)
        if draft.role is not Role.ASSISTANT:
            human = draft.human and is_own_words(item.get("content"))
            self._say(line, msgspec.structs.replace(draft, human=human))
            return
        reply = ReplyDraft(Status.OK, (draft,), model=self.model, usage=self.used)
        self.final = not any(part.is_call for part in draft.parts)
        reply = msgspec.structs.replace(reply, final=self.final)
        self.items.append(_Item(MessageRef(len(self.steps)), draft))
        fields: dict[str, Any] = {"raw": line.raw, "line": line.number, "at": _at(line), "reply": reply}
        if self.answer is None:
            self.answer, self.used = len(self.steps), TokenUsage()
            self.steps.append(CallStep(**fields))
        else:
            self.steps.append(ContinuationStep(**fields))
        self.awaited, self.counted = False, None

    def _say(self, line: JsonLine, draft: Draft) -> None:
        self.items.append(_Item(MessageRef(len(self.steps)), draft))
        self.steps.append(MessageStep(raw=line.raw, line=line.number, at=_at(line), draft=draft))
        self.answer = None
        stopped = draft.role is Role.TOOL and draft.parts[0].content.startswith(STOPPED)
        self.awaited = not stopped and (self.awaited or draft.human or draft.role is Role.TOOL)

    def _note(self, line: JsonLine) -> None:
        note = MetadataStep(
            raw=line.raw, line=line.number, at=_at(line), aside=json_bytes(line.value), title=title_of(line.value)
        )
        self.steps.append(note)

    # ---- what events say of calls

    def _event(self, line: JsonLine, kind: str, payload: Record) -> None:
        event = kind if kind != "event_msg" else name_of(payload.get("type"))
        if event in ("token_count", "token_usage_record"):
            self._count(line, payload)
        elif event == "thread_rolled_back":
            self._roll_back(line, payload.get("num_turns"))
        elif event in ENDS and self.awaited:
            self.awaited = False
            why = error_text(payload.get("message") or payload.get("reason"))
            reply = ReplyDraft(ENDS[event], model=self.model, error=why, aside=json_bytes(line.value))
            self.steps.append(CallStep(raw=line.raw, line=line.number, at=_at(line), reply=reply, joins=False))
        else:
            self._note(line)

    def _count(self, line: JsonLine, payload: Record) -> None:
        """Takes the usage of a call: that of the last answer, else of the one that follows."""
        counted, usage = usage_of(payload)
        if usage is None or counted == self.reported:
            self._note(line)
            return
        self.reported = counted
        if self.answer is None or self.counted is not None:
            if usage != self.counted:  # reported twice, in two kinds of records
                self.used = usage
            self._note(line)
            return
        self.counted = usage
        first = self.steps[self.answer]
        assert isinstance(first, CallStep), "an answer begins with its call"
        # Where the file reports usage later on, the call itself can be counted with it.
        with_usage = msgspec.structs.replace(first.reply, usage=usage)
        self.steps[self.answer] = msgspec.structs.replace(first, reply=with_usage)
        reply = ReplyDraft(Status.OK, model=self.model, usage=usage, final=self.final, aside=json_bytes(line.value))
        self.steps.append(ContinuationStep(raw=line.raw, line=line.number, at=_at(line), reply=reply))

    # ---- what takes items away

    def _compacted(self, line: JsonLine, payload: Record) -> None:
        listed, message = payload.get("replacement_history"), payload.get("message")
        if isinstance(listed, list):
            self._recast(line, self._replaced(listed, name_of(message) or ""))
        elif isinstance(message, str) and message:
            kept = [item for item in self.items if item.draft.role in INSTRUCTING]
            self._recast(line, [*kept, summed_up({"type": "message", "role": "user", "content": message}, message)])
        else:
            self._note(line)  # it says neither what stays nor what it was made into

    def _replaced(self, listed: list[Any], message: str) -> list[_Item | Draft]:
        """Each item of a list as the one the conversation holds already, or as a new one."""
        known: dict[Hashable, list[_Item]] = {}
        for item in reversed(self.items):
            known.setdefault(item.key, []).append(item)
        now: list[_Item | Draft] = []
        for value in listed:
            draft = summed_up(value, message)
            same = known.get(saying(draft))
            now.append(same.pop() if same else draft)
        return now

    def _roll_back(self, line: JsonLine, turns: Any) -> None:
        opened = [n for n, item in enumerate(self.items) if item.draft.human]
        if type(turns) is not int or turns < 1 or not opened:
            self._note(line)
            return
        self._recast(line, self.items[: opened[max(0, len(opened) - turns)]])

    def _recast(self, line: JsonLine, now: Sequence[_Item | Draft]) -> None:
        """The conversation is from here on these items."""
        at, nth = len(self.steps), 0
        items: list[_Item] = []
        for entry in now:
            if isinstance(entry, _Item):
                items.append(entry)
            else:
                items.append(_Item(MessageRef(at, nth), entry))
                nth += 1
        stands = tuple(entry.stand if isinstance(entry, _Item) else entry for entry in now)
        payload = {key: value for key, value in payload_of(line.value).items() if key != "replacement_history"}
        aside = json_bytes({**line.value, "payload": payload})
        self.steps.append(RewriteStep(raw=line.raw, line=line.number, at=_at(line), stands=stands, aside=aside))
        self.items, self.answer, self.awaited, self.used = items, None, False, TokenUsage()


def _at(line: JsonLine) -> int | None:
    return moment(line.value.get("timestamp"))
