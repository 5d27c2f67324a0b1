"""Reads SWE-agent trajectories: one JSON document with `trajectory`, `history` or both.

Where the steps of a trajectory carry their messages, the requests are recorded:
 - `query` is its own step's request;
 - `messages` is the conversation after its step, which the next step was sent; the first step was
   sent what stands before its answer, the last list was never sent.
Where they carry neither, calls are derived by the rule `before` (an answer saw the messages before
it) from `history`, or from the trajectory's responses and observations where that is missing too.

What stands in a message for the agent's own use (agent, thought, action, kind) is kept beside it.
The first message of the user's before any answer is the task, a person's word; demonstrations and
observations are not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from vmstore.capture.importers.formats.jsonl import SourceFile
from vmstore.capture.steps import CallStep, MessageStep, MetadataStep, ParsedSource, Step, Track, UnreadableStep
from vmstore.core.draft import Draft, ReplyDraft
from vmstore.core.page import PageType, Role, Slot, Status
from vmstore.core.text.skeleton import loads
from vmstore.providers import Shape, take_message
from vmstore.providers.message import json_bytes, name_of

Record = dict[str, Any]

BOOKKEEPING = frozenset({"agent", "message_type", "thought", "action", "is_demo", "tags"})
STAND_IN_MESSAGES = frozenset({"messages", "query", "response", "thought", "observation"})


def recognises(source: SourceFile) -> bool:
    """Whether a file is one object with a list `trajectory` or `history`."""
    document = source.document
    lists = ("trajectory", "history")
    return isinstance(document, dict) and any(isinstance(document.get(key), list) for key in lists)


def read_swe_agent(source: SourceFile) -> ParsedSource:
    """The session of a trajectory; the file has no name of its own for it."""
    document = source.document
    run = _Run(document)
    steps = run.steps()
    outcome = {key: value for key, value in document.items() if key not in ("trajectory", "history")}
    if outcome:
        _conclude(steps, outcome)
    return ParsedSource(format="swe-agent", tracks=[Track(key=None, steps=steps)])


class _Run:
    """A document's lists, and each of their messages taken apart once."""

    def __init__(self, document: Record) -> None:
        self.trajectory = _list(document.get("trajectory"))
        self.history = _list(document.get("history"))
        self.model = _model(document.get("replay_config"))
        self._drafts: dict[tuple[bytes, bool, bool], Draft] = {}

    def steps(self) -> list[Step]:
        """The run's steps, from the best there is of them."""
        if any(_listed(step, key) for step in self.trajectory for key in ("messages", "query")):
            return [step for n in range(len(self.trajectory)) for step in self._recorded(n)]
        return self._heard(self.history or _retold(self.trajectory))

    def _recorded(self, n: int) -> list[Step]:
        """The steps of one trajectory step: its answer, then what was observed."""
        step = self.trajectory[n]
        if not isinstance(step, dict):
            return [_stray(step, n + 1)]
        spoken = self._said(n)
        answer, *observed = self._taken(spoken)
        request = self._asked(n)
        beside = {key: value for key, value in step.items() if key not in STAND_IN_MESSAGES}
        made: list[Step] = [
            CallStep(
                raw=json_bytes(step),
                line=n + 1,
                reply=self._reply(answer, step.get("action"), n == len(self.trajectory) - 1, beside),
                request=tuple(self._taken(request)) if request else None,
            )
        ]
        made += [
            MessageStep(raw=json_bytes(message), line=n + 1, draft=draft)
            for message, draft in zip(spoken[1:], observed, strict=True)
        ]
        return made

    def _asked(self, n: int) -> list[Any]:
        """The request of step n, empty where the file does not have it."""
        if query := _listed(self.trajectory[n], "query"):
            return query
        if n:
            return _listed(self.trajectory[n - 1], "messages")
        after = _listed(self.trajectory[0], "messages")
        return after[: _last_answer(after)]

    def _said(self, n: int) -> list[Any]:
        """The answer of step n and the messages observed after it."""
        later = _listed(self.trajectory[n + 1], "query") if n + 1 < len(self.trajectory) else self.history
        for after in (_listed(self.trajectory[n], "messages"), later):
            if (at := _last_answer(after)) < len(after):
                return after[at:]
        return _retold([self.trajectory[n]])

    def _heard(self, messages: Sequence[Any]) -> list[Step]:
        """The steps of a conversation whose requests are not in the file."""
        steps: list[Step] = []
        drafts = self._taken(messages)
        for n, (message, draft) in enumerate(zip(messages, drafts, strict=True), 1):
            raw = json_bytes(message)
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                steps.append(_stray(message, n))
            elif draft.role is Role.ASSISTANT and not message.get("is_demo"):
                last = not any(d.role is Role.ASSISTANT for d in drafts[n:])
                reply = self._reply(draft, message.get("action"), last, {})
                steps.append(CallStep(raw=raw, line=n, reply=reply))
            else:
                steps.append(MessageStep(raw=raw, line=n, draft=draft))
        return steps

    def _reply(self, draft: Draft, action: Any, last: bool, beside: Record) -> ReplyDraft:
        words = action.split() if isinstance(action, str) else []
        asks = bool(words) or any(part.is_call for part in draft.parts)
        return ReplyDraft(
            Status.OK,
            (draft,),
            model=self.model,
            final=not asks or (last and words[:1] == ["submit"]),
            aside=json_bytes(beside) if beside else None,
        )

    def _taken(self, messages: Sequence[Any]) -> list[Draft]:
        """The drafts of messages in a row; a message met again, in whatever request, is the same draft."""
        drafts, task, answered = [], False, False
        for message in messages:
            role = message.get("role") if isinstance(message, dict) else None
            demo = isinstance(message, dict) and bool(message.get("is_demo"))
            human = role == "user" and not (demo or task or answered)
            drafts.append(self._draft(message, human, observed=role == "user" and answered and not demo))
            task, answered = task or human, answered or (role == "assistant" and not demo)
        return drafts

    def _draft(self, message: Any, human: bool, observed: bool) -> Draft:
        key = (json_bytes(message), human, observed)
        if key not in self._drafts:
            self._drafts[key] = _take(message, human, observed)
        return self._drafts[key]


