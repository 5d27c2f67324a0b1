"""The hint of a prompt: which topics were spoken of, so that a model knows what it may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.vm.assembly.blocks import plain

BEGIN, END = "<context-topics>", "</context-topics>"
HEAD = "Prior conversation topics available for recall:"
TOKENS_MIN, TOKENS_MAX = 50, 200
ABOUT_CHARS = 70
TOOLS = (
    "recall_all for an overview, remember_when for a time, find_quote for exact words, search_pages for a topic, "
    "page_fault for a whole page."
)


class HintTopic(NamedTuple):
    """A topic: its tag, in how many turns it came up, and what it came to in a few words."""

    tag: str
    turns: int
    about: str = ""


def hint(topics: Sequence[HintTopic], *, tokens: int = TOKENS_MAX, rounds: int = 0, budget: int = 0) -> str:
    """The hint in at most so many tokens, the first topics first; empty where there is no topic or no room for one.

    With `rounds` of tools it says how many there are and what each is for; with a `budget` what a prompt may take.
    """
    room = min(tokens, TOKENS_MAX) * CHARACTERS_PER_TOKEN
    tail = _tail(rounds, budget)
    lines = [BEGIN, HEAD]
    length = sum(len(line) + 1 for line in (*lines, *tail, END))
    for topic in topics:
        line = _line(topic)
        bare = _line(topic._replace(about=""))
        line = line if length + len(line) + 1 <= room else bare
        if length + len(line) + 1 > room:
            break
        lines.append(line)
        length += len(line) + 1
    return "\n".join([*lines, *tail, END]) if len(lines) > 2 else ""


def _line(topic: HintTopic) -> str:
    about = plain(topic.about)
    about = about if len(about) <= ABOUT_CHARS else about[: ABOUT_CHARS - 1].rstrip() + "…"
    turns = f"{topic.turns} turn{'s' * (topic.turns != 1)}"
    return f"- {plain(topic.tag)} ({turns})" + (f": {about}" if about else "")


def _tail(rounds: int, budget: int) -> list[str]:
    tail = []
    if rounds:
        tail += [
            f"Tools: {TOOLS}",
            f"At most {rounds} tool rounds: plan them, do not repeat a search; once it is answered, stop.",
        ]
    if budget:
        tail.append(f"Budget: {budget:,} tokens a prompt.")
    return tail
