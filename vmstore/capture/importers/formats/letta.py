"""Reads Letta agent files: one JSON document of an agent, or of several, with tools, memory and messages.

The files hold what was said and which messages are in context at the end, not what was sent, so
every call is derived, by the rule `letta`:
 - A call saw the tool schemas, the last system message before it, and the messages before it.
 - A system message rebuilt after a memory block changed takes the place of the one before.
 - A notice that earlier messages are hidden is a summary: it takes the place of all messages
   before it but those that are in context at the end, and where a later notice hid more, but those
   since the last answer.
 - Whatever else is not in context at the end leaves before the last answer that is.
 - Memory blocks are pages of their own under their label; the system messages that show one derive
   from it. They stand in no context.
Notices, logins and heartbeats open no turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from vmstore.capture.importers.formats.jsonl import SourceFile, moment
from vmstore.capture.steps import (
    CallStep,
    DetachedPages,
    MessageRef,
    MessageStep,
    ParsedSource,
    RewriteStep,
    Step,
    Track,
    UnreadableStep,
)
from vmstore.core.draft import Draft, ReplyDraft
from vmstore.core.page import LinkKind, PageType, Role, Slot, Status
from vmstore.core.text.skeleton import loads
from vmstore.errors import InputError
from vmstore.providers import Shape, take_message
from vmstore.providers.message import json_bytes, name_of, schemas, spoken
from vmstore.providers.reply import asks, pick

Record = dict[str, Any]

IN_CONTEXT = "in_context_message_indices"
IN_CONTEXT_IDS = "in_context_message_ids"
ENVELOPE = ("role", "content", "name", "tool_calls", "tool_call_id")
SENDS = "send_message"  # the tool by which an agent speaks to the person, and is done
HIDDEN = "prior messages"  # how a notice of what left begins, after its first word


def recognises(source: SourceFile) -> bool:
    """Whether a file is an agent's, or one of several agents."""
    return bool(_agents(source.document))


def read_letta(source: SourceFile) -> ParsedSource:
    """A session for each agent of a file."""
    agents = _agents(source.document)
    tracks = []
    for n, agent in enumerate(agents, 1):
        name = name_of(agent.get("name")) or source.stem
        part = "" if n == 1 else name_of(agent.get("id")) or f"agent{n}"
        steps = _Agent(agent, source.document).steps()
        tracks.append(Track(key=None, name=name, part=part, steps=steps, agent=name, title=_title(agent)))
    return ParsedSource(format="letta", tracks=tracks)


def _agents(document: Any) -> list[Record]:
    """The agents of a file: the document itself in the older form, else those it lists."""
    if not isinstance(document, dict):
        return []
    listed = document.get("agents")
    found = listed if isinstance(listed, list) else [document]
    return [agent for agent in found if _is_agent(agent)]


def _is_agent(value: Any) -> bool:
    known = isinstance(value, dict) and isinstance(value.get("messages"), list)
    return known and any(isinstance(value.get(key), list) for key in (IN_CONTEXT, IN_CONTEXT_IDS))


def _title(agent: Record) -> str | None:
    return name_of(agent.get("description")) or None