def _take(message: Any, human: bool, observed: bool) -> Draft:
    if not isinstance(message, dict):
        return take_message(Shape.CHAT, Slot.MESSAGES, message)
    bare = {key: value for key, value in message.items() if key not in BOOKKEEPING}
    beside = {key: value for key, value in message.items() if key in BOOKKEEPING}
    draft = take_message(Shape.CHAT, Slot.MESSAGES, bare)
    parts = draft.parts
    ids = message.get("tool_call_ids")
    if draft.role is Role.TOOL and isinstance(ids, list) and len(ids) == 1:
        parts = tuple(msgspec.structs.replace(part, call_id=name_of(ids[0])) for part in parts)
    if observed:
        parts = tuple(msgspec.structs.replace(part, type=PageType.ARTIFACT) for part in parts)
    aside = json_bytes(beside) if beside else None
    return msgspec.structs.replace(draft, parts=parts, human=human, aside=aside)


def _conclude(steps: list[Step], outcome: Record) -> None:
    """Keeps what the file says of the whole run beside its last answer.

    As a step of its own it would change with each step a running agent adds.
    """
    for n, step in reversed(list(enumerate(steps))):
        if isinstance(step, CallStep):
            aside = loads(step.reply.aside) if step.reply.aside else {}
            reply = msgspec.structs.replace(step.reply, aside=json_bytes({**aside, "run": outcome}))
            steps[n] = msgspec.structs.replace(step, reply=reply)
            return
    raw = json_bytes(outcome)
    steps.append(MetadataStep(raw=raw, line=len(steps) + 1, aside=raw))


def _retold(trajectory: Sequence[Any]) -> list[Any]:
    """The messages a trajectory's steps amount to, where nothing in the file says how they were sent."""
    messages: list[Any] = []
    for step in trajectory:
        if not isinstance(step, dict):
            messages.append(step)
            continue
        messages.append({"role": "assistant", "content": step.get("response"), "action": step.get("action")})
        if isinstance(observation := step.get("observation"), str):
            messages.append({"role": "user", "content": observation})
    return messages


def _last_answer(messages: Sequence[Any]) -> int:
    """The index of the last assistant message; the length where there is none."""
    for n in range(len(messages) - 1, -1, -1):
        if isinstance(messages[n], dict) and messages[n].get("role") == "assistant":
            return n
    return len(messages)


def _listed(step: Any, key: str) -> list[Any]:
    return _list(step.get(key)) if isinstance(step, dict) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _stray(entry: Any, n: int) -> UnreadableStep:
    return UnreadableStep(raw=json_bytes(entry), line=n, reason=f"no message: {type(entry).__name__} without a role")


def _model(config: Any) -> str | None:
    """The model a run's configuration names; newer files hold the configuration as JSON text."""
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except ValueError:
            return None
    for key in ("agent", "model", "name"):
        config = config.get(key) if isinstance(config, dict) else None
    return name_of(config)
