"""What assembling a prompt answers with."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.namespace.results import Basis


class PromptChoice(msgspec.Struct, frozen=True):
    """A candidate that stands in the prompt: its part, level and tokens, its score, the pages it shows, and why."""

    name: str
    part: str
    level: int
    tokens: int
    score: float
    session: str
    pages: list[str]
    reason: str


class PromptOmission(msgspec.Struct, frozen=True):
    """A candidate that does not: its part, the tokens it would take, its score, and why."""

    name: str
    part: str
    tokens: int
    score: float
    why: str


class PartChoice(msgspec.Struct, frozen=True):
    """The choice within a part: how many candidates there were and were chosen, the tokens, the least score chosen.

    `losers` are the pages of the three nearest that were not, with their scores; those of other sessions are not named.
    """

    part: str
    candidates: int
    chosen: int
    tokens: int
    cutoff: float
    losers: list[tuple[str, float]]


class AssembledPrompt(msgspec.Struct, frozen=True):
    """A prompt within a token budget, in the session's provider shape, and how it was chosen.

    `request` has the messages, ready to send beside a model's name; `tokens` is what it takes of `budget`, as it is
    written. `breakdown` has the tokens of each part: core, identity, rules, summaries, hint, conversation, facts,
    recalled, earlier, and `form` for what writing them as messages takes beside. `prepend` is what it adds to the
    instructions, `beside` what it adds to the message, `conversation` the messages between them. `turns` are the
    first and the last of the conversation.
    """

    basis: Basis
    shape: str
    request: dict[str, Any]
    tokens: int
    budget: int
    breakdown: dict[str, int]
    prepend: str
    beside: str
    topics: list[str]
    turns: tuple[int, int]
    chosen: list[PromptChoice]
    left: list[PromptOmission]
    contests: list[PartChoice] = []
    note: str = ""
    conversation: list[Any] = []

    @property
    def messages(self) -> list[Any]:
        """The messages of the request."""
        return next(self.request[key] for key in ("messages", "contents", "input") if key in self.request)
