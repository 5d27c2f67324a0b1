"""VM:CONTEXT: one line a page, made to be read by a model, and read back here to the letter.

U (p17): "Which database?"
S (p60, abstract): "They chose Postgres."
T (p18): {"rows": 3}
I (p19, abstract): [IMAGE: "the floor plan", 1200x800]
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from vmstore.core.page import Level, Modality, PageType, Role, Slot
from vmstore.errors import InputError
from vmstore.vm.protocol.escape import dumps, is_plain, loads, name_of, printed
from vmstore.vm.protocol.prompt_page import PromptPage

BEGIN, END = "<VM:CONTEXT>", "</VM:CONTEXT>"
MEDIA = {Modality.IMAGE: "I", Modality.AUDIO: "D", Modality.VIDEO: "V"}
TYPES = {PageType.SUMMARY: "S", PageType.CLAIM: "C", PageType.PROCEDURE: "P", PageType.INDEX: "X"}
ROLES = {Role.USER: "U", Role.ASSISTANT: "A", Role.TOOL: "T", Role.SYSTEM: "Y", Role.DEVELOPER: "Y"}
NOTE = "N"  # said by nobody: an artifact, a raw line
PREFIXES = {
    "U": "user",
    "A": "assistant",
    "T": "tool",
    "S": "summary",
    "I": "image",
    "D": "audio",
    "V": "video",
    "C": "claim",
    "P": "procedure",
    "X": "index",
    "Y": "system",
    "N": "note",
}
"""What stands before a page, and what it says the page is."""

LINE = re.compile(r"(?P<prefix>[A-Z]) \((?P<name>[^\s(),]+)(?:, (?P<level>[a-z]+))?\): (?P<body>.+)", re.DOTALL)
WORDLESS = re.compile(r"\[OPAQUE: [0-9]+ tokens\]|\[BYTES: [^\"]+\]")
MEDIUM = re.compile(r"\[(?:IMAGE|AUDIO|VIDEO): (?P<facts>.+)\]", re.DOTALL)


class ContextLine(NamedTuple):
    """A line of VM:CONTEXT as it was read; `text` is None where the line holds no words of the page."""

    prefix: str
    name: str
    level: int
    text: str | None


def context_text(leaves: Sequence[PromptPage]) -> str:
    """The pages in their order as VM:CONTEXT."""
    return "\n".join([BEGIN, *(line(leaf) for leaf in leaves if leaf.slot is not Slot.TOOLS), END])


def line(leaf: PromptPage) -> str:
    """One page as a line; its level stands beside its name unless it is shown in full."""
    level = f", {Level(leaf.level).word}" if leaf.level else ""
    return f"{prefix(leaf)} ({printed(leaf.name)}{level}): {_body(leaf)}"


def prefix(leaf: PromptPage) -> str:
    """The letter a page stands under: its medium, else its type, else who said it."""
    return MEDIA.get(leaf.modality) or TYPES.get(leaf.type) or ROLES.get(leaf.role, NOTE)


def read_context(text: str) -> list[ContextLine]:
    """The lines of the one VM:CONTEXT block in a text; raises InputError where it is no such block."""
    lines = text.split("\n")
    if lines.count(BEGIN) != 1 or lines.count(END) != 1 or lines.index(END) < lines.index(BEGIN):
        raise InputError(
            f"text without one {BEGIN} block; pass what context_text or developer_message wrote", code="not-a-context"
        )
    first = lines.index(BEGIN) + 1
    return [_read(lines[at], at + 1) for at in range(first, lines.index(END))]


def medium(leaf: PromptPage) -> str:
    """A picture, sound or film in words: its caption or transcript where there is one, and its measures."""
    shown = leaf.caption()
    words = None if shown.text is None else dumps(shown.text)
    if leaf.modality is Modality.AUDIO and words is not None:
        words = f"transcript: {words}"
    seconds = leaf.duration_ms // 1000
    length = f"{seconds // 60}:{seconds % 60:02d} duration" if leaf.duration_ms else None
    area = f"{leaf.width}x{leaf.height}" if leaf.width and leaf.height else None
    facts = [words, area] if leaf.modality is Modality.IMAGE else [length, area, words]
    if words is None:
        size = "not here" if leaf.content is None else f"{len(leaf.content)} bytes"
        facts = [_mime(leaf.mime), length, area, size]
    return f"[{leaf.modality.name}: {', '.join(fact for fact in facts if fact)}]"


def _body(leaf: PromptPage) -> str:
    if leaf.is_media:
        return medium(leaf)
    text = leaf.text
    if text is None:
        opaque = f"[OPAQUE: {leaf.tokens} tokens]"
        return opaque if leaf.content is None else f"[BYTES: {_mime(leaf.mime)}, {len(leaf.content)} bytes]"
    return text if _is_object(text) else dumps(text)


def _is_object(text: str) -> bool:
    """Whether a text is one JSON object on one plain line, which reads better without quotes around it."""
    if not (text.startswith("{") and text.endswith("}") and is_plain(text)):
        return False
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _mime(name: str) -> str:
    return "/".join(map(printed, name.split("/")))


def _read(text: str, number: int) -> ContextLine:
    found = LINE.fullmatch(text)
    if found is None or found["prefix"] not in PREFIXES:
        raise InputError(f'line {number}: no page stands here; a line is `U (p17): "text"`', code="not-a-context")
    level = Level.of(found["level"]) if found["level"] else Level.FULL
    if level is None:
        raise InputError(
            f"line {number}: no level {found['level']!r}; write full, reduced, abstract or reference",
            code="not-a-context",
        )
    return ContextLine(found["prefix"], name_of(found["name"]), level.value, _words(found["body"], number))


def _words(body: str, number: int) -> str | None:
    if body.startswith("{"):
        return body
    facts = MEDIUM.fullmatch(body)
    if WORDLESS.fullmatch(body) or (facts is not None and '"' not in facts["facts"]):
        return None
    start = body.index('"') if facts is not None else 0
    try:
        words, end = json.JSONDecoder().raw_decode(body, start)
    except ValueError:
        words, end = None, 0
    if not isinstance(words, str) or (facts is None and end != len(body)):
        raise InputError(f"line {number}: its text does not end; write it as one JSON string", code="not-a-context")
    return words
