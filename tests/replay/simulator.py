"""What LRU does to pages that cannot be shown shorter, told a second time: plain lists and dicts, slow and obvious.

A trace is a list of turns, each one call: pages that arrive, by their tokens, or pages that are
used, by their number from 0 on (-1 is none there is) and by whether the model asked for them.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tests.replay.told import Life
from vmstore.core import mutation as m
from vmstore.core.decision import Use

FAULTS_A_TURN = 3
RESERVE = 100
SETTINGS: dict[str, Any] = {
    "compress": False,
    "prefetch": False,
    "pinned_turns": 0,
    "protected_turns": 0,
    "cooldown_turns": 0,
    "reserve_faults_tokens": RESERVE,
    "fault_threshold": "speculative",
}


class Turn(NamedTuple):
    """What happens in one turn."""

    new: list[int]
    uses: list[tuple[int, bool]]


def trace(seed: int, turns: int) -> list[Turn]:
    """A trace of pages that are used again and again, some more than others."""
    chance = random.Random(seed)
    other_turns, pages = [], 0
    for _ in range(turns):
        if not pages or chance.random() < 0.4:
            other_turns.append(Turn([chance.randint(5, 60) for _ in range(chance.randint(1, 3))], []))
            pages += len(other_turns[-1].new)
        else:
            uses = [int(chance.triangular(0, pages, pages * 0.8)) for _ in range(chance.randint(1, 5))]
            other_turns.append(
                Turn([], [(use if chance.random() > 0.05 else -1, chance.random() < 0.7) for use in uses])
            )
    return other_turns


class Prompt:
    """What is in the prompt, in order, and what has left it."""

    def __init__(self, budget: int) -> None:
        self.budget, self.room = budget, budget - RESERVE
        self.high, self.low = int(self.room * 0.85), int(self.room * 0.70)
        self.tokens: list[int] = []  # of every page
        self.used: list[int] = []  # when it was last used, counted in uses and in pages written
        self.here: list[int] = []
        self.last: list[int] = []  # as the call before had it
        self.evictions = self.voided = self.peak = 0

    def full(self) -> int:
        """The tokens in it."""
        return sum(self.tokens[page] for page in self.here)

    def leave(self, limit: int, spared: list[int]) -> None:
        """Pages leave, the one that was used longest ago first, until it is within a limit."""
        while self.full() > limit:
            able = [page for page in self.here if page not in spared]
            if not able:
                return
            self.here.remove(min(able, key=lambda page: (self.used[page], page)))
            self.evictions += 1

    def call(self) -> None:
        """The model sees it; what does not begin as the call before did is lost to a cache."""
        same = 0
        while same < min(len(self.last), len(self.here)) and self.last[same] == self.here[same]:
            same += 1
        self.voided += sum(self.tokens[page] for page in self.last[same:])
        self.last = list(self.here)
        self.peak = max(self.peak, self.full())


def ask(
    prompt: Prompt, uses: list[tuple[int, bool]], denials: dict[str, int]
) -> tuple[list[int], list[int], list[int]]:
    """Brings in what is used and not there; the pages that were missed, those that came, and those to be left alone."""
    missed: list[int] = []
    came: list[int] = []
    kept: list[int] = []  # what came, and what the model asked for that was there
    asked = 0
    for page, by_model in uses:
        if page in prompt.here:
            kept += [page] if by_model and page not in kept else []
            continue
        missed += [page] if page >= 0 else []
        why = None
        if page < 0:
            why = "no_page"
        elif by_model and asked >= FAULTS_A_TURN:
            why = "faults_a_turn"
        elif prompt.tokens[page] + sum(prompt.tokens[item] for item in kept) > prompt.budget:
            why = "no_room"
        if why is not None:
            denials[why] = denials.get(why, 0) + 1
            continue
        if prompt.full() + prompt.tokens[page] > prompt.budget:
            prompt.leave(prompt.low - prompt.tokens[page], kept)
        prompt.here.append(page)
        came.append(page)
        kept.append(page)
        asked += by_model
    return missed, came, kept


def simulate(turns: list[Turn], budget: int) -> dict[str, Any]:
    """The numbers of a trace under a budget."""
    prompt = Prompt(budget)
    uses = served = tokens = 0
    denials: dict[str, int] = {}
    faults: list[tuple[int, int]] = []
    indexes = []
    for number, turn in enumerate(turns, 1):
        new = list(range(len(prompt.tokens), len(prompt.tokens) + len(turn.new)))
        prompt.here += new
        prompt.tokens += turn.new
        prompt.used += [uses + page + 1 for page in new]
        for page, _ in turn.uses:
            uses += 1
            if page >= 0:
                prompt.used[page] = uses + len(prompt.tokens)
        missed, came, kept = ask(prompt, turn.uses, denials)
        faults += [(number, page) for page in missed]
        served += len(came)
        tokens += sum(prompt.tokens[page] for page in came)
        if prompt.full() > prompt.high and not came:
            prompt.leave(prompt.low, new + kept)
            prompt.leave(prompt.room, kept)
        prompt.call()
        window = [page for when, page in faults if when > number - 5]
        indexes.append((len(window) - len(set(window))) / min(5, number))
    denied = sum(denials.values())
    return {
        "turns": len(turns),
        "calls": len(turns),
        "references": uses,
        "hits": uses - served - denied,
        "faults": served + denied,
        "served": served,
        "denied": denied,
        "denials": denials,
        "fault_tokens": tokens,
        "evictions": prompt.evictions,
        "prefix_voided": prompt.voided,
        "l0_peak": prompt.peak,
        "l0_tokens": prompt.full(),
        "thrash_index": round(sum(indexes) / len(indexes), 4),
    }


def lived(turns: list[Turn], budget: int, policy: str = "lru") -> Life:
    """The same trace told to the kernel."""
    life = Life(budget, policy, bare=True, **SETTINGS)
    pages: list[int] = []
    for number, turn in enumerate(turns, 1):
        life.tell(m.Turn(number))
        pages += [life.tell(m.Create(0, 0, 3, 0, 0, 0, size * 4, size)) for size in turn.new]
        for page, by_model in turn.uses:
            use = Use.FAULT if by_model else Use.QUOTE
            life.tell(m.Reference(pages[page] if page >= 0 else 0, use))
        life.act(pack=True)
    return life
