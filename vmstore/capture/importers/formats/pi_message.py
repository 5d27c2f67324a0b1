"""Takes the messages of pi apart: its own shape, not a provider's."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.draft import Draft
from vmstore.core.page import Modality, PageType, Role
from vmstore.errors import InputError
from vmstore.providers.message import Holes, closed, name_of
from vmstore.providers.parts import take_base64

Record = dict[str, Any]

ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "toolResult": Role.TOOL}


def take_pi_message(message: Record, aside: bytes | None = None) -> Draft:
    """The draft of a user, assistant or toolResult message, its text, thinking, calls and images taken."""
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise InputError(f"unknown role {message.get('role')!r}")
    content = message.get("content")
    holes = Holes()
    if isinstance(content, str):
        skeleton: Any = {**message, "content": holes.text(content)}
    elif isinstance(content, list):
        skeleton = {**message, "content": [_block(holes, block, n) for n, block in enumerate(content)]}
    else:
        raise InputError(f"the content is {type(content).__name__}, not a text or a list of parts")
    draft = closed(holes, skeleton, message, role)
    parts = draft.parts
    if role is Role.TOOL:
        call_id, tool = name_of(message.get("toolCallId")), name_of(message.get("toolName"))
        parts = tuple(
            msgspec.structs.replace(p, type=PageType.ARTIFACT, call_id=call_id, tool=tool, is_result=True)
            for p in parts
        )
    return msgspec.structs.replace(draft, parts=parts, human=role is Role.USER, aside=aside)


def rendered_command(message: Record, aside: bytes) -> Draft:
    """A command the person ran, as the text pi shows the model: the command, its output, how it ended."""
    output, code = message.get("output"), message.get("exitCode")
    text = f"Ran `{message.get('command')}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif code:
        text += f"\n\nCommand exited with code {code}"
    if message.get("truncated") and message.get("fullOutputPath"):
        text += f"\n\n[Output truncated. Full output: {message['fullOutputPath']}]"
    draft = take_pi_message({"role": "user", "content": [{"type": "text", "text": text}]}, aside)
    return msgspec.structs.replace(draft, human=False)


def rendered_summary(summary: Any, aside: bytes) -> Draft:
    """A summary as a message of the user's; the words pi puts around it are not in its files."""
    if not isinstance(summary, str):
        raise InputError("the record has no summary text")
    draft = take_pi_message({"role": "user", "content": [{"type": "text", "text": summary}]}, aside)
    parts = tuple(msgspec.structs.replace(part, type=PageType.SUMMARY) for part in draft.parts)
    return msgspec.structs.replace(draft, parts=parts, human=False)


def _block(holes: Holes, block: Any, n: int) -> Any:
    if not isinstance(block, dict):
        raise InputError(f"content part {n} is {type(block).__name__}, not an object")
    kind = block.get("type")
    if kind in ("text", "thinking") and isinstance(text := block.get(kind), str):
        return {**block, kind: holes.text(text)}
    if kind == "toolCall":
        return holes.call(block, block.get("id"), block.get("name"))
    if kind == "image":
        data = take_base64(holes, block.get("data"), block.get("mimeType"))
        return holes.json(block, Modality.IMAGE) if data is None else {**block, "data": data}
    return holes.json(block)
