"""Digests of tasks, and the packer that puts them with cards and expansions into a budget of tokens.

A task is a plan. Its digest is made from its page each time, so it is never older than the plan; one that somebody
wrote holds until the plan changes. `expand://task/p7?depth=2` names a task and how far it is opened: 0 its short form,
1 a paragraph, 2 its steps, 3 its decisions and all that is a part of it, each with its page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from vmstore.errors import InputError
from vmstore.work.observation import tokens
from vmstore.work.plan import PlanContent

TAG = "digest"
"""The tag of the page of a digest that somebody wrote."""
DEPTH_MAX = 3
CARDS = 6
SHORT_CHARS_MAX, PARAGRAPH_CHARS_MAX, CARD_CHARS_MAX, SYSTEM_CHARS_MAX = 80, 640, 320, 400
_REFERENCE = re.compile(r"expand://task/(p[1-9][0-9]{0,17})(?:\?depth=([0-9]{1,3}))?")
_SENTENCE = re.compile(r"(?<=[.!?…])\s")
_SEPARATOR = "\n\n"


class TaskDigest(msgspec.Struct, frozen=True):
    """A task in a sentence or two and in a paragraph; `tokens` are those of the paragraph.

    `costs` are the tokens of each depth it is opened to. `written` is the page of a digest that somebody wrote; where
    the plan changed since it is `stale`, and what is told here is made of the plan.
    """

    task: str
    title: str
    status: str
    short: str
    paragraph: str
    tokens: int
    costs: list[int] = []
    written: str | None = None
    stale: bool = False


class WrittenDigest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the page of a digest that somebody wrote: the page of its task, and its texts."""

    task: str
    short: str
    paragraph: str


class PackedDigests(msgspec.Struct, frozen=True):
    """A text within a budget, its tokens, the cards and expansions in it; `dropped` has what was cut or left out.

    `denied` are the files that were asked for and that nobody approved.
    """

    text: str
    tokens: int
    cards: list[str]
    expanded: list[str]
    dropped: list[str]
    denied: list[str] = []


class Expansion(NamedTuple):
    """Something that is to be opened: its names and texts, from the shortest to the one asked for.

    What is not `current`, as a task that ended, is the less critical and goes first.
    """

    uris: Sequence[str]
    texts: Sequence[str]
    current: bool = True


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


def references(task: str, depth: int) -> list[str]:
    """The references of a task at each depth up to one."""
    return [f"expand://task/{task}?depth={step}" for step in range(depth + 1)]


# ---- texts


def digest(page: str, of: PlanContent, parts: Sequence[str] = ()) -> TaskDigest:
    """The digest of a task as its plan stands; `parts` are lines on what belongs to it."""
    texts = shards(of, parts)
    costs = [tokens(text) for text in texts]
    return TaskDigest(page, of.plan, of.plan_status, texts[0], texts[1], costs[1], costs)


def with_written(made: TaskDigest, page: str, written: WrittenDigest, *, stale: bool) -> TaskDigest:
    """A digest in the words that somebody wrote, unless the plan changed since."""
    if stale:
        return msgspec.structs.replace(made, written=page, stale=True)
    costs = [tokens(written.short), tokens(written.paragraph), *made.costs[2:]]
    return msgspec.structs.replace(
        made, short=written.short, paragraph=written.paragraph, tokens=costs[1], costs=costs, written=page
    )


def written(task: str, paragraph: str, short: str | None) -> WrittenDigest:
    """A digest that somebody writes, checked; without `short` the first sentence of the paragraph is it."""
    for name, text, most in (("paragraph", paragraph, PARAGRAPH_CHARS_MAX), ("short", short, SHORT_CHARS_MAX)):
        if text is not None and (not isinstance(text, str) or not 0 < len(text.strip()) <= most):
            raise InputError(
                f"the {name} of a digest is a text of 1 to {most} characters, not {text!r:.60}", code="not-a-text"
            )
    flat = " ".join(paragraph.split())
    first = _SENTENCE.split(flat, 1)[0]
    return WrittenDigest(task, within(first if short is None else short, SHORT_CHARS_MAX), flat)


def shards(of: PlanContent, parts: Sequence[str]) -> list[str]:
    """The texts of a task, by depth; one holds what those before it hold, in more words."""
    whole = "\n".join([_short(of), *(f"Goal: {goal}" for goal in of.goals), *_steps(of)])
    return [_short(of), _paragraph(of), whole, "\n".join([whole, *parts])]


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


