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
    told, pages = [], 0
    for _ in range(turns):
        if not pages or chance.random() < 0.4:
            told.append(Turn([chance.randint(5, 60) for _ in range(chance.randint(1, 3))], []))
            pages += len(told[-1].new)
        else:
            uses = [int(chance.triangular(0, pages, pages * 0.8)) for _ in range(chance.randint(1, 5))]
            told.append(Turn([], [(use if chance.random() > 0.05 else -1, chance.random() < 0.7) for use in uses]))
    return told


def simulate(told: list[Turn], budget: int) -> dict[str, Any]:
    """The numbers of a trace under a budget."""
    room = budget - RESERVE
    high, low = int(room * 0.85), int(room * 0.70)
    tokens: list[int] = []  # of every page
    used: list[int] = []  # when it was last used, counted in uses
    here: list[int] = []  # the prompt in order
    last: list[int] = []  # the prompt of the call before
    count = dict.fromkeys(("references", "served", "evictions", "fault_tokens", "prefix_voided", "l0_peak"), 0)
    denials: dict[str, int] = {}
    faults: list[tuple[int, int]] = []
    indexes = []

    def full() -> int:
        return sum(tokens[page] for page in here)

    def leave(limit: int, spared: list[int]) -> None:
        while full() > limit:
            able = [page for page in here if page not in spared]
            if not able:
                return
            here.remove(min(able, key=lambda page: (used[page], page)))
            count["evictions"] += 1

    for number, turn in enumerate(told, 1):
        new: list[int] = []
        came: list[int] = []
        asked = 0
        for size in turn.new:
            new.append(len(tokens))
            here.append(len(tokens))
            tokens.append(size)
            used.append(count["references"])
        for page, _ in turn.uses:
            count["references"] += 1
            if page >= 0:
                used[page] = count["references"]
        for page, by_model in turn.uses:
            if page in here:
                continue
            if page >= 0:
                faults.append((number, page))
            why = None
            if page < 0:
                why = "no_page"
            elif by_model and asked >= FAULTS_A_TURN:
                why = "faults_a_turn"
            elif tokens[page] + sum(tokens[one] for one in came) > budget:
                why = "no_room"
            if why is not None:
                denials[why] = denials.get(why, 0) + 1
                continue
            leave(budget - tokens[page], came)
            here.append(page)
            came.append(page)
            asked += by_model
            count["served"] += 1
            count["fault_tokens"] += tokens[page]
        if full() > high and not came:
            leave(low, new)
            leave(high, [])
        same = 0
        while same < min(len(last), len(here)) and last[same] == here[same]:
            same += 1
        count["prefix_voided"] += sum(tokens[page] for page in last[same:])
        last = list(here)
        count["l0_peak"] = max(count["l0_peak"], full())
        window = [page for when, page in faults if when > number - 5]
        indexes.append((len(window) - len(set(window))) / min(5, number))
    denied = sum(denials.values())
    return {
        **count,
        "turns": len(told),
        "calls": len(told),
        "denied": denied,
        "denials": denials,
        "faults": count["served"] + denied,
        "hits": count["references"] - count["served"] - denied,
        "l0_tokens": full(),
        "thrash_index": round(sum(indexes) / len(indexes), 4),
    }


def lived(told: list[Turn], budget: int, policy: str = "lru") -> Life:
    """The same trace told to the kernel."""
    life = Life(budget, policy, bare=True, **SETTINGS)
    pages: list[int] = []
    for number, turn in enumerate(told, 1):
        life.tell(m.Turn(number))
        pages += [life.tell(m.Create(0, 0, 3, 0, 0, 0, size * 4, size)) for size in turn.new]
        for page, by_model in turn.uses:
            use = Use.FAULT if by_model else Use.QUOTE
            life.tell(m.Reference(pages[page] if page >= 0 else 0, use))
        life.act(pack=True)
    return life
