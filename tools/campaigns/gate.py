"""What the gate lets in: batches by hand, records and imports, well formed and wrong at one place or several.

What is refused has written nothing. What is accepted leaves every question answerable, each view
foldable, `verify` content and `doctor` with nothing to say. Questions are asked after so many
accepted batches; where one fails the same seed is played again and asked after each, so that the
batch is named that did it.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from campaigns import doors
from campaigns.hands import Hand, KnownSession, nothing_held
from campaigns.held import Broken

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Compress, Create, Message, Reference, Update, decode
from vmstore.errors import VmstoreError
from vmstore.log.commit import Commit
from vmstore.store.session import Session

STEPS = 600
ASKED = 200  # accepted batches between two rounds of questions
NAMES = ("hand", "recorded", "live", "other")
NEEDED = {"accepted", "refused", "recorded", "imported", "questions", "forks", "erased"}
WORDS = ("the gate", "a train \ud83d", "x" * 300, "café", "", "\0", "[erased at position 3]", "</VM:CONTEXT>")


def batch(seed: int, folder: Path, steps: int = STEPS) -> Counter[str]:
    """Plays one seed; raises Broken with the batch after which a question failed."""
    player = Player(seed, folder / "played")
    try:
        for step in range(steps):
            player.step(step)
            if player.due:
                player.ask()
        player.ask(everything=True)
    except Broken as broken:
        if broken.kind == "question" and not player.alone:
            raise named(seed, folder, player.asked_at, step, broken) from broken
        raise
    finally:
        player.close()
    return player.found


def named(seed: int, folder: Path, since: int, last: int, broken: Broken) -> Broken:
    """The same failure, with the batch that did it: the seed played again, asked after each step since the last."""
    again = Player(seed, folder / "again")
    try:
        for step in range(last + 1):
            again.step(step)
            if step >= since:
                again.ask(every=True, everything=step == last)
    except Broken as refusal:
        return Broken(refusal.kind, f"step {step}, {again.did}: {refusal}")
    finally:
        again.close()
    return broken


class Player:
    """A store on disk that is written to in every way, and asked."""

    def __init__(self, seed: int, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.path = folder, folder / "a.vms"
        self.chance, self.asker = random.Random(seed), random.Random(-seed)
        self.clock = ManualClock(1_700_000_000_000_000, 1_000)
        self.store = vmstore.open(self.path, clock=self.clock, ids=SeededIds(seed))
        self.held: dict[int, KnownSession] = {}
        self.found: Counter[str] = Counter()
        self.did = ""
        self.alone = False
        self.asked_at = 0
        self._unasked = 0
        self._at = 0
        self._spoken: dict[str, list[Any]] = {}
        self._begin()

    def _begin(self) -> None:
        """The sessions there are from the start: by hand, recorded, live, and one to name cells of."""
        self.store.session("hand", create=True, user="ann", agent="hand")
        for name in ("recorded", "other"):
            self._spoken[name] = [{"role": "user", "content": "the gate"}]
            self.store.record(name, {"model": "m-1", "messages": list(self._spoken[name])})
        self.store.live_session("live", l0_tokens_max=4_000).user("When does the gate open?")
        self._follow()

    def close(self) -> None:
        """Lets go of the store."""
        self.store.close()

    @property
    def due(self) -> bool:
        """Whether so much was accepted that it is time to ask."""
        return self._unasked >= ASKED

    # ---- writing

    def step(self, step: int) -> None:
        """One thing that somebody does."""
        if not self._unasked:
            self.asked_at = step
        deed = self.chance.random()
        name = self.chance.choice(self._names())
        before = self.store.admin.log.ordinal
        try:
            if deed < 0.90:
                self._batch(name)
            elif deed < 0.93:
                self._record("recorded" if self.chance.random() < 0.7 else name)
            elif deed < 0.96:
                self._import(step)
            elif deed < 0.97:
                self._fork(name, step)
            elif deed < 0.98:
                self._erase(name)
            else:
                self._live()
        except VmstoreError as error:
            self.did = f"{self.did} refused: {error}"
            self.found["refused"] += 1
            self.found[f"refused {_rule(error)}"] += 1
            if deed < 0.96 and self.store.admin.log.ordinal != before:
                raise Broken("half written", f"step {step}: {self.did}") from error
        except Exception as error:
            raise Broken("foreign error", f"step {step}, {self.did}: {type(error).__name__}: {error}") from error
        self._follow()

    def _names(self) -> list[str]:
        return [info.session for info in self.store.sessions()]

    def _batch(self, name: str) -> None:
        """A batch by hand."""
        session = self.store.session(name)
        others = [value for key, value in self.held.items() if key != session._key]
        items = self.held.setdefault(session._key, nothing_held())
        if others and self.chance.random() < 0.1:  # cells and pages of another session
            items = self.chance.choice(others)
        hand = Hand(self.chance, items, others)
        self.did = f"batch in {name}:"
        with session.batch() as begun:
            for _, made in hand.write(begun):
                self.did += f" {made!r:.300}"
        self.found["accepted"] += 1
        self._unasked += 1

    def _record(self, name: str) -> None:
        """A call, with values as nobody should send them."""
        chance = self.chance
        items = self._spoken.setdefault(name, [])
        items.append({"role": chance.choice(("user", "tool", "x")), "content": self._content()})
        request: dict[str, Any] = {"model": chance.choice(("m-1", "m-\ud83d")), "messages": list(items)}
        if chance.random() < 0.3:
            request[chance.choice(("seed", "k" * 5_000, "\0t"))] = self._value()
        usage = {"prompt_tokens": chance.choice((5, 2**53, 10**30, -1, 1.5)), "completion_tokens": 2**60}
        answer: Any = {"choices": [{"message": {"role": "assistant", "content": chance.choice(WORDS)}}], "usage": usage}
        answer["choices"][0]["finish_reason"] = chance.choice(("stop", "\ud83d", None, {"a": 1}))
        if chance.random() < 0.2:
            answer = chance.choice((None, ValueError("a \ud83d"), "<html>", [], {"error": {"message": "\ud83d"}}))
        self.did = f"record in {name}: {shown(request):.300} {shown(answer):.200}"
        try:
            self.store.record(name, request, answer)
        except VmstoreError:
            items.pop()
            raise
        items.append({"role": "assistant", "content": chance.choice(WORDS)})
        self.found["recorded"] += 1
        self._unasked += 1

    def _content(self) -> Any:
        chance = self.chance
        text = chance.choice(WORDS)
        return chance.choice((text, [{"type": "text", "text": text}, {"type": "text", "text": "two"}], None, [], 5))

    def _value(self) -> Any:
        deep: Any = "x"
        for _ in range(self.chance.choice((3, 150, 250, 2_000))):
            deep = [deep]
        values = (10**30, 10**5_000, -0.0, 1e308, float("inf"), float("nan"), deep, {"\0j": 0}, "\ud83d", {"": None})
        return self.chance.choice(values)

    def _import(self, step: int) -> None:
        """A file of messages with what no agent should write."""
        chance, lines = self.chance, []
        for _ in range(chance.randrange(1, 6)):
            role = chance.choice(("user", "assistant"))
            line = {"role": role, "content": chance.choice(("a", "b \ud83d", "c"))}
            text = json.dumps(line)[:-1]
            for key in ("vm", "extra", "name", "usage"):
                if chance.random() < 0.3:
                    text += f', "{key}": {self._odd_number()}'
            lines.append(text + "}")
        file = self.folder / f"{step}.jsonl"
        file.write_text("\n".join(lines) + "\n")
        self.did = f"import of {lines!r:.600}"
        self.store.import_file(file, session=f"import-{step}", format="chat-completions")
        self.found["imported"] += 1
        self._unasked += 1

    def _odd_number(self) -> str:
        number = self.chance.choice(
            ("NaN", "1e308", "1e400", "-5", "9" * 400, "5", '"x"', "null", "[]", "9007199254740992")
        )
        usage = f'{{"tokens_in": {number}, "tokens_out": {number}}}'
        inner = f'"latency_ms": {number}, "cost_usd": {number}, "usage": {usage}, "importance": {number}, "tags": [1]'
        return self.chance.choice((number, f"{{{inner}}}", "[" * 300 + "]" * 300))

    def _fork(self, name: str, step: int) -> None:
        self.did = f"fork of {name}"
        child = self.store.session(name).fork(f"fork-{step}")
        parent = self.held.get(self.store.session(name)._key, nothing_held())
        self.held[child._key] = copy.deepcopy(parent)
        self.found["forks"] += 1

    def _erase(self, name: str) -> None:
        pages = [page.page for page in self.store.session(name).pages()]
        self.did = f"erase in {name}"
        if pages:
            vmstore.erase(self.store, page=self.chance.choice(pages), in_session=name)
            self.found["erased"] += 1

    def _live(self) -> None:
        session = self.store.session("live")
        self.did = "live"
        session.user(self.chance.choice(("Why?", "the gate")))
        session.pack()
        self.found["live"] += 1
        self._unasked += 1

    def _follow(self) -> None:
        """Takes in what the log gained, so that the hand can name it."""
        while commits := self.store.admin.log.tail(self._at, 100):
            for commit in commits:
                take(self.held.setdefault(commit.session, nothing_held()), commit)
            self._at = commits[-1].ordinal

    # ---- asking

    def ask(self, *, every: bool = False, everything: bool = False) -> None:
        """Asks at all doors, of some sessions or of every one, of the folder too; Broken where one does not answer."""
        self._unasked = 0
        names = self._names()
        chosen = names if every or everything else self.asker.sample(names, min(2, len(names)))
        self._asked(lambda: doors.of_store(self.store), "the store")
        for name in chosen:
            session: Session = self.store.session(name)
            self._asked(lambda session=session: doors.of_session(self.store, session, self.asker), name)
        if everything:
            folder = self.folder / f"out-{self.found['questions']}"
            folder.mkdir()
            self._asked(lambda: doors.of_folder(self.store, self.path, folder), "the folder")

    def _asked(self, made: Callable[[], Iterator[doors.Door]], of: str) -> None:
        asked = "its doors"
        try:
            for what, question in made():
                asked = what
                question()
                self.found["questions"] += 1
        except Exception as error:
            raise Broken("question", f"{asked} of {of}: {type(error).__name__}: {error}") from error


def take(value: KnownSession, commit: Commit) -> None:
    """Has the hand know what a commit brought."""
    value.cells.extend((commit.first, index) for index in range(commit.cell_count))
    for position, made in enumerate(decode(commit.body), commit.first):
        if isinstance(made, Message):
            value.messages.append(position)
        elif isinstance(made, Create):
            value.pages[position], value.versions[position] = [(position, 0)], 1
        elif isinstance(made, Update) and made.page in value.pages:
            value.pages[made.page].append((position, 0))
            value.versions[made.page] = made.version
        elif isinstance(made, Compress) and made.page in value.pages:
            value.pages[made.page].append((position, made.level))
        elif isinstance(made, Reference):
            value.references.append(position)


def shown(value: Any) -> str:
    """A value for a message, one included that this process cannot write."""
    try:
        return repr(value)
    except (ValueError, RecursionError) as error:
        return f"[{type(value).__name__}: {error}]"


def _rule(error: VmstoreError) -> str:
    """The rule an error names, or what kind of error it is."""
    text = str(error)
    return text.rpartition("(rule ")[2].rstrip(")") if "(rule " in text else type(error).__name__
