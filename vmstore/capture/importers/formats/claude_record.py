"""Takes single records of Claude Code transcripts apart: who speaks, what was said, what stands beside.

The format has no specification; what is not known here stays unread, with its bytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import PageType, Slot, Status
from vmstore.core.text.skeleton import loads
from vmstore.errors import InputError
from vmstore.providers import Shape, take_message
from vmstore.providers.anthropic import anthropic_reply
from vmstore.providers.message import json_bytes, name_of

Record = dict[str, Any]

MESSAGES = frozenset({"user", "assistant"})
NOTES = frozenset(
    {
        "summary",
        "system",
        "file-history-snapshot",
        "queue-operation",
        "progress",
        "attachment",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-color",
        "last-prompt",
        "permission-mode",
        "tag",
        "pr-link",
    }
)
NAMES = ("uuid", "sessionId", "leafUuid", "messageId")  # a transcript's record has one of them
# What the program writes in the person's place, known by how it begins.
NOT_HUMAN = (
    "<command-",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "Caveat: The messages below",
    "[Request interrupted by user",
)
TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
SPAWNERS = frozenset({"Task", "Agent"})
SYNTHETIC = "<synthetic>"  # the model's name in answers no model gave


def is_record(value: Any) -> bool:
    """Whether a value is a record of a transcript: a known type and a name of its own or its session's."""
    if not isinstance(value, dict) or not any(name in value for name in NAMES):
        return False
    kind = value.get("type")
    return isinstance(kind, str) and (kind in MESSAGES or kind in NOTES)


def take_user(record: Record) -> Draft:
    """The draft of a user record: a person's words, tool results, or what the program put there."""
    message = _message(record)
    bare = {"role": message.get("role", "user"), "content": message["content"]}
    draft = take_message(Shape.ANTHROPIC, Slot.MESSAGES, bare)
    compacted = record.get("isCompactSummary") is True
    words = _is_human(message["content"]) and record.get("isMeta") is not True and not compacted
    if compacted:
        summary = tuple(msgspec.structs.replace(part, type=PageType.SUMMARY) for part in draft.parts)
        draft = msgspec.structs.replace(draft, parts=summary)
    beside = {key: value for key, value in message.items() if key not in bare}
    return msgspec.structs.replace(draft, human=draft.human and words, aside=_aside(record, beside))


def take_answer(record: Record) -> ReplyDraft:
    """The reply an assistant record holds, or one line of it."""
    message = _message(record)
    reply = anthropic_reply({"role": "assistant", **message}, True)
    aside = _aside(record, loads(reply.aside) if reply.aside else {})
    if not any((reply.usage.tokens_in, reply.usage.tokens_out)):
        reply = msgspec.structs.replace(reply, usage=TokenUsage())
    if record.get("isApiErrorMessage") is True:
        drafts = said_in(message["content"])
        reply = msgspec.structs.replace(reply, status=Status.FAILED, final=False, error=drafts or "API error")
    return msgspec.structs.replace(reply, aside=aside)


def said_in(content: Any) -> str:
    """The text of a content, its parts a line each."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")


def is_tool_result(draft: Draft) -> bool:
    """Whether a message answers a tool call."""
    return any(part.is_result for part in draft.parts)


def prompt_of(content: bytes) -> str | None:
    """The prompt in a tool call that starts an agent."""
    call = loads(content)
    given = call.get("input") if isinstance(call, dict) else None
    return name_of(given.get("prompt")) if isinstance(given, dict) else None


def title_of(record: Record) -> str | None:
    """The title a bookkeeping record gives the session."""
    key = TITLES.get(record["type"])
    return name_of(record.get(key)) if key else None


def _message(record: Record) -> Record:
    """A record's message; refuses one no model could have been sent."""
    message = record.get("message")
    if not isinstance(message, dict):
        raise InputError(f"the message is {type(message).__name__}, not an object")
    if "content" not in message:
        raise InputError(f"the message has no content, only {', '.join(sorted(message)) or 'nothing'}")
    content = message["content"]
    if not isinstance(content, (str, list)):
        raise InputError(f"the message's content is {type(content).__name__}, not a text or a list of parts")
    for n, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise InputError(f"content part {n} is no object with a type")
    if message.get("role", record["type"]) != record["type"]:
        raise InputError(f"a record of type {record['type']} holds a message of role {message['role']!r}")
    return message


def _is_human(content: Any) -> bool:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for part in parts:
        if part["type"] == "tool_result":
            continue
        text = part.get("text")
        if not isinstance(text, str) or not text.lstrip().startswith(NOT_HUMAN):
            return True
    return False


def _aside(record: Record, beside: Record) -> bytes:
    """The fields of a record beside its message, and those of the message that the model did not see."""
    envelope = {key: value for key, value in record.items() if key not in ("type", "message")}
    return json_bytes({**envelope, "message": beside} if beside else envelope)
