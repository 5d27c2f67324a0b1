"""Scripts that a store lives through in a campaign: drawn from a seed, played through public faces, asked to the end.

A step can be played again after a crash, as a caller would try again: the outcome must be as if it
had been played once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import StoreError

LOG = "default/log.sqlite"
STORE = "agent.vms"
SOURCE = "source.jsonl"
LARGE = 70_000  # bytes of a content that does not lie in the log's own file

Request = dict[str, Any]
Summary = dict[str, tuple[int, ...]]


class Step(NamedTuple):
    """One thing done to a store: a kind, the session it is about, and what it needs."""

    kind: str
    session: str = ""
    told: Any = None


def answer(text: str) -> dict[str, Any]:
    """A chat-completions answer."""
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 3},
    }


class Draft:
    """Draws the steps of a script."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.talks: dict[str, list[Request]] = {}
        self.calls: dict[str, int] = {}
        self.steps: list[Step] = []

    def draw(self, count: int) -> list[Step]:
        """So many steps; the first record a call each in two sessions, and every kind comes."""
        for session in ("a", "b"):
            self.talks[session], self.calls[session] = [], 0
            self.record(session)
        kinds = ["fork", "import", "reopen", "rebuild", "checkpoint", "elsewhere", "compact", "sweep"]
        self.chance.shuffle(kinds)
        weights = ["record"] * 8 + ["update"] * 3
        every = max(1, count // len(kinds))
        while len(self.steps) < count:
            turn = len(self.steps)
            kind = kinds.pop() if kinds and turn % every == every - 1 else self.chance.choice(weights)
            getattr(self, kind)(self.chance.choice(sorted(self.talks)))
        self.steps.append(Step("reopen"))
        return self.steps

    def text(self) -> str:
        """Something said: mostly short, sometimes of pages, rarely larger than a row may be."""
        size = self.chance.choice((5, 20, 60, 200, 800, 4000) * 7 + (LARGE,))
        return f"{self.chance.getrandbits(2 * size + 40):x} " + "word " * (size // 10)

    def record(self, session: str) -> None:
        """A call that says something more."""
        talk = self.talks[session]
        talk.append({"role": "user", "content": self.text()})
        self._call("record", session)

    def update(self, session: str) -> None:
        """A call in which something said before stands otherwise, or no longer."""
        talk = self.talks[session]
        if len(talk) > 2:
            index = self.chance.randrange(len(talk))
            if self.chance.random() < 0.3:
                del talk[index]
            else:
                talk[index] = {**talk[index], "content": self.text()}
        self.record(session)

    def elsewhere(self, session: str) -> None:
        """A call recorded through another handle of the same process."""
        self.talks[session].append({"role": "user", "content": self.text()})
        self._call("elsewhere", session)

    def _call(self, kind: str, session: str) -> None:
        talk = self.talks[session]
        request = {"model": "m", "messages": [dict(message) for message in talk]}
        text = self.text()
        self.steps.append(Step(kind, session, (request, answer(text), f"r{len(self.steps)}")))
        talk.append({"role": "assistant", "content": text})
        self.calls[session] += 1

    def fork(self, session: str) -> None:
        """A fork of a session's present."""
        name = f"{session}{len(self.talks)}"
        self.talks[name] = list(self.talks[session])
        self.calls[name] = self.calls[session]
        self.steps.append(Step("fork", session, name))

    def __getattr__(self, kind: str) -> Any:
        """Every other kind needs nothing."""
        return lambda session: self.steps.append(Step(kind))


def script(seed: int, count: int = 22) -> list[Step]:
    """The steps of a seed."""
    return Draft(random.Random(seed)).draw(count)


def write_source(folder: Path, chance: random.Random) -> None:
    """Writes the file that scripts import: a short conversation."""
    roles = ("user", "assistant")
    lines = [{"role": roles[n % 2], "content": f"{n} " + "said " * chance.randrange(40)} for n in range(6)]
    (folder / SOURCE).write_text("".join(json.dumps(line) + "\n" for line in lines))


class Player:
    """Plays steps on the store of a folder."""

    def __init__(self, folder: Path, source: Path, seed: int) -> None:
        self.path = folder / STORE
        self.source = source
        self.seed = seed
        self.clock = ManualClock(1_700_000_000_000_000, 1_000)
        self._opened = 0
        self._store: vmstore.Store | None = None

    @property
    def store(self) -> vmstore.Store:
        """The store, opened where it is not."""
        if self._store is None:
            self._store = self.open()
        return self._store

    def open(self) -> vmstore.Store:
        """Another handle; its salts are its own."""
        self._opened += 1
        return vmstore.open(self.path, clock=self.clock, ids=SeededIds(self.seed * 1000 + self._opened))

    def close(self) -> None:
        """Lets go of the store."""
        store, self._store = self._store, None
        if store is not None:
            with suppress(apsw.Error):  # SQLite keeps quiet about a last checkpoint that fails; a VFS in Python cannot
                store.close()

    def play(self, step: Step) -> None:
        """Plays a step, or plays it again."""
        getattr(self, f"_{step.kind}")(step)

    def _record(self, step: Step) -> None:
        request, response, request_id = step.told
        self.store.record(step.session, request, response, request_id=request_id)

    _update = _record

    def _elsewhere(self, step: Step) -> None:
        self.store.sessions()
        with self.open() as other:
            request, response, request_id = step.told
            other.record(step.session, request, response, request_id=request_id)

    def _fork(self, step: Step) -> None:
        if step.told not in {info.session for info in self.store.sessions()}:
            self.store.session(step.session).fork(step.told)

    def _import(self, step: Step) -> None:
        self.store.import_file(self.source)

    def _reopen(self, step: Step) -> None:
        self.close()
        self.store.sessions()

    def _rebuild(self, step: Step) -> None:
        self.store.admin.rebuild()

    def _checkpoint(self, step: Step) -> None:
        assert self.store.folder is not None
        db = apsw.Connection(str(self.path / LOG))
        try:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except apsw.Error as error:  # this connection is the script's own
            raise StoreError(f"no checkpoint: {error}") from error
        finally:
            db.close()

    def _compact(self, step: Step) -> None:
        self.store.admin.compact()

    def _sweep(self, step: Step) -> None:
        self.store.admin.collect_garbage(grace_s=0)


def summary(store: vmstore.Store) -> Summary:
    """What each session counts: what stays the same however often a step was tried."""
    return {s.session: (s.turns, s.calls, s.messages, s.pages, s.position) for s in store.sessions()}


def requests(steps: Sequence[Step]) -> dict[str, list[Request]]:
    """The requests of every session that was recorded, by call; a fork begins with its parent's."""
    fields: dict[str, list[Request]] = {}
    for step in steps:
        if step.kind == "fork":
            fields[step.told] = list(fields[step.session])
        elif isinstance(step.told, tuple):
            fields.setdefault(step.session, []).append(step.told[0])
    return fields
