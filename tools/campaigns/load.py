"""What the processes of a soak do to one store: record calls, live, ask; each at its own pace, as applications do.

All a writer says is drawn from its number and the call's, so a later check knows what must be there.
"""

from __future__ import annotations

import hashlib
import os
import random
import struct
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
from campaigns.crew import Slots
from campaigns.held import Broken
from campaigns.script import STORE, Request, answer

import vmstore
from vmstore.errors import ConflictError, RefusedError

CALLS = 24  # of one session of a writer
SHARED, FORKED = 2, 1  # which of six sessions all writers share, which is a fork of the one before it
TURNS = 24  # of one live session, which then is left alone
L0_TOKENS = 3_000
LARGE_EVERY, LARGE_CHARS = 40, 80_000  # a content that lies in a file of its own
RETRY_EVERY = 16
WIDE_EVERY = 40  # questions, then one whose work grows with the store
AGAIN, AGAIN_EVERY = 64, 4  # answers that are kept, one of which is asked for again after so many questions
LEAK_BYTES, SLOWER = 8 << 20, 4_000  # a call, where a leak is planted; additions, times its number squared, for `slow`
MUCH, MUCH_BYTES = 20, 60_000  # messages in one call, each as long as contents are that lie in the log
NAMES = 300  # sessions that the asker knows

KINDS = ("call", "turn", "ask", "search", "watch", "wide", "probe", "spin")
EVENT = struct.Struct("<BII")  # kind, wall, CPU of the thread, in microseconds

SAID = (
    "harbour tide ledger crane parcel sluice anchor timber signal grain barge warrant lantern quay manifest "
    "customs rope cargo pilot channel beacon weight tariff clerk wharf current hold berth invoice storm"
)
WORDS = SAID.split()


class Clockwork:
    """One process's pace, and how long each thing it does takes, reported to the sampler."""

    def __init__(self, folder: Path, name: str, rate: float, slots: Slots) -> None:
        self._file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._chance = random.Random(name)
        self._rate, self._slots = rate, slots
        self._due = time.monotonic()

    def beats(self) -> Iterator[int]:
        """One beat after another, some a second, until all are asked to stop; what was missed is not made up for."""
        number = 0
        while not self._slots.stopped:
            self._due = max(self._due, time.monotonic() - 1.0) + self._chance.uniform(0.5, 1.5) / self._rate
            time.sleep(max(0.0, self._due - time.monotonic()))
            number += 1
            yield number

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Notes how long something took."""
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        yield
        took = (time.perf_counter_ns() - wall) // 1000, (time.thread_time_ns() - cpu) // 1000
        os.write(self._file, EVENT.pack(KINDS.index(kind), *took))


# ---- recording


def place(writer: int, number: int) -> tuple[str, int]:
    """The session of a writer's call, and the first call it has there."""
    block = (number - 1) // CALLS
    name = f"shared-{block}" if block % 6 == SHARED else f"w{writer}-{block}"
    return name, block * CALLS + 1


def words(*seed: int) -> str:
    """Some words, the same for the same seed."""
    chance = random.Random(repr(seed))
    return " ".join(chance.choices(WORDS, k=chance.randint(8, 90)))


def request(writer: int, number: int) -> Request:
    """A writer's request: what was said in its session so far, and something new."""
    _, first = place(writer, number)
    requests: list[Request] = [{"role": "system", "content": "You keep the books of a harbour."}]
    for n in range(first, number + 1):
        large = "x" * LARGE_CHARS if n % LARGE_EVERY == 0 else ""
        requests.append({"role": "user", "content": f"{writer}.{n} {words(writer, n)}{large}"})
        requests.append({"role": "assistant", "content": words(n, writer)})
    return {"model": "m-1", "messages": requests[:-1], "seed": number}


