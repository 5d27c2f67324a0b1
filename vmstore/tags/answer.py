"""Asks a model for the tags of a turn, and reads them out of what it answered, whatever stands around them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vmstore.tags.canonical import TAG_CHARS_MAX, known_as
from vmstore.tags.tagger import GENERAL, TAGS_MAX, TaggedTurn, TurnText

KNOWN_MAX = 80  # tags shown to the model, those of most turns first
CONTEXT_CHARS, TURN_CHARS = 300, 3_000
_LIST = re.compile(r"\[[^\[\]{}]*\]")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_HEAD = (
    "Say what the last turn of a conversation is about, in one to three tags: short nouns, lower case, joined by "
    "hyphens. Take a tag that is there already wherever one fits. Answer with JSON alone: "
    '{"tags": ["…"]}. What is about nothing has the tag "_general".'
)


def tags_prompt(text: TurnText, before: Sequence[TaggedTurn], known: Mapping[str, int]) -> str:
    """The prompt for a turn, with the tags there are and the turns before it."""
    names = sorted((tag for tag in known if tag != GENERAL), key=lambda tag: (-known[tag], tag))[:KNOWN_MAX]
    parts = [_HEAD, f"Tags there are: {', '.join(names) or 'none yet'}"]
    if before:
        parts.append("Before it was said:\n" + "\n".join(_spoken(turn.text, CONTEXT_CHARS) for turn in before))
    return "\n\n".join([*parts, "The turn:\n" + _spoken(text, TURN_CHARS)])


def _spoken(text: TurnText, most: int) -> str:
    return f"user: {text.asked[:most]}\nassistant: {text.answered[:most]}"


def parse_tags(answer: str, known: Mapping[str, int], aliases: Mapping[str, str]) -> list[str]:
    """The tags in an answer, as they are spelled here, three at most; none where no list of texts stands in it."""
    bare = _THOUGHT.sub(" ", answer)
    for match in reversed(_LIST.findall(bare)):
        try:
            listed: Any = json.loads(match)
        except ValueError:
            continue
        named = [known_as(text, known, aliases) for text in listed if _is_tag(text)]
        found = [tag for tag in dict.fromkeys(named) if tag]
        if found or (listed and all(text == GENERAL for text in listed)):
            return found[:TAGS_MAX] or [GENERAL]
    return []


def _is_tag(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text.strip()) <= TAG_CHARS_MAX and text != GENERAL