def card(text: str) -> str:
    """A card: a text on one line, cut where it is long."""
    return within(text, CARD_CHARS_MAX)


def guard_weight(times: int) -> float:
    """The weight of a warning among cards, by how many calls it counted."""
    return min(0.9, 0.5 + 0.1 * times)


def chosen_cards(weighed: Iterable[tuple[float, str]], limit: int) -> list[str]:
    """The cards of most weight, each said once; of one weight those that come first."""
    ordered = sorted(weighed, key=lambda one: -one[0])
    return list(dict.fromkeys(text for _, text in ordered if text))[:limit]


def within(text: str, chars: int) -> str:
    """A text on one line, cut where it is longer than so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"


def _short(of: PlanContent) -> str:
    done = sum(step.done for step in of.steps)
    count = f", {done} of {len(of.steps)} steps done" if of.steps else f", {of.progress:.0%} done"
    ending = f": {of.plan_status}{count}."
    return within(of.plan, SHORT_CHARS_MAX - len(ending)) + ending


def _paragraph(of: PlanContent) -> str:
    said = [_short(of)]
    said += [f"Goals: {'; '.join(of.goals)}."] if of.goals else []
    said += [f"Next: {'; '.join(of.ready)}."] if of.ready else []
    said += [f"{len(of.decisions)} decided."] if of.decisions else []
    return within(" ".join(said), PARAGRAPH_CHARS_MAX)


def _steps(of: PlanContent) -> list[str]:
    return [
        f"[{'x' if step.done else ' '}] {step.text}" + (f" (after {', '.join(step.after)})" if step.after else "")
        for step in of.steps
    ]


# ---- the packer


class _Pack:
    """Bodies on their way into a budget: what is left of each, and what was dropped."""

    def __init__(self, system: str, task: TaskDigest | None, cards: Sequence[str], asked: Sequence[Expansion]) -> None:
        self.system = system
        self.task = task
        self.said = task.paragraph if task is not None else ""
        self.cards = list(cards)
        self.asked = asked
        self.depths = [len(one.texts) - 1 for one in asked]
        self.dropped: list[str] = []

    @property
    def text(self) -> str:
        """The bodies as they stand."""
        bodies = [one.texts[depth] for one, depth in zip(self.asked, self.depths, strict=True) if depth >= 0]
        return _SEPARATOR.join(text for text in (self.system, self.said, *self.cards, *bodies) if text)

    def less(self) -> bool:
        """Takes the next thing back, or a piece of it; whether there was any that may go.

        Expansions before cards, those that are not current before the others, the last before those asked for
        earlier; each is opened less far before it is left out, and a card says its first sentence before that. The
        task is told in its short form at last.
        """
        left = [at for at, depth in enumerate(self.depths) if depth >= 0]
        if left:
            self.depths[min(left, key=lambda at: (self.asked[at].current, -at))] -= 1
        elif self.cards:
            last = self.cards.pop()
            first = _SENTENCE.split(last, 1)[0]
            if first != last:
                self.cards.append(first)
            if not self.dropped or not self.dropped[-1].startswith(last):
                self.dropped.append(last)
        elif self.task is not None and self.said != self.task.short:
            self.said = self.task.short
        else:
            return False
        return True


def pack(
    system: str, task: TaskDigest | None, cards: Sequence[str], expansions: Sequence[Expansion], budget: int
) -> PackedDigests:
    """Puts into a budget the system's digest, the task's, cards from the best, expansions as they were asked for.

    Over the budget expansions go, then cards: see `_Pack.less`. The first two stay, the task in its short form where
    need be; InputError where even these have no room.
    """
    packing = _Pack(system, task, cards, expansions)
    while tokens(packing.text) > budget:
        if not packing.less():
            raise InputError(
                f"the digests of the system and the task take {tokens(packing.text)} tokens and the budget is "
                f"{budget}; give more",
                code="over-budget",
            )
    named = list(zip(expansions, packing.depths, strict=True))
    cut = [one.uris[-1] for one, depth in named if depth < len(one.texts) - 1]
    text = packing.text
    kept = [one.uris[depth] for one, depth in named if depth >= 0]
    return PackedDigests(text, tokens(text), packing.cards, kept, cut + packing.dropped)
