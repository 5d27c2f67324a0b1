"""Eviction: how much of what LRU loses against knowing the future each policy gets back."""

from __future__ import annotations

import statistics
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from benches.parts.rounds import Bench, Goal, Row, row
from benches.parts.traces import DATA, Trace, family, real
from vmstore.vm.metrics.belady import Cost, PageReference, belady
from vmstore.vm.policies.policy import Policy, PolicyMoment
from vmstore.vm.policies.registry import CHOSEN, SHIPPED, full_name, policy, shipped
from vmstore.vm.policies.resident import Resident

BUDGETS = (1.5, 6, 25)  # per cent of the tokens of all pages
MADE = [
    Goal(f"gap from LRU to Belady closed by the default, budget {budget} %, per cent", goal)
    for budget, goal in zip(BUDGETS, (30, 26, 16), strict=True)
]
AHEAD = Goal("the default ahead of the best other and of chuk's formula, mean of the budgets, points", -1)
PI = [Goal(f"pi session: gap closed by the default, budget {budget} %, per cent") for budget in BUDGETS]
PI_AHEAD = Goal("pi session: the default ahead of the best other, mean of the budgets, points", -1)
SHORT = Goal("short sessions beside pi: gap closed by the default, budget 25 %, per cent")
SHORT_AHEAD = Goal("short sessions beside pi: the default ahead of the best other, budget 25 %, points", -1)
GOALS = (*MADE, AHEAD, *PI, PI_AHEAD, SHORT, SHORT_AHEAD)

REFERENCES = (30_000, 4_000)
SEEDS = (5, 2)
PEER, LRU, BEST = "chuk's formula", full_name(shipped("lru")), "Belady"
DEFAULT = full_name(shipped(CHOSEN))
OTHERS = ("swe-agent", "tau-bench", "claude-code")

Contender = Callable[[Trace, int], Cost]
Closed = dict[str, list[list[float]]]
"""By contender and budget, the per cent of the gap closed on each trace."""


def measure(bench: Bench) -> Iterator[Row]:
    """The family of traces, then the real sessions where they are."""
    made = [family(seed, bench.size(*REFERENCES)) for seed in range(bench.size(*SEEDS))]
    closed = table(
        bench, f"{len(made)} traces of {len(made[0].asked):,} references", [[item] for item in made], BUDGETS
    )
    yield from (row(goal, shares) for goal, shares in zip(MADE, closed[DEFAULT], strict=True))
    yield row(AHEAD, [ahead(closed)])
    if not DATA.is_dir():
        bench.say(f"  no sessions at {DATA}: their rows are left out")
        return
    pi = list(real(DATA / "pi"))
    closed = table(bench, f"the pi session, {len(pi[0].asked):,} references", [pi], BUDGETS)
    yield from (row(goal, shares) for goal, shares in zip(PI, closed[DEFAULT], strict=True))
    yield row(PI_AHEAD, [ahead(closed)])
    short = [trace for name in OTHERS for trace in real(DATA / name)]
    closed = table(bench, f"{len(short)} short sessions, their tokens added up", [short], BUDGETS[-1:])
    yield row(SHORT, closed[DEFAULT][0])
    yield row(SHORT_AHEAD, [ahead(closed)])


def table(bench: Bench, title: str, groups: Sequence[Sequence[Trace]], budgets: Sequence[float]) -> Closed:
    """Runs every contender over groups of traces that count as one, and says the whole table."""
    rates: dict[str, list[list[float]]] = {}
    for name, contender in contenders().items():
        rates[name] = [[missed(contender, group, budget) for group in groups] for budget in budgets]
    closed: Closed = {
        name: [list(map(share, *of)) for of in zip(rates[LRU], own, rates[BEST], strict=True)]
        for name, own in rates.items()
    }
    bench.say(f"  {title}: token fault rate, and per cent of the gap from LRU to Belady closed")
    bench.say(f"    {'':16}" + "".join(f"{f'{budget} %':>18}" for budget in budgets) + "      mean")
    for name, own in rates.items():
        cells = (
            f"{statistics.median(rate):10.4f} {statistics.median(of):7.1f}"
            for rate, of in zip(own, closed[name], strict=True)
        )
        bench.say(f"    {name:16}{''.join(cells)} {mean(closed[name]):9.1f}")
    return closed


