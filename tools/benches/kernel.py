"""The kernel: references a second, a live turn beside its flushes, what deciding costs the log and the cache."""

from __future__ import annotations

import json
import random
import shutil
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import vmstore
from benches.memory import CACHED, WRITTEN, common
from benches.parts import child, doors, peers
from benches.parts.rounds import LOWER, Bench, Goal, Row, cpu, row, wall
from benches.parts.traces import DATA
from vmstore.core import mutation as m
from vmstore.core.decision import Use
from vmstore.live.session_log import SessionLog
from vmstore.store.live.live_session import Live
from vmstore.views.branch import Branch
from vmstore.vm.kernel.kernel import Kernel
from vmstore.vm.kernel.settings import encoded
from vmstore.vm.kernel.state import State

RATE = Goal("references a second, default policy, 200 residents, reasons included", 50_000)
GROWTH = Goal("time a reference at 20,000 residents, against 200", 1.87, LOWER)  # log 20,000 / log 200
TURN = Goal("a live turn (user, pack, assistant, three tools), against append+fdatasync of its commits", 3, LOWER)
SENT = Goal("the same with its request made, answer and results in one write, against append+fdatasync", 5, LOWER)
SENDING = Goal("that turn at 16,000 tokens, ms of CPU", 6, LOWER)
FIRST = Goal("first act in a new process, a session of 1,000 turns, s of CPU", 0.2, LOWER)
READ_ANEW = Goal("the same where nothing was kept of what it was folded into, s of CPU", "", LOWER)
DECIDING = Goal("the decisions of that turn, ms of CPU", 2, LOWER)
BESIDE = Goal("pi session re-driven at 64,000 tokens: log beside contents, against the contents", 0.20, LOWER)
VOIDED = [
    Goal(f"pi session at {budget:,} tokens: prefix cache voided, against one page at a time", 0.25, LOWER)
    for budget in (64_000, 200_000)
]
COST = [
    Goal(f"pi session at {budget:,} tokens: cost, against a window cut to half when full", 1.0, LOWER)
    for budget in (16_000, 64_000)
]
GOALS = (RATE, GROWTH, TURN, DECIDING, SENT, SENDING, FIRST, READ_ANEW, *COST, BESIDE, *VOIDED)

RESIDENTS = (200, 20_000)
TOKENS = 100  # of a page
REFERENCES = (40_000, 2_000)
TURNS = (60, 4)
PAGES = 300
BUDGET = 64_000  # which holds about so many
ROUNDS = 5
COMMITS = 6
SMALL = 16_000  # a budget that is always full
FULL = (60, 6)  # turns until it is
LONG = (1_000, 12)  # turns of a long session
FLOOR_BYTES = 1_200  # about what a commit of the turn adds to the log
HEADER_BYTES = 75  # a commit's row without its body and commitments
COMMITMENT_BYTES = 32


def measure(bench: Bench) -> Iterator[Row]:
    """Speed alone first, then with the disk, then on a real session."""
    rounds = bench.size(ROUNDS, 2)
    references = bench.size(*REFERENCES)
    rates = [
        [references / _referring(residents, references, seed) for seed in range(rounds)] for residents in RESIDENTS
    ]
    yield row(RATE, rates[0])
    yield row(GROWTH, [small / large for small, large in zip(*rates, strict=True)])
    yield from _turns(bench, rounds)
    yield from _first(bench)
    if not DATA.is_dir():
        bench.say(f"  no sessions at {DATA}: their rows are left out")
        return
    yield from _pi(bench)


# ---- deciding alone


def _referring(residents: int, references: int, seed: int) -> float:
    """Seconds of CPU that a session takes to be told of references, a pack every fourth, a turn every fortieth."""
    kernel = _session(residents)
    state, chance = kernel.state, random.Random(seed)
    pages = sorted(state.pages)
    asked = [pages[-1 - min(int(chance.expovariate(2 / residents)), len(pages) - 1)] for _ in range(references)]
    started = cpu()
    for number, page in enumerate(asked, 1):
        kernel.tell(m.Reference(page, Use.REUSE))
        kernel.react()
        if number % 4 == 0:
            _pack(kernel)
        if number % 40 == 0:
            kernel.tell(m.Turn(state.turn + 1))
    return cpu() - started


