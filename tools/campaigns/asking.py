"""VMQL while others write: every answer is the one that a store gives which ends at the answer's basis.

Writers record and a session lives while processes ask; each answer is kept with its basis. Afterwards
the log is cut at each of these moments, the last one first, its views folded again, and the question
asked again.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from bisect import bisect_left
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from campaigns import load
from campaigns.crew import Slots, ended, kill, start
from campaigns.held import Broken
from campaigns.script import LOG, STORE

import vmstore
from vmstore.vmql.syntax.errors import QueryError

SECONDS = 6.0
WRITERS, ASKERS = 3, 2
PAUSE_S = 0.02  # between two questions
PATIENCE_S = 20.0  # until a session lives
CALLS_S, TURNS_S = 12.0, 6.0
MOST = 250  # answers of a batch that are asked again
ONE = (
    "PAGES page, tokens, tier, level, type",
    "PAGES type, count(*), sum(tokens) BY type",
    "CONTEXT",
    "CALLS call, turn, status, tokens",
    "TURNS",
    "MUTATIONS position, kind, call",
    "MUTATIONS kind, count(*) BY kind",
    "RESIDENCIES",
    "SEARCH 'why harbour' LIMIT 5",
    "PAGES page AS OF CALL 1 WHERE tier = L0",
)
ALL = (
    "SESSIONS session, calls, pages, position",
    "PAGES count(*), sum(tokens) ACROSS SESSIONS",
    "MUTATIONS kind, count(*) BY kind ACROSS SESSIONS",
    "CALLS session, call, status ACROSS SESSIONS",
)
NEEDED = {"answers", "of one session", "of all sessions", "bases", "of a store for reading", "of a live session"}


Stood = dict[str, list[tuple[int, int]]]  # where each session stood after which commit of its own
_STOOD = "SELECT s.name, c.last, c.ordinal FROM commits c JOIN sessions s USING (session) ORDER BY c.ordinal"


class Answer(NamedTuple):
    """What was asked, and answered at which basis."""

    text: str
    session: str | None
    basis: dict[str, Any]
    rows: str
    mode: str


def batch(seed: int, folder: Path, seconds: float = SECONDS) -> Counter[str]:
    """Lets some write and some ask for a while; then asks again of the log as it was."""
    slots = Slots(WRITERS)
    for name in ("times", "told", "answers"):
        (folder / name).mkdir()
    vmstore.open(folder / STORE).close()
    works = [partial(load.record, folder, slots, n, CALLS_S, "") for n in range(WRITERS)]
    works.append(partial(load.live, folder, slots, TURNS_S))
    asks = [partial(ask, folder, slots, seed * 10 + n, "rw" if n % 2 else "r") for n in range(ASKERS)]
    pids = [start(work) for work in works]
    try:
        until = time.monotonic() + PATIENCE_S
        while not (folder / "told" / "live").exists() and time.monotonic() < until:
            time.sleep(PAUSE_S)
        pids += [start(work) for work in asks]
        time.sleep(seconds)
        slots.stop()
        while pids:
            ended(os.waitpid(pids.pop(), 0)[1])
    finally:
        for pid in pids:
            kill(pid)
    answers = [answer for path in sorted((folder / "answers").iterdir()) for answer in read(path)]
    return check(folder, answers, random.Random(seed))


def ask(folder: Path, slots: Slots, seed: int, mode: str) -> None:
    """Asks one question after another, and writes down what it is told."""
    chance = random.Random(seed)
    with (folder / "answers" / f"{seed}").open("w") as file, vmstore.open(folder / STORE, mode) as store:
        while not slots.stopped:
            time.sleep(PAUSE_S)
            names = [info.session for info in store.sessions()]
            each_bool = bool(names) and chance.random() < 0.7
            if lived := [name for name in names if name.startswith("live") and chance.random() < 0.3]:
                names = lived
            text, session = chance.choice(ONE if each_bool else ALL), chance.choice(names) if each_bool else None
            try:
                answer = store.query(text, session=session)
            except QueryError as error:
                if error.code != "no-such-moment":
                    raise
                continue  # nothing was called yet
            file.write(json.dumps(Answer(text, session, answer.basis, rows_text(answer), mode)) + "\n")


def rows_text(answer: Any) -> str:
    """The rows of an answer as a text."""
    return repr([tuple(row) for row in answer])


def read(path: Path) -> list[Answer]:
    """The answers in a file."""
    return [Answer(*json.loads(line)) for line in path.read_text().splitlines()]


# ---- asked again


def check(folder: Path, answers: list[Answer], chance: random.Random) -> Counter[str]:
    """Raises Broken where an answer is not that of the log up to its basis."""
    counts: Counter[str] = Counter()
    copy = folder / "cut.vms"
    shutil.copytree(folder / STORE, copy)
    with vmstore.open(copy) as store:
        names = [info.session for info in store.sessions()]
        stood: Stood = {name: [] for name in names}
        for name, last, ordinal in store.admin.views.execute(_STOOD):
            stood[name].append((last, ordinal))
    chosen = answers if len(answers) <= MOST else chance.sample(answers, MOST)
    last = 0
    for answer in sorted(chosen, key=lambda value: ordinal_of(value, stood), reverse=True):
        ordinal = ordinal_of(answer, stood)
        if ordinal != last:
            cut(copy, ordinal)
            counts["bases"] += 1
            last = ordinal
        with vmstore.open(copy) as store:
            right = rows_text(store.query(answer.text, session=answer.session))
        if right != answer.rows:
            raise Broken("moved", f"{answer.text} of {answer.session} at {answer.basis}: {answer.rows}, not {right}")
        counts += Counter({"answers": 1, "of all sessions" if answer.session is None else "of one session": 1})
        counts["of a store for reading"] += answer.mode == "r"
        counts["of a live session"] += (answer.session or "").startswith("live")
    return counts


def ordinal_of(answer: Answer, stood: Stood) -> int:
    """The commit that an answer's basis ends with; the first of its session where that lies in its parent's past."""
    if answer.session is None:
        return int(answer.basis["ordinal"])
    commits = stood[answer.session]
    return commits[bisect_left(commits, (answer.basis["position"],))][1]


def cut(store: Path, ordinal: int) -> None:
    """Cuts a log after a commit, and deletes what followed it."""
    db = apsw.Connection(str(store / LOG))
    after = db.execute("SELECT coalesce(max(cell), 0) FROM commits WHERE ordinal <= ?", (ordinal,)).get
    db.execute("DELETE FROM commits WHERE ordinal > ?", (ordinal,)).fetchall()
    count = db.execute("SELECT length(commitments) / 32 FROM commits WHERE cell = ?", (after,)).get or 0
    db.execute("DELETE FROM frames WHERE first >= ?", (after + count,)).fetchall()
    db.close()
    for path in (store / "default").iterdir():
        if not path.name.startswith("log.") and path.name != "blobs":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
