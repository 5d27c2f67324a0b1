"""A call's prompt by its parts: what instructs, what stands for older turns, what came back, what was just said."""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from vmstore.namespace.results import ContextPage
from vmstore.store.session import Session

INSTRUCTIONS, SUMMARIES, KNOWN, FILES = "instructions", "summaries", "known", "files"
BACK, CONVERSATION, AROUND = "brought back", "conversation", "around"
PARTS = (INSTRUCTIONS, SUMMARIES, KNOWN, FILES, BACK, CONVERSATION, AROUND)
OF_TYPES = {"procedure": INSTRUCTIONS, "summary": SUMMARIES, "claim": KNOWN, "index": KNOWN, "artifact": FILES}
INSTRUCTING = frozenset(("system", "developer"))


class SentPage(msgspec.Struct, frozen=True):
    """A page of a prompt: the part it is of, and its line."""

    page: str
    part: str
    level: int
    tokens: int
    since_call: int
    line: str


class ChatCall(msgspec.Struct, frozen=True):
    """One request to the model; `tokens` and `budget` are estimated, the other counts the provider's."""

    call: int
    turn: int
    position: int
    status: str
    error: str | None
    tokens: int
    budget: int | None
    tokens_reported: int | None
    tokens_out: int | None
    latency_ms: float | None
    cost: float | None
    cost_estimated: float | None


class PromptParts(msgspec.Struct, frozen=True):
    """The prompt of a call: tokens of `budget`, those of each part that has any, and its pages in order.

    Tokens are estimated and corrected by what the provider reported before. `around` is what stands beside pages:
    rules, labels, the JSON of the messages.
    """

    call: int
    tokens: int
    budget: int
    parts: dict[str, int]
    pages: list[SentPage]


def prompt_parts(session: Session, call: ChatCall, packs: list[int]) -> PromptParts:
    """The parts of a call's prompt, as its pack is logged; `packs` are the positions of all calls."""
    sent = session.context(call=call.call)
    lines = sent.lines()
    pages = [
        SentPage(page.page, _part(page, number, packs), page.level, round(page.tokens * sent.factor), page.since_call,
                 lines.get(page.page, ""))
        for page, number in zip(sent.pages, sent.page_ids, strict=True)
    ]  # fmt: skip
    tokens, budget = round(call.tokens * sent.factor), round((call.budget or call.tokens) * sent.factor)
    parts = {part: sum(page.tokens for page in pages if page.part == part) for part in PARTS}
    parts[AROUND] = max(0, tokens - sum(parts.values()))
    return PromptParts(call.call, tokens, budget, {part: count for part, count in parts.items() if count}, pages)


def _part(page: ContextPage, number: int, packs: list[int]) -> str:
    """The part a page is of; what no call just after it came to be had, or what had left, was brought back."""
    if page.role in INSTRUCTING and page.type == "transcript":
        return INSTRUCTIONS
    if page.type in OF_TYPES:
        return OF_TYPES[page.type]
    first = bisect_right(packs, number) + 1
    return BACK if page.since_call > first else CONVERSATION
