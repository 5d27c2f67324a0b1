"""Digests of tasks, and the packer that puts them with cards and expansions into a budget of tokens.

A task is a plan. Its digest is made from its page each time, so it is never older than the plan.
`expand://task/p7?depth=2` names a task and how far it is opened: 0 its short form, 1 a paragraph, 2 its steps, 3 its
decisions too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from vmstore.errors import InputError
from vmstore.work.observation import tokens
from vmstore.work.plan import PlanContent

DEPTH_MAX = 3
CARDS = 6
SHORT_CHARS_MAX, PARAGRAPH_CHARS_MAX, CARD_CHARS_MAX = 160, 640, 320
_REFERENCE = re.compile(r"expand://task/(p[1-9][0-9]{0,17})(?:\?depth=([0-9]{1,3}))?")
_SEPARATOR = "\n\n"


class TaskDigest(msgspec.Struct, frozen=True):
    """A task in a sentence or two and in a paragraph; `tokens` are those of the paragraph."""

    task: str
    title: str
    status: str
    short: str
    paragraph: str
    tokens: int


class PackedDigests(msgspec.Struct, frozen=True):
    """A text within a budget, its tokens, the cards and expansions in it; `dropped` has what was cut or left out."""

    text: str
    tokens: int
    cards: list[str]
    expanded: list[str]
    dropped: list[str]


class Expansion(NamedTuple):
    """A task that is to be opened: its page, and its texts from the shortest to the one asked for."""

    task: str
    texts: Sequence[str]


def reference(uri: str) -> tuple[str, int]:
    """The page of a task and the depth that a reference names, 1 where it names none; InputError where it is none."""
    match = _REFERENCE.fullmatch(uri) if isinstance(uri, str) else None
    if match is None:
        raise InputError(
            f"{uri!r:.80} opens no task; write expand://task/p7?depth=2 with its page", code="not-an-address"
        )
    depth = int(match[2] or 1)
    if depth > DEPTH_MAX:
        raise InputError(f"depth {depth} is too deep; a task is opened from 0 to {DEPTH_MAX}", code="no-level")
    return match[1], depth


def digest(page: str, of: PlanContent) -> TaskDigest:
    """The digest of a task as its plan stands."""
    paragraph = _paragraph(of)
    return TaskDigest(page, of.plan, of.plan_status, _short(of), paragraph, tokens(paragraph))


def shards(of: PlanContent, decisions: Sequence[str]) -> list[str]:
    """The texts of a task, by depth; one holds what those before it hold, in more words."""
    whole = "\n".join([_short(of), *(f"Goal: {goal}" for goal in of.goals), *_steps(of)])
    return [_short(of), _paragraph(of), whole, "\n".join([whole, *(f"Decided: {text}" for text in decisions)])]


def opened(of: Sequence[str], depth: int, budget: int) -> str:
    """The text of a task at a depth, reached step by step; InputError names the step that is over the budget."""
    for step in range(depth + 1):
        if tokens(of[step]) > budget:
            raise InputError(
                f"depth {step} takes {tokens(of[step])} tokens and {budget} are left; "
                + (f"ask for depth {step - 1}, or give more" if step else "give more"),
                code="over-budget",
            )
    return of[depth]


def pack(
    system: str, task: TaskDigest | None, cards: Sequence[str], expansions: Sequence[Expansion], budget: int
) -> PackedDigests:
    """Puts into a budget the system's digest, the task's, cards from the best, expansions as they were asked for.

    Over the budget the last expansion is opened less far, then left out, then the one before it; then the last card.
    The first two stay, the task in its short form where need be; InputError where even these have no room.
    """
    kept = list(cards)
    depths = [len(one.texts) - 1 for one in expansions]
    said = task.paragraph if task is not None else ""
    dropped: list[str] = []

    def joined() -> str:
        """The text as it stands."""
        bodies = [one.texts[depth] for one, depth in zip(expansions, depths, strict=True) if depth >= 0]
        return _SEPARATOR.join(text for text in (system, said, *kept, *bodies) if text)

    while tokens(joined()) > budget:
        last = next((at for at in reversed(range(len(depths))) if depths[at] >= 0), None)
        if last is not None:
            depths[last] -= 1
        elif kept:
            dropped.append(kept.pop())
        elif task is not None and said != task.short:
            said = task.short
        else:
            raise InputError(
                f"the digests of the system and the task take {tokens(joined())} tokens and the budget is {budget}; "
                "give more",
                code="over-budget",
            )
    named = list(zip(expansions, depths, strict=True))
    cut = [_uri(one.task, len(one.texts) - 1) for one, depth in named if depth < len(one.texts) - 1]
    text = joined()
    return PackedDigests(
        text, tokens(text), kept, [_uri(one.task, depth) for one, depth in named if depth >= 0], cut + dropped
    )


def card(text: str) -> str:
    """A card: a text on one line, cut where it is long."""
    return _within(text, CARD_CHARS_MAX)


# ---- texts


def _uri(task: str, depth: int) -> str:
    return f"expand://task/{task}?depth={depth}"


def _short(of: PlanContent) -> str:
    done = sum(step.done for step in of.steps)
    count = f", {done} of {len(of.steps)} steps done" if of.steps else f", {of.progress:.0%} done"
    return f"{_within(of.plan, SHORT_CHARS_MAX - 40)}: {of.plan_status}{count}."


def _paragraph(of: PlanContent) -> str:
    said = [_short(of)]
    said += [f"Goals: {'; '.join(of.goals)}."] if of.goals else []
    said += [f"Next: {'; '.join(of.ready)}."] if of.ready else []
    said += [f"{len(of.decisions)} decided."] if of.decisions else []
    return _within(" ".join(said), PARAGRAPH_CHARS_MAX)


def _steps(of: PlanContent) -> list[str]:
    return [
        f"[{'x' if step.done else ' '}] {step.text}" + (f" (after {', '.join(step.after)})" if step.after else "")
        for step in of.steps
    ]


def _within(text: str, chars: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"
