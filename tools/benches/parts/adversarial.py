"""A hundred turns of three projects that share their words, and 28 prompts that are hard to answer from a window.

Prompts use other words than what answers them, words that stand for several things, or ask for what holds after a
change, for several projects at once, or for what was said long ago. The set was written by somebody who had seen no
code of this store, and none of its texts is of anybody else; what a prompt needs is given by strings of which the
window must hold one each. Assembled prompts are scored by the same rules as recalls alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import vmstore

SET = Path(__file__).with_name("adversarial.json")
MODEL = "m-1"


class Turn(NamedTuple):
    """What the user wrote, and what was answered."""

    number: int
    user: str
    assistant: str


class Prompt(NamedTuple):
    """A question asked after the last turn: each group needs one of its strings; stale ones alone are wrong."""

    number: int
    kind: str
    text: str
    groups: tuple[tuple[str, ...], ...]
    stale: tuple[str, ...]


class AdversarialSet(NamedTuple):
    """The turns, the prompts, and what must hold of a window: its tokens, and how many prompts it answers."""

    turns: list[Turn]
    prompts: list[Prompt]
    window_tokens: int
    answered: int
    mean_tokens: int


class Verdict(NamedTuple):
    """What can be read in a window: all groups, which share of them, and only what is no longer so."""

    answered: bool
    share: float
    stale: bool


def adversarial_set(path: Path = SET) -> AdversarialSet:
    """The set that is committed beside this module, or another of its format."""
    read = json.loads(path.read_text("utf-8"))
    prompts = [
        Prompt(
            prompt["n"], prompt["kind"], prompt["text"], tuple(tuple(group["any_of"]) for group in prompt["all_of"]),
            tuple(prompt["stale"]),
        )
        for prompt in read["prompts"]
    ]  # fmt: skip
    turns = [Turn(turn["turn"], turn["user"], turn["assistant"]) for turn in read["turns"]]
    goal = read["goal"]
    return AdversarialSet(turns, prompts, read["window_tokens"], goal["answered"], goal["mean_tokens_at_most"])


def verdict(prompt: Prompt, window: str) -> Verdict:
    """What of a prompt's answer a window holds; the prompt's own text is no part of the window."""
    text = window.casefold()
    there = [any(each_text.casefold() in text for each_text in group) for group in prompt.groups]
    answered = all(there)
    stale = not answered and any(each_text.casefold() in text for each_text in prompt.stale)
    return Verdict(answered, sum(there) / len(there), stale)


def verdicts(prompts: Sequence[Prompt], window: Callable[[Prompt], str]) -> list[Verdict]:
    """The verdict of each prompt on the window that is made for it."""
    return [verdict(prompt, window(prompt)) for prompt in prompts]


def record_turns(session: vmstore.Session, turns: Sequence[Turn]) -> None:
    """Records the turns in a session, each as a call with all that was said before it."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.user})
        answer = {"role": "assistant", "content": turn.assistant}
        session.record({"model": MODEL, "messages": messages}, {"choices": [{"message": answer}]})
        messages.append(answer)