def _session(residents: int) -> Kernel:
    """A session whose prompt has room for some pages, five times as many said."""
    fields = {"l0_tokens_max": residents * TOKENS * 10 // 8, "reserve_faults_tokens": 0, "compress": False}
    count = 0

    def write(mutation: m.AnyMutation) -> int:
        nonlocal count
        count += 1
        return count

    def never(request: Any) -> m.Compress:
        raise AssertionError("nothing is shortened here")

    kernel = Kernel(State(lambda position, ref: encoded(fields)), write, never)
    kernel.tell(m.Settings(0))
    for number in range(residents * 5):
        message = kernel.tell(m.Message(3, 2, 0))
        kernel.tell(m.Create(0, 0, 3, message, 0, 0, TOKENS * 4, TOKENS))
        kernel.react()
        if number % 50 == 0:
            _pack(kernel)
    return kernel


def _pack(kernel: Kernel) -> None:
    state = kernel.state
    entered, left = state.residences()
    kernel.tell(m.Pack(state.call + 1, 1, len(state.here), state.used, b"", tuple(entered), tuple(left)))


# ---- a live turn


def _turns(bench: Bench, rounds: int) -> Iterator[Row]:
    """A turn on disk beside the raw floor of its commits, measured before and after each round."""
    floor, ratios, deciding = peers.Floor(bench.folder / "floor"), [], []
    with doors.opened(bench.folder / "live.vms") as store:
        live = store.live_session("live", l0_tokens_max=BUDGET, system="You are a careful assistant.")
        for number in range(PAGES):
            live.user(_words(number))
        live.pack()
        for _ in range(rounds):
            flushed = _floor(floor)
            taken, decided = [], []
            for number in range(bench.size(*TURNS)):
                with _Timed(Kernel, "react", decided):
                    started = wall()
                    _turn(live, number)
                    taken.append(wall() - started + bench.burden("vmstore"))
            flushed += _floor(floor)
            ratios.append(statistics.median(taken) / (COMMITS * statistics.median(flushed)))
            deciding.append(1e3 * sum(decided) / len(taken))
            bench.flushes(flushed)
    yield row(TURN, ratios)
    yield row(DECIDING, deciding)
    yield from _sent(bench, floor, rounds)
    floor.close()


def _sent(bench: Bench, floor: peers.Floor, rounds: int) -> Iterator[Row]:
    """A turn as an agent takes it, in a small prompt that is full, and the CPU it takes."""
    ratios: list[float] = []
    seconds: list[float] = []
    with doors.opened(bench.folder / "sent.vms") as store:
        live, done = store.live_session("live", l0_tokens_max=SMALL, system="You are a careful assistant."), 0
        for done in range(bench.size(*FULL)):
            _step(live, done)
        for _ in range(rounds):
            flushed, taken = _floor(floor), []
            for _ in range(bench.size(*TURNS)):
                done += 1
                started, used = wall(), cpu()
                _step(live, done)
                seconds.append(cpu() - used)
                taken.append(wall() - started + bench.burden("vmstore"))
            flushed += _floor(floor)
            ratios.append(statistics.median(taken) / (COMMITS * statistics.median(flushed)))
    half = len(seconds) // 2
    yield row(SENT, ratios)
    yield row(SENDING, [1e3 * statistics.median(some) for some in (seconds[:half], seconds[half:])])


def _step(live: Live, number: int) -> None:
    """A question, the request for it, an answer with three calls, their results."""
    live.user(f"What do the files of step {number} say?")
    assert live.pack().request["messages"]
    calls = [_call(number, n) for n in range(3)]
    with live.turn():
        live.assistant({"role": "assistant", "content": None, "tool_calls": calls})
        for call in calls:
            live.tool(call["id"], _words(number))


def _call(number: int, n: int) -> dict[str, Any]:
    return {"id": f"c{number}.{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def _first(bench: Bench) -> Iterator[Row]:
    """What a process has to do before it can act in a long session, with what another left and without."""
    path = bench.memory / "long.vms"
    with doors.opened(path) as store:
        live = store.live_session("live", l0_tokens_max=SMALL)
        for number in range(bench.size(*LONG)):
            _step(live, number)
    kept = [child.seconds("act", path, "live") for _ in range(2)]
    cold = []
    for _ in range(2):
        for left in path.glob("*/live"):
            shutil.rmtree(left)
        cold.append(child.seconds("act", path, "live"))
    yield row(FIRST, kept)
    yield row(READ_ANEW, cold)


def _turn(live: Live, number: int) -> None:
    live.user(f"What do the files of step {number} say?")
    live.pack()
    calls = [_call(number, n) for n in range(3)]
    live.assistant({"role": "assistant", "content": None, "tool_calls": calls})
    for call in calls:
        live.tool(call["id"], _words(number))


def _words(number: int) -> str:
    return f"Step {number} is about trains, and lists what the {number % 7}th station has seen. " * 8


def _floor(floor: peers.Floor) -> list[float]:
    actual = []
    for _ in range(20):
        started = wall()
        floor.append(bytes(FLOOR_BYTES))
        actual.append(wall() - started)
    return actual


class _Timed:
    """Adds up the CPU seconds a method takes, while it is entered."""

    def __init__(self, owner: type, name: str, into: list[float]) -> None:
        self._owner, self._name, self._into = owner, name, into
        self._was: Callable[..., Any] = getattr(owner, name)

    def __enter__(self) -> None:
        def clocked(*arguments: Any) -> Any:
            started = cpu()
            try:
                return self._was(*arguments)
            finally:
                self._into.append(cpu() - started)

        setattr(self._owner, self._name, clocked)

    def __exit__(self, *_: object) -> None:
        setattr(self._owner, self._name, self._was)


# ---- a real session


def _pi(bench: Bench) -> Iterator[Row]:
    with vmstore.memory_store() as store:
        (source,) = [
            session.session
            for file in sorted((DATA / "pi").glob("*.jsonl"))
            for session in store.import_file(file).sessions
        ][:1]
        driven: dict[int, Live] = {}
        for goal, budget in zip(COST, (16_000, 64_000), strict=True):  # first: they are what a user pays
            driven[budget] = store.admin.redrive(source, f"vm-{budget}", l0_tokens_max=budget)
            yield row(goal, [_against_windows(bench, store, driven[budget], budget)])
        yield row(BESIDE, [_beside(store, driven[64_000])])
        driven[200_000] = store.admin.redrive(source, "vm-200000", l0_tokens_max=200_000)
        for goal, budget in zip(VOIDED, (64_000, 200_000), strict=True):
            fields = {"l0_tokens_max": budget, "mark_soft": 0.85, "mark_hard": 0.85, "batches": False}
            single = store.admin.redrive(source, f"single-{budget}", **fields)
            yield row(goal, [_voided(driven[budget]) / _voided(single)])


def _against_windows(bench: Bench, store: vmstore.Store, session: Live, budget: int) -> float:
    """What the requests of a session cost, against those of a window cut to half when full; says all of them.

    A window has as many estimated tokens as the session's requests may have, which the factor makes fewer.
    """
    ours = Prices()
    for call in session.calls():
        body = session.wire.request(call=call.call)
        ours.sees(json.dumps([body.pop("tools", None), body], ensure_ascii=False)[:-3])
    whole = min(session.runtime().current().whole, budget)
    sliding, halved = (_window(store, session, 4 * whole, share) for share in (1.0, 0.5))
    shares = f"hit rate {session.stats().hit_rate}"
    for name, prices in (("vmstore", ours), ("sliding window", sliding), ("window cut to half", halved)):
        bench.say(f"  {budget:6,} {name:20} cost {prices.mean:8,.0f}  tokens {prices.tokens:8,.0f}  {shares}")
        shares = ""
    return ours.mean / halved.mean


def _window(store: vmstore.Store, session: Live, characters: int, share: float) -> Prices:
    """A window over the messages: where they are more than fit, the oldest go until that share of it is taken."""
    prices, kept, size = Prices(), deque[str](), 0
    pages = {page.position: page for page in session.pages() if page.role != "system"}
    facts = SessionLog(store.admin.log, Branch(store.admin.views, session.runtime().session))
    for commit in facts.after(0):
        for position, mutation in commit.mutations:
            if (
                isinstance(mutation, m.Create)
                and mutation.message
                and mutation.content is not None
                and position in pages
            ):
                text = facts.cell(position, mutation.content).decode("utf-8", "replace")
                kept.append(json.dumps({"role": pages[position].role, "content": text}, ensure_ascii=False))
                size += len(kept[-1])
            elif isinstance(mutation, m.Pack):
                target = characters if size <= characters else characters * share
                while size > target:
                    size -= len(kept.popleft())
                prices.sees("".join(kept))
    return prices


class Prices:
    """What requests cost, in tokens of four characters: those the provider has kept a tenth, the others 1.25."""

    def __init__(self) -> None:
        self._last = ""
        self._costs: list[float] = []
        self._tokens: list[float] = []

    def sees(self, text: str) -> None:
        """Counts a request, what stands first in it first: what it begins with like the one before was kept."""
        same = common(text, self._last)
        self._costs.append((CACHED * same + WRITTEN * (len(text) - same)) / 4)
        self._tokens.append(len(text) / 4)
        self._last = text

    @property
    def mean(self) -> float:
        """The cost of a call."""
        return statistics.fmean(self._costs)

    @property
    def tokens(self) -> float:
        """The tokens of a call."""
        return statistics.fmean(self._tokens)


def _beside(store: vmstore.Store, session: Live) -> float:
    """The bytes of commits without their cells, against those of the contents as they were accepted."""
    beside = contents = 0
    facts = SessionLog(store.admin.log, Branch(store.admin.views, session.runtime().session))
    for commit in facts.after(0):
        beside += HEADER_BYTES + len(commit.commit.body) + COMMITMENT_BYTES * commit.commit.cell_count
        contents += sum(made.size for _, made in commit.mutations if isinstance(made, m.Create))
    return beside / contents


def _voided(session: Live) -> int:
    return sum(call.invalidated for call in session.calls())
