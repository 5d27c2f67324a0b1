"""What must hold after a crash, whatever the crash: of a log by itself, and of the store that stands on it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import vmstore
from campaigns.script import LOG, STORE, Player, Step, Summary, requests, summary
from vmstore.cells.cell import Cell
from vmstore.errors import VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.sqlite import SqliteLog

ALL = 1 << 30


class Broken(AssertionError):
    """An invariant that does not hold; `kind` is the word it is counted under."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


class Held(NamedTuple):
    """Everything a log holds."""

    commits: list[Commit]
    cells: dict[int, Cell]


def held(store: Path) -> Held:
    """Reads the log of a store through its port."""
    log = SqliteLog(store / LOG)
    try:
        commits = log.tail(0, ALL)
        return Held(commits, log.cells([n for c in commits for n in range(c.cell, c.cell + c.cell_count)]))
    finally:
        log.close()


def prefix(whole: Held, ordinal: int) -> Held:
    """What a log held at an ordinal."""
    commits = whole.commits[:ordinal]
    last = max((c.cell + c.cell_count - 1 for c in commits if c.cell_count), default=0)
    return Held(commits, {n: cell for n, cell in whole.cells.items() if n <= last})


class Demand(NamedTuple):
    """What is asked of a log after a crash: what was acknowledged, and what was under way."""

    acked: int  # the last ordinal acknowledged
    asked: int  # the last ordinal it may hold
    ends: frozenset[int]  # the ordinals at which an append ended


def check_log(store: Path, whole: Held, demand: Demand) -> None:
    """Raises Broken unless a log is what it would be had the crash come between two appends."""
    if not (store / LOG).is_file():
        if demand.acked:
            raise Broken("lost", f"there is no log, and {demand.acked} commits were acknowledged")
        return
    try:
        found = held(store)
    except VmstoreError as error:
        raise Broken("unreadable", f"{type(error).__name__}: {error}") from error
    count = len(found.commits)
    if count < demand.acked:
        raise Broken("lost", f"the log ends at {count}, and {demand.acked} was acknowledged")
    if count > demand.asked:
        raise Broken("foreign", f"the log ends at {count}, and nothing beyond {demand.asked} was asked for")
    if count not in demand.ends:
        raise Broken("torn", f"the log ends at {count}, in the middle of an append")
    right = prefix(whole, count)
    if found.commits != right.commits:
        raise Broken("foreign", "a commit is not as it was written")
    if found.cells != right.cells:
        raise Broken("torn", "a cell is not as it was written, or not there")


def check_store(folder: Path, source: Path, steps: Sequence[Step], done: int, after: Summary, seed: int) -> None:
    """Raises Broken unless a store opens, has all `done` steps, and comes to the same end when the next is retried.

    `after` is what its sessions count after one more step.
    """
    player = Player(folder, source, seed)
    try:
        for step in steps[done : done + 1]:
            player.play(step)
        check_whole(player.store, steps[: done + 1], after)
    except VmstoreError as error:
        raise Broken("unusable", f"{type(error).__name__}: {error}") from error
    finally:
        player.close()


def check_whole(store: vmstore.Store, steps: Sequence[Step], after: Summary) -> None:
    """Raises Broken unless a store has exactly what these steps told it, sound, and takes in another call."""
    found = summary(store)
    if found != after:
        wrong = {s: (found.get(s), after.get(s)) for s in {*found, *after} if found.get(s) != after.get(s)}
        kind = "lost" if any((f or (0,)) < (a or (0,)) for f, a in wrong.values()) else "doubled"
        raise Broken(kind, f"sessions (turns, calls, messages, pages, position), found and right: {wrong}")
    verdict = store.verify()
    if not verdict.ok:
        raise Broken("unsound", f"verify finds {[tuple(vars_of(p)) for p in verdict.problems[:3]]}")
    for name, sent in requests(steps).items():
        session = store.session(name)
        calls = session.calls()
        for call in sorted({1, len(sent), (len(sent) + 1) // 2}):
            if session.request(call=call) != sent[call - 1]:
                raise Broken("changed", f"call {call} of {name!r} is not the request that was sent")
            if calls[call - 1].status != "ok":
                raise Broken("torn", f"call {call} of {name!r} has no reply")
    before = sum(count[1] for count in found.values())
    store.record("afterwards", {"model": "m", "messages": [{"role": "user", "content": "still there?"}]})
    if sum(count[1] for count in summary(store).values()) != before + 1:
        raise Broken("doubled", "a new call is not counted once")


def vars_of(problem: object) -> list[str]:
    """A problem's fields."""
    return [str(getattr(problem, name)) for name in ("kind", "where", "what")]


def pick(chance: random.Random, one_in: int) -> bool:
    """Whether this one is of the sample."""
    return chance.random() * one_in < 1


__all__ = ["STORE", "Broken", "Demand", "Held", "check_log", "check_store", "check_whole", "held", "pick", "prefix"]