class _Agent:
    """One agent, its messages said again in order."""

    def __init__(self, agent: Record, document: Record) -> None:
        self.agent = agent
        self.messages: list[Any] = agent["messages"]
        self.blocks = _listed(agent, document, "core_memory", "blocks", "block_ids")
        self.tools = _listed(agent, document, "tools", "tools", "tool_ids")
        self.stays = self._in_context()
        self.made: list[Step] = []
        self.held: list[tuple[int, MessageRef, Draft]] = []  # in context: the message, where it came from

    def _in_context(self) -> set[int]:
        """Indexes of the messages in context at the end."""
        ids = self.agent.get(IN_CONTEXT_IDS)
        if isinstance(ids, list):
            return {n for n, m in enumerate(self.messages) if isinstance(m, dict) and m.get("id") in ids}
        return {n for n in self.agent.get(IN_CONTEXT, []) if type(n) is int}

    def steps(self) -> list[Step]:
        """The agent's tools and memory, then its messages, then what the file says of it beside them."""
        self._furnish()
        hidden = [n for n, message in enumerate(self.messages) if _hides(message)]
        answers = [n for n, message in enumerate(self.messages) if _role(message) == "assistant" and n in self.stays]
        for n, message in enumerate(self.messages):
            if answers and n == answers[-1]:
                self._leave()
            try:
                self._hear(n, message, n == max(hidden, default=-1))
            except InputError as error:
                self.made.append(UnreadableStep(raw=json_bytes(message), line=n + 1, reason=str(error)))
        self._conclude()
        return self.made

    def _furnish(self) -> None:
        """Says the tools, and keeps the memory blocks as pages that no context shows."""
        found = [tool["json_schema"] for tool in self.tools if isinstance(tool.get("json_schema"), dict)]
        if found:
            self.made.append(MessageStep(raw=json_bytes(found), line=1, draft=schemas(found)))
        for block in self.blocks:
            if (name := _label(block)) and (text := block.get("value")):
                draft = spoken(str(text), Role.OTHER)
                parts = tuple(msgspec.structs.replace(part, type=PageType.CLAIM) for part in draft.parts)
                draft = msgspec.structs.replace(draft, parts=parts, hint=name)
                self.made.append(DetachedPages(raw=json_bytes([name, text]), line=1, draft=draft))

    def _hear(self, n: int, message: Any, last_notice: bool) -> None:
        draft = self._taken(n, message)
        raw, at = json_bytes(message), moment(message.get("created_at"))
        fields: dict[str, Any] = {"raw": raw, "line": n + 1, "at": at}
        systems = [entry for entry in self.held if entry[2].role is Role.SYSTEM]
        others = [entry for entry in self.held if entry[2].role is not Role.SYSTEM]
        if draft.role is Role.SYSTEM and systems:
            self._recast(n, draft, [], others, fields)
        elif _hides(message):
            since = max((i for i, _, entry in others if entry.role is Role.ASSISTANT), default=-1)
            kept = [entry for entry in others if (entry[0] in self.stays if last_notice else entry[0] > since)]
            self._recast(n, draft, systems, kept, fields)
        else:
            self.held.append((n, MessageRef(len(self.made)), draft))
            self.made.append(
                self._answer(message, draft, fields)
                if _role(message) == "assistant"
                else MessageStep(**fields, draft=draft)
            )

    def _recast(self, n: int, draft: Draft, before: list[Any], after: list[Any], fields: Record) -> None:
        """Puts a message between what stays before it and what stays after."""
        stands = (*(stand for _, stand, _ in before), draft, *(stand for _, stand, _ in after))
        self.held = [*before, (n, MessageRef(len(self.made)), draft), *after]
        self.made.append(RewriteStep(**fields, stands=stands))

    def _leave(self) -> None:
        """Takes away what nobody said left, and yet is not in context at the end."""
        kept = [entry for entry in self.held if entry[0] in self.stays or entry[2].role is Role.SYSTEM]
        if len(kept) < len(self.held):
            raw = json_bytes(sorted(self.stays))
            self.made.append(RewriteStep(raw=raw, line=1, stands=tuple(stand for _, stand, _ in kept)))
            self.held = kept

    def _answer(self, message: Record, draft: Draft, fields: Record) -> CallStep:
        """A call; sending a message to the person asks for nothing more."""
        sent = all(part.tool == SENDS for part in draft.parts if part.is_call)
        model = name_of(message.get("model")) or name_of(pick(self.agent.get("llm_config"), "model"))
        return CallStep(**fields, reply=ReplyDraft(Status.OK, (draft,), model=model, final=sent or not asks((draft,))))

    def _taken(self, n: int, message: Any) -> Draft:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise InputError("no message: no object with a role")
        bare = {key: message[key] for key in ENVELOPE if message.get(key) not in (None, [])}
        if bare["role"] != "tool":
            bare.pop("tool_call_id", None)
        beside = {key: value for key, value in message.items() if key not in bare and value not in (None, [])}
        if "content" not in bare and "tool_calls" not in bare:
            raise InputError(f"a message of role {message['role']!r} without content or tool calls")
        draft = take_message(Shape.CHAT, Slot.MESSAGES, bare)
        if _hides(message):
            parts = tuple(msgspec.structs.replace(part, type=PageType.SUMMARY) for part in draft.parts)
            draft = msgspec.structs.replace(draft, parts=parts)
        return msgspec.structs.replace(
            draft,
            human=draft.human and _notice(message) is None,
            aside=json_bytes(beside) if beside else None,
            hint=name_of(message.get("id")),
            links=tuple(self._shown(message)) if draft.role is Role.SYSTEM else (),
        )

    def _shown(self, message: Record) -> Iterable[tuple[LinkKind, str]]:
        """The blocks whose text a system message holds."""
        text = _text(message)
        for block in self.blocks:
            if (
                (name := _label(block))
                and str(block.get("value") or "").strip()
                and str(block["value"]).strip() in text
            ):
                yield LinkKind.DERIVES, name

    def _conclude(self) -> None:
        """Keeps what the file says of the agent beside its last answer.

        As a step of its own it would change with each message that an agent adds.
        """
        about = {key: value for key, value in self.agent.items() if key not in ("messages", "tools", "core_memory")}
        for n, step in reversed(list(enumerate(self.made))):
            if isinstance(step, CallStep):
                aside = loads(step.reply.aside) if step.reply.aside else {}
                reply = msgspec.structs.replace(step.reply, aside=json_bytes({**aside, "agent": about}))
                self.made[n] = msgspec.structs.replace(step, reply=reply)
                return


def _listed(agent: Record, document: Record, own: str, shared: str, ids: str) -> list[Record]:
    """An agent's objects of a kind: its own, or the document's that it names."""
    found = agent.get(own)
    if not isinstance(found, list):
        named = agent.get(ids)
        names = named if isinstance(named, list) else []
        found = [entry for entry in _list(document.get(shared)) if isinstance(entry, dict) and entry.get("id") in names]
    return [entry for entry in found if isinstance(entry, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _label(block: Record) -> str | None:
    return name_of(block.get("label")) or None


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _text(message: Record) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def _notice(message: Any) -> Record | None:
    """The JSON of a message the program sent in the user's place; None where a person speaks."""
    if _role(message) != "user":
        return None
    try:
        packed = json.loads(_text(message))
    except (ValueError, RecursionError):
        return None
    spoke = not isinstance(packed, dict) or not isinstance(packed.get("type"), str) or packed["type"] == "user_message"
    return None if spoke else packed


def _hides(message: Any) -> bool:
    """Whether a message is the notice that earlier ones are hidden, with their summary."""
    notice = _notice(message)
    return notice is not None and HIDDEN in str(notice.get("message"))[:80] and "hidden" in str(notice.get("message"))
