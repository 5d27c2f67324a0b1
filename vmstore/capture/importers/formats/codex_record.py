"""Takes single lines of Codex rollouts apart: of which kind they are, what they hold, what they say was used."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import msgspec

from vmstore.capture.importers.formats.detect import is_message
from vmstore.core.draft import Draft, TokenUsage
from vmstore.core.page import PageType
from vmstore.core.text.skeleton import text_bytes
from vmstore.providers import Shape
from vmstore.providers.message import name_of
from vmstore.providers.reply import counted
from vmstore.providers.responses import take_item

Record = dict[str, Any]

TYPES = frozenset({"session_meta", "response_item", "turn_context", "compacted", "event_msg", "world_state"})
OLD_HEADER = frozenset({"id", "timestamp", "instructions"})
COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
# What the program writes in the person's place, known by how it begins: a tag with an underscore, or one of these.
TAGGED = re.compile(r"\s*<[a-z]+(?:_[a-z]+)+[\s>]")
NOT_HUMAN = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<skill>",
    "<task-notification>",
)


def is_codex(value: Any) -> bool:
    """Whether a value is a line of a rollout, or the header of one as the first versions wrote it."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if isinstance(kind, str):
        return kind in TYPES and isinstance(value.get("payload"), dict)
    return value.keys() >= OLD_HEADER and not value.keys() & {"role", "messages"}


def kind_of(value: Any) -> str | None:
    """The kind of a line; the first versions wrote items and their header bare."""
    if not isinstance(value, dict):
        return type(value).__name__
    kind = name_of(value.get("type"))
    if "payload" in value:
        return kind
    if "record_type" in value:
        return "world_state"  # a snapshot of the program's own
    if value.keys() >= OLD_HEADER:
        return "session_meta"
    return "response_item" if kind == "reasoning" or is_message(Shape.RESPONSES, value) else kind


def payload_of(value: Any) -> Record:
    """The payload of a line, or the line itself where it was written bare."""
    payload = value.get("payload", value) if isinstance(value, dict) else {}
    return payload if isinstance(payload, dict) else {}


def title_of(value: Any) -> str | None:
    """The title that a line gives the session."""
    payload = payload_of(value)
    return name_of(payload.get("thread_name")) if payload.get("type") == "thread_name_updated" else None


def is_own_words(content: Any) -> bool:
    """Whether a message of the user's holds words of a person's."""
    parts = content if isinstance(content, list) else [{"text": content}]
    return any(_is_own(part.get("text")) for part in parts if isinstance(part, dict))


def _is_own(text: Any) -> bool:
    return not isinstance(text, str) or not (TAGGED.match(text) or text.lstrip().startswith(NOT_HUMAN))


def saying(draft: Draft) -> Hashable:
    """Equal for items that say the same; results of two calls are two, however alike."""
    return (draft.role, *((part.call_id if part.is_result else None, part.content) for part in draft.parts))


def summed_up(value: Any, message: str) -> Draft:
    """An item of a compacted conversation; its pages are summaries where it sums up what left.

    It does where its kind says so, or where its text is the compaction's `message`.
    """
    draft = take_item(value)
    content = b"".join(part.content for part in draft.parts)
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in COMPACTIONS or (message and content == text_bytes(message)):
        parts = tuple(msgspec.structs.replace(part, type=PageType.SUMMARY) for part in draft.parts)
        draft = msgspec.structs.replace(draft, parts=parts)
    return msgspec.structs.replace(draft, human=False)


def usage_of(payload: Record) -> tuple[Any, TokenUsage | None]:
    """A token count and the usage of the last call in it; None where it has no call."""
    info = payload.get("info")
    counts = info if isinstance(info, dict) else payload
    last = counts.get("last_token_usage") if isinstance(info, dict) else payload.get("usage")
    if not isinstance(last, dict) or not any((last.get("input_tokens"), last.get("output_tokens"))):
        return counts, None
    usage = TokenUsage(
        tokens_in=counted(last.get("input_tokens")),
        tokens_cached=counted(last.get("cached_input_tokens")),
        tokens_out=counted(last.get("output_tokens")),
    )
    return counts, usage