def share(lru: float, own: float, best: float) -> float:
    """How much of what LRU loses against the optimum is got back, in per cent; nothing where it loses nothing."""
    return 100 * (lru - own) / (lru - best) if lru != best else 0.0


def mean(shares: Sequence[Sequence[float]]) -> float:
    """The mean over the budgets of the median over the traces."""
    return statistics.fmean(statistics.median(of) for of in shares)


def ahead(closed: Closed) -> float:
    """How far the default is ahead of the best of the others, in points."""
    others = [mean(shares) for name, shares in closed.items() if name not in (DEFAULT, BEST)]
    return mean(closed[DEFAULT]) - max(others)


def missed(contender: Contender, traces: Sequence[Trace], budget: float) -> float:
    """The share of the tokens asked for that had to be brought in; the first time counts too."""
    asked = sum(trace.pages[page].tokens for trace in traces for _, page in trace.asked)
    return sum(contender(trace, int(trace.footprint() * budget / 100)).tokens for trace in traces) / asked


def contenders() -> dict[str, Contender]:
    """Every policy shipped with its own parameters, the peer's formula, and the optimum."""
    actual_contenders: dict[str, Contender] = {name: by_policy(name) for name in map(full_name, SHIPPED)}
    return {**actual_contenders, PEER: by_peer, BEST: by_belady}


def by_policy(name: str) -> Contender:
    """A policy by name."""
    return lambda trace, budget: cost(policy(name, budget), trace, budget)


def by_belady(trace: Trace, budget: int) -> Cost:
    """The farthest next use goes first."""
    return belady((PageReference(page, trace.pages[page].tokens) for _, page in trace.asked), budget)


def cost(chosen: Policy, trace: Trace, budget: int) -> Cost:
    """What a trace comes to under a policy that sends away as much as must go, and nothing else."""
    known: dict[int, Resident] = {}
    here: dict[int, Resident] = {}
    used = faults = tokens = evictions = 0
    for at, (turn, page) in enumerate(trace.asked):
        now = PolicyMoment(at, turn)
        resident = known.get(page)
        if resident is None:
            sort = trace.pages[page]
            resident = known[page] = Resident(
                page, sort.tokens, sort.type, sort.modality, sort.importance, created=turn, used=at, used_turn=turn
            )
        else:
            resident.uses += 1
            resident.used, resident.used_turn = at, turn
        if page in here:
            chosen.touch(resident, now)
            continue
        faults += 1
        tokens += resident.tokens
        if resident.tokens > budget:
            continue
        for gone in going(chosen, here, used + resident.tokens - budget, now):
            del here[gone.page]
            used -= gone.tokens
            chosen.leave(gone, now, evicted=True)
            evictions += 1
        here[page] = resident
        used += resident.tokens
        chosen.enter(resident, now)
    return Cost(faults, tokens, evictions)


def going(chosen: Policy, here: dict[int, Resident], need: int, now: PolicyMoment) -> list[Resident]:
    """The first of a policy's victims that free what is needed."""
    residents: list[Resident] = []
    if need > 0:
        for scored in chosen.victims(now):
            residents.append(here[scored.page])
            need -= residents[-1].tokens
            if need <= 0:
                break
    return residents


def by_peer(trace: Trace, budget: int) -> Cost:
    """Four tenths of the place in the order of use plus four tenths of importance; as much as must go, goes at once."""
    order: OrderedDict[int, None] = OrderedDict()
    used = faults = tokens = evictions = 0
    for _, page in trace.asked:
        if page in order:
            order.move_to_end(page)
            continue
        size = trace.pages[page].tokens
        faults += 1
        tokens += size
        if size > budget:
            continue
        if used + size > budget:
            count = len(order)
            worth = sorted(
                (0.4 * at / count + 0.4e-6 * trace.pages[entry].importance, entry) for at, entry in enumerate(order)
            )
            for _, item in worth:
                if used + size <= budget:
                    break
                del order[item]
                used -= trace.pages[item].tokens
                evictions += 1
        order[page] = None
        used += size
    return Cost(faults, tokens, evictions)
