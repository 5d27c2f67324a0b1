"""What must hold after a crash, whatever the crash: of a log by itself, and of the store that stands on it."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from campaigns.script import LOG, Player, Request, Step, Summary, requests, summary

import vmstore
from vmstore.cells.cell import Cell
from vmstore.errors import VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.sqlite import SqliteLog

ALL = 1 << 30
PATIENCE_S = 60


class Broken(BaseException):
    """An invariant that does not hold; `kind` is the word it is counted under. No `except Exception` swallows it."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


@contextmanager
def ours() -> Iterator[None]:
    """Where only success is right: an error of vmstore makes a store unusable, any other must not be seen at all."""
    try:
        yield
    except VmstoreError as error:
        raise Broken("unusable", f"{type(error).__name__}: {error}") from error
    except Exception as error:
        raise Broken("foreign error", f"{type(error).__name__}: {error}") from error


@contextmanager
def patient() -> Iterator[None]:
    """Raises Broken where something takes so long that it will not end."""

    def late(*_: object) -> None:
        raise Broken("stuck", f"no end in {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class LogContents(NamedTuple):
    """Everything a log holds."""

    commits: list[Commit]
    cells: dict[int, Cell]


def read_log(store: Path) -> LogContents:
    """Reads the log of a store through its port."""
    log = SqliteLog(store / LOG)
    try:
        commits = log.tail(0, ALL)
        return LogContents(commits, log.cells([n for c in commits for n in range(c.cell, c.cell + c.cell_count)]))
    finally:
        log.close()


def prefix(whole: LogContents, ordinal: int) -> LogContents:
    """What a log held at an ordinal."""
    commits = whole.commits[:ordinal]
    last = max((c.cell + c.cell_count - 1 for c in commits if c.cell_count), default=0)
    return LogContents(commits, {n: cell for n, cell in whole.cells.items() if n <= last})


Attempt = tuple[bytes, ...]  # the hashes of the commits that one append brings


class Demand(NamedTuple):
    """What is asked of a log after a crash: what was acknowledged, and what may be there beyond it."""

    acked: int  # the last ordinal acknowledged
    attempts: tuple[Attempt, ...] = ()  # appends asked for since, in order; each is there whole or not at all


def check_log(store: Path, whole: LogContents, demand: Demand) -> None:
    """Raises Broken unless a log is what it would be had the crash come between two appends."""
    if not (store / LOG).is_file():
        if demand.acked:
            raise Broken("lost", f"there is no log, and {demand.acked} commits were acknowledged")
        return
    try:
        actual = read_log(store)
    except VmstoreError as error:
        raise Broken("unreadable", f"{type(error).__name__}: {error}") from error
    right = prefix(whole, demand.acked)
    if len(actual.commits) < demand.acked:
        raise Broken("lost", f"the log ends at {len(actual.commits)}, and {demand.acked} was acknowledged")
    if actual.commits[: demand.acked] != right.commits:
        raise Broken("foreign", "a commit that was acknowledged is not as it was written")
    if not right.cells.items() <= actual.cells.items():
        raise Broken("torn", "a cell that was acknowledged is not as it was written, or not there")
    _check_rest(actual, actual.commits[demand.acked :], demand.attempts)


def _check_rest(actual: LogContents, rest: list[Commit], attempts: tuple[Attempt, ...]) -> None:
    """Raises Broken unless what follows was asked for, each append whole, with its cells."""
    left = [commit.hash for commit in rest]
    for attempt in attempts:
        if left[: len(attempt)] == list(attempt):
            del left[: len(attempt)]
    if left:
        torn = any(left == list(attempt[: len(left)]) for attempt in attempts)
        what = "is half of an append" if torn else "was never asked for"
        raise Broken("torn" if torn else "foreign", f"commit {len(actual.commits) - len(left) + 1} {what}")
    for commit in rest:
        for index in range(commit.cell_count):
            cell = actual.cells.get(commit.cell + index)
            if cell is None or cell.commitment != commit.commitment(index):
                raise Broken("torn", f"cell {commit.cell + index} is not as it was written, or not there")


def check_store(folder: Path, source: Path, steps: Sequence[Step], done: int, after: Summary, seed: int) -> None:
    """Raises Broken unless a store opens, has all `done` steps, and comes to the same end when the next is retried.

    `after` is what its sessions count after one more step.
    """
    player = Player(folder, source, seed)
    try:
        with ours():
            for step in steps[done : done + 1]:
                player.play(step)
            check_whole(player.store, steps[: done + 1], after)
    finally:
        player.close()


def check_whole(store: vmstore.Store, steps: Sequence[Step], after: Summary) -> None:
    """Raises Broken unless a store has exactly what these steps told it, sound, and takes in another call."""
    actual_summary = summary(store)
    if actual_summary != after:
        wrong = {
            s: (actual_summary.get(s), after.get(s))
            for s in {*actual_summary, *after}
            if actual_summary.get(s) != after.get(s)
        }
        kind = "lost" if any((f or (0,)) < (a or (0,)) for f, a in wrong.values()) else "doubled"
        raise Broken(kind, f"sessions (turns, calls, messages, pages, position), found and right: {wrong}")
    verdict = store.verify()
    if not verdict.ok:
        raise Broken("unsound", f"verify finds {[(p.kind, p.where, p.what) for p in verdict.problems[:3]]}")
    for name, sent in requests(steps).items():
        session = store.session(name)
        calls = session.calls()
        for call in sorted({1, len(sent), (len(sent) + 1) // 2}):
            if session.wire.request(call=call) != sent[call - 1]:
                raise Broken("changed", f"call {call} of {name!r} is not the request that was sent")
            if calls[call - 1].status != "ok":
                raise Broken("torn", f"call {call} of {name!r} has no reply")
    check_goes_on(store, actual_summary, {name: sent[-1] for name, sent in requests(steps).items()})


def check_goes_on(store: vmstore.Store, before: Summary, requests: dict[str, Request]) -> None:
    """Raises Broken unless a call more in each session, and one in a new one, are taken in and counted once."""
    requests = {**requests, "afterwards": {"model": "m", "messages": [{"role": "user", "content": "still there?"}]}}
    for name, request in requests.items():
        store.record(name, request)
        if store.session(name).wire.request() != request:
            raise Broken("changed", f"the next call of {name!r} is not the request that was sent")
    now = summary(store)
    if any(now[name][1] != before.get(name, (0, 0))[1] + 1 for name in requests):
        raise Broken("doubled", "a new call is not counted once")


def pick(chance: random.Random, one_in: int) -> bool:
    """Whether this one is of the sample."""
    return chance.random() * one_in < 1