def record(folder: Path, slots: Slots, writer: int, rate: float, plant: str) -> None:
    """Records calls, in new sessions all the time; some are tried again, some sessions begin as forks."""
    pace, kept = Clockwork(folder / "times", f"writer {writer}", rate, slots), list[bytes]()
    with vmstore.open(folder / STORE) as store:
        for number in pace.beats():
            name, first = place(writer, number)
            sent, block = request(writer, number), (number - 1) // CALLS
            if number == first and block % 6 == FORKED:
                store.session(place(writer, number - 1)[0]).fork(name, call=CALLS // 2)
            slots.ask(writer, number)
            with pace.timed("call"):
                value = _record(store, name, sent, writer, number)
                if plant == "slow":
                    sum(range(number * number * SLOWER))
            slots.ack(writer, number)
            if number % RETRY_EVERY == 0 and _record(store, name, sent, writer, number) != value:
                raise Broken("doubled", f"call {number} of writer {writer} tried again was answered otherwise")
            if plant == "leak" and writer == 0:
                kept.append(os.urandom(LEAK_BYTES))


def _record(store: vmstore.Store, name: str, sent: Request, writer: int, number: int) -> Any:
    for _ in range(50):
        try:
            return store.record(name, sent, answer(words(number, writer)), request_id=f"{writer}.{number}")
        except ConflictError:
            continue
    raise Broken("starved", f"writer {writer} lost fifty races")


def held_open(folder: Path, slots: Slots) -> None:
    """The plant `wal`: reads the log for ever, so that no WAL can begin again, and writes much beside."""
    db = apsw.Connection(str(folder / STORE / "default/log.sqlite"))
    db.execute("PRAGMA query_only = ON; BEGIN; SELECT count(*) FROM commits").fetchall()
    with vmstore.open(folder / STORE) as store:
        while not slots.stopped:
            records = [{"role": "user", "content": os.urandom(MUCH_BYTES // 2).hex()} for _ in range(MUCH)]
            store.record("plant", {"model": "m-1", "messages": records})
            time.sleep(0.05)
    db.close()


# ---- living


def live(folder: Path, slots: Slots, rate: float) -> None:
    """Lives: says, packs, answers, faults, pins and forks, in one session after another."""
    pace, record = Clockwork(folder / "times", "live", rate, slots), Counter[str]()
    with vmstore.open(folder / STORE) as store:
        session: Any = None
        for number in pace.beats():
            turn = (number - 1) % TURNS
            if turn == 0:
                name = f"live-{(number - 1) // TURNS}"
                session = store.live_session(name, l0_tokens_max=L0_TOKENS, system="You keep a harbour.", user="ann")
            with pace.timed("turn"):
                _turn(session, number, record)
            if turn % 5 == 4:
                _memory(session, random.Random(number), record)
            if turn == TURNS // 2:
                child = session.fork(f"{session.name}-fork")
                _turn(child, number, record)
                record["live forks"] += 1
            record["turns"] += 1
            _tell(folder / "told" / "live", record)


def _turn(session: Any, number: int, counts: Counter[str]) -> None:
    """One turn: a person asks, the model calls a tool, hears it, and answers."""
    session.user(f"{number} Where is the {words(number)}?")
    packed = session.pack()
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
    session.tool(f"c{number}", f"{number}: " + " ".join(words(number, n) for n in range(number % 6 + 1)))
    packed = session.pack()
    session.assistant(f"By the {words(number, 7)}.")
    if packed.tokens > packed.budget:
        raise Broken("within_budget", f"{session.name} packed {packed.tokens} tokens of {packed.budget}")
    counts["packs"] += 2


def _memory(session: Any, chance: random.Random, counts: Counter[str]) -> None:
    """What a program asks of a memory now and then."""
    page = chance.choice(session.pages()).page
    granted = session.page_fault(page).granted
    counts["faults" if granted else "faults denied"] += 1
    try:
        session.pin(page)
        counts["pins"] += 1
        session.unpin(page)
    except RefusedError:
        counts["pins refused"] += 1
    session.mark(f"m{chance.randint(0, 1 << 30)}")
    if chance.random() < 0.3:
        session.segment("So far")
        counts["segments"] += 1


# ---- asking


def ask(folder: Path, slots: Slots, rate: float) -> None:
    """Asks in VMQL: contexts, search, other times, all that is new; now and then what was answered before."""
    pace, record = Clockwork(folder / "times", "asker", rate, slots), Counter[str]()
    chance, watch = random.Random("asker"), Watch()
    kept: list[tuple[str, str, dict[str, int], bytes]] = []
    with vmstore.open(folder / STORE) as store:
        for number in pace.beats():
            with pace.timed("watch"):
                watch.go_on(store)
            record["watched"] = watch.count
            if not watch.calls:
                continue
            if number % WIDE_EVERY == 0:
                with pace.timed("wide"):
                    list(store.query("PAGES type, count(*), sum(tokens) BY type ACROSS SESSIONS"))
                record["wide questions"] += 1
            name = chance.choice(list(watch.calls))
            text, params = _question(chance, watch.calls[name])
            with pace.timed("search" if text.startswith("SEARCH") else "ask"):
                digest = _digest(store, text, name, params)
            record["questions"] += 1
            if params and len(kept) < AGAIN:
                kept.append((text, name, params, digest))
            elif params:
                kept[chance.randrange(AGAIN)] = (text, name, params, digest)
            if kept and number % AGAIN_EVERY == 0:
                text, name, params, digest = chance.choice(kept)
                if _digest(store, text, name, params) != digest:
                    raise Broken("moved", f"{text} of {name!r} with {params} is answered otherwise than before")
                record["asked again"] += 1
            _tell(folder / "told" / "asker", record)


class Watch:
    """All that is logged, as WATCH tells it: each session's positions come in a row."""

    def __init__(self) -> None:
        self.count = 0
        self.calls: dict[str, int] = {}  # of the sessions met last
        self._last: dict[str, int] = {}
        self._cursor: str | None = None
        self._names: deque[str] = deque()

    def go_on(self, store: vmstore.Store) -> None:
        """Takes in what is new."""
        columns = "WATCH MUTATIONS session, position, kind, call"
        if self._cursor is None:
            answer = store.query(columns)
        else:
            answer = store.query(f"{columns} FROM $cursor", cursor=self._cursor)
        for session, position, kind, call in answer:
            if position != self._last.get(session, position - 1) + 1:
                raise Broken("gap", f"WATCH tells {position} of {session!r} after {self._last[session]}")
            self._last[session] = position
            self.count += 1
            if kind == "pack":
                self._met(session, call)
        self._cursor = answer.next or self._cursor

    def _met(self, session: str, call: int) -> None:
        if session not in self.calls:
            self._names.append(session)
            if len(self._names) > NAMES:
                del self.calls[self._names.popleft()]
        self.calls[session] = call


def _question(chance: random.Random, calls: int) -> tuple[str, dict[str, int]]:
    """A question to one session; where it has parameters its answer may never change."""
    n, m = sorted((chance.randint(1, calls), chance.randint(1, calls)))
    return chance.choice(
        (
            ("CONTEXT AT CALL $n", {"n": n}),
            ("CONTEXT AT CALL $n RENDER", {"n": n}),
            ("PAGES page, tokens, type AS OF CALL $n WHERE tier = L0 ORDER BY tokens DESC", {"n": n}),
            ("DIFF CONTEXT CALL $n TO CALL $m", {"n": n, "m": m}),
            ("MUTATIONS kind, count(*) BY kind AS OF CALL $n", {"n": n}),
            ("CALLS call, status, tokens ORDER BY call DESC LIMIT 5", {}),
            (f"SEARCH '{chance.choice(WORDS)} {chance.choice(WORDS)}' LIMIT 5", {}),
        )
    )


def _digest(store: vmstore.Store, text: str, name: str, params: dict[str, int]) -> bytes:
    rows = list(store.query(text, session=name, **params))
    return hashlib.sha256(repr(rows).encode()).digest()


# ---- the probe


def probe(folder: Path, slots: Slots, rate: float) -> None:
    """What the machine does with an append that is flushed, and with a fixed piece of work, at the same time."""
    pace, file = Clockwork(folder / "times", "probe", rate, slots), os.open(folder / "probe", os.O_RDWR | os.O_CREAT)
    for number in pace.beats():
        if number % 512 == 0:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
        with pace.timed("probe"):
            os.write(file, bytes(4096))
            os.fdatasync(file)
        with pace.timed("spin"):
            sum(n * n for n in range(20_000))


def _tell(path: Path, counts: Counter[str]) -> None:
    """Writes down what was done so far, whole or not at all."""
    beside = path.with_suffix(".new")
    beside.write_text("\n".join(f"{count} {what}" for what, count in counts.items()))
    os.replace(beside, path)


def counts_in(path: Path) -> Counter[str]:
    """What a process says it did so far."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return Counter()
    return Counter({what: int(count) for count, _, what in (line.partition(" ") for line in lines)})
