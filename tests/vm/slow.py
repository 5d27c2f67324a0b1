"""The obvious way to know what the kernel knows: everything counted again from the list of mutations.

Slow and without a single running total, it is what `State`, `Room` and `decide` are held against.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Holder, Use, Why
from vmstore.core.page import PageType, Role
from vmstore.vm.kernel.eviction import may_shorten
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.settings import BEFORE, KernelSettings
from vmstore.vm.kernel.state import State

Told = tuple[int, m.AnyMutation]
HARD = (Holder.HAND, Holder.SYSTEM, Holder.TOOLS, Holder.PLAN)
DECISIONS = (m.FaultIn, m.FaultDenied, m.Prefetch, m.Evict, m.Unpin, m.Pressure)


class Facts:
    """A session after a list of mutations, told from the list alone; `cells` are settings by position."""

    def __init__(self, log: Sequence[Told], cells: dict[int, bytes]) -> None:
        self.log = log
        told: dict[str, Any] = {}
        for position, mutation in log:
            if isinstance(mutation, m.Settings):
                told |= msgspec.json.decode(cells[position])
        self.settings = msgspec.convert(msgspec.structs.asdict(BEFORE) | told, KernelSettings)
        self.factor = next((one.factor_ppm for _, one in reversed(log) if isinstance(one, m.Configure)), 1_000_000)
        self.turn = max((one.number for _, one in log if isinstance(one, m.Turn)), default=0)
        self.created = {at: one for at, one in log if isinstance(one, m.Create)}

    @property
    def budget(self) -> int:
        """What the prompt may hold."""
        return self.settings.l0_tokens_max * 1_000_000 // self.factor

    @property
    def room(self) -> int:
        """The same without the reserves."""
        reserved = self.settings.reserve_faults_tokens + self.settings.reserve_protocol_tokens
        return (self.settings.l0_tokens_max - reserved) * 1_000_000 // self.factor

    def here(self) -> dict[int, int]:
        """The pages in the prompt and their levels, in the order they came."""
        shown: dict[int, int] = {}
        for at, one in self.log:
            match one:
                case m.Create() if one.type != PageType.RAW:
                    shown[at] = 0
                case m.FaultIn() | m.Prefetch():
                    shown[one.page] = one.level
                case m.Evict() if one.level is not None:
                    shown[one.page] = one.level
                case m.Evict():
                    del shown[one.page]
        return shown

    def forms(self, page: int) -> dict[int, int]:
        """The tokens of each form a page has."""
        made = {one.level: one.tokens for _, one in self.log if isinstance(one, m.Compress) and one.page == page}
        return {0: self.created[page].tokens, **made}

    def tokens(self, page: int, level: int) -> int:
        """The tokens of a page at a level."""
        return self.forms(page)[level]

    def used(self) -> int:
        """The tokens of the prompt."""
        return sum(self.tokens(page, level) for page, level in self.here().items())

    def pinned(self) -> set[int]:
        """The pages here that never yield."""
        held: set[tuple[int, int]] = set()
        for _, one in self.log:
            if isinstance(one, m.Pin):
                held.add((one.page, one.holder))
            elif isinstance(one, m.Unpin):
                held.discard((one.page, one.holder))
        return {page for page, holder in held if holder in HARD} & set(self.here())

    def last(self) -> list[int]:
        """The pages here of the last turns, oldest turn first, then what no call has shown; pins apart."""
        found: list[int] = []
        window = max(self.settings.pinned_turns, 1)
        turn = 0
        said: dict[int, list[int]] = {}
        answers: dict[int, tuple[int, list[int]]] = {}
        for at, one in self.log:
            if isinstance(one, m.Turn):
                turn = one.number
            if not isinstance(one, m.Create) or not one.message:
                continue
            if one.role == Role.USER:
                said.setdefault(turn, []).append(at)
            elif one.role == Role.ASSISTANT:
                message, pages = answers.get(turn, (0, []))
                answers[turn] = (one.message, [*(pages if message == one.message else []), at])
        for turn in sorted({*said, *answers}):
            if turn > self.turn - window:
                found += [*said.get(turn, []), *answers.get(turn, (0, []))[1]]
        packed = max((at for at, one in self.log if isinstance(one, m.Pack)), default=0)
        told = [page for page, made in self.created.items() if made.message and made.type != PageType.RAW]
        found += [page for page in told if page > packed and not self.left_since(page, page)]
        here, pinned = self.here(), self.pinned()
        return [page for page in dict.fromkeys(found) if page in here and page not in pinned]

    def left_since(self, page: int, position: int) -> bool:
        """Whether a page left the prompt after a position."""
        gone = (at for at, one in self.log if isinstance(one, m.Evict) and one.page == page and one.level is None)
        return any(at > position for at in gone)

    def guarded(self) -> set[int]:
        """The pages here that came back and are left alone a while."""
        turn, left, until = 0, dict[int, int](), dict[int, int]()
        for _, one in self.log:
            if isinstance(one, m.Turn):
                turn = one.number
            elif isinstance(one, m.Evict) and one.level is None:
                left[one.page] = turn
            elif isinstance(one, m.FaultIn | m.Prefetch):
                again = left[one.page] + self.settings.cooldown_turns if one.page in left else 0
                until[one.page] = max(turn + self.settings.protected_turns, again)
        return {page for page, end in until.items() if end > turn} & set(self.here()) - self.pinned()

    def faults(self) -> tuple[int, int]:
        """How many faults of the model were served this turn, and their tokens."""
        start = max((at for at, one in self.log if isinstance(one, m.Turn)), default=0)
        asked = {at for at, one in self.log if isinstance(one, m.Reference) and one.use == Use.FAULT}
        served = [one for at, one in self.log if isinstance(one, m.FaultIn) and at > start and one.reference in asked]
        return len(served), sum(one.tokens for one in served)


class Contest(NamedTuple):
    """One contest as the log tells it: its cause, its reasons, and what each page went to, in order."""

    start: int  # the position of its first mutation
    cause: int
    why: Why
    gone: dict[int, tuple[int | None, int]]


def contests(log: Sequence[Told]) -> Iterator[Contest]:
    """The contests of a log; raises where a decision neither tells its reasons nor points at them."""
    found: dict[int, Contest] = {}
    before: Told | None = None
    for position, one in log:
        if isinstance(one, m.Evict) and one.cause not in (Cause.ASKED, Cause.RESTORE, Cause.SEGMENT):
            unpinned = before is not None and isinstance(before[1], m.Unpin) and before[1].page == one.page
            if one.why is not None:
                found[position] = Contest(position - unpinned, one.cause, one.why, {})
            assert one.why is not None or one.first in found, f"nobody says why p{one.page} gave way at {position}"
            contest = found[one.first or position]
            assert contest.cause == one.cause, "those that went together went for one cause"
            assert one.page not in contest.gone, "a page goes once in a contest"
            contest.gone[one.page] = (one.level, one.tokens)
        elif isinstance(one, m.FaultIn | m.Prefetch | m.FaultDenied):
            assert isinstance(one.why, Why), f"nobody says why at {position}"
        elif isinstance(one, m.Unpin) and one.holder == Holder.TURNS:
            after = next(other for at, other in log if at == position + 1)
            assert isinstance(after, m.Evict) and after.page == one.page, "what yields gives way at once"
        before = (position, one)
    yield from found.values()


def held_true(contest: Contest, facts: Facts, order: list[tuple[int, int]], kept: set[int],
               pages: dict[int, ManagedPage],
              number: int) -> None:  # fmt: skip
    """Holds every number of a contest against what is counted and simulated here.

    `facts` are those before it, `order` all residents by the policy then, `kept` what was let in with
    it, `pages` what may be shown shorter.
    """
    why, here, last, back = contest.why, facts.here(), facts.last(), facts.guarded()
    assert (why.policy, why.budget, why.used) == (number, facts.budget, facts.used())
    assert why.need in needs(facts, contest)
    may = [page for page in here if page not in facts.pinned() and page not in kept and page != why.winner]
    if contest.cause == Cause.ARRIVAL:
        ((page, (level, gain)),) = contest.gone.items()
        assert level is not None and gain == facts.tokens(page, here[page]) - facts.tokens(page, level)
        assert (why.candidates, why.losers, page in may) == (1, (), True)
        return
    scores = {page: score for score, page in order}
    groups = {
        "free": [page for _, page in order if page in may and page not in last and page not in back],
        "back": [page for _, page in order if page in may and page in back and page not in last],
        "last": [page for page in last if page in may],
    }
    kind = next(name for name, among in groups.items() if set(contest.gone) <= set(among))
    among = groups[kind]
    passes: list[list[tuple[int, int | None]]]
    if kind == "last":
        shorter = [page for page in among if may_shorten(pages[page])]
        passes = [[(page, 2) for page in shorter], [(page, 3) for page in shorter], [(page, None) for page in among]]
    else:
        abstract = {page for page in among if may_shorten(pages[page]) and here[page] < 2 and facts.settings.compress}
        passes = [[(page, 2 if page in abstract else None) for page in among], [(page, None) for page in among]]
    gone, losers = _simulated(facts, passes, here, why.need, patient=kind == "last")
    assert gone == contest.gone, f"{gone} should have gone, not {contest.gone}"
    told = {page: 0 if kind == "last" else scores[page] for page in (*gone, *losers)}
    assert why.candidates == len(among)
    assert why.cutoff == max(told[page] for page in gone)
    assert why.losers == tuple((told[page], page) for page in losers)


def needs(facts: Facts, contest: Contest) -> set[int]:
    """What a contest can have needed: to come down to one of the marks, or to be no larger than may arrive."""
    settings, here, used = facts.settings, facts.here(), facts.used()
    hard, soft = int(facts.room * settings.mark_hard), int(facts.room * settings.mark_soft)
    if contest.cause == Cause.ARRIVAL:
        return {facts.tokens(page, here[page]) - soft // 2 for page in contest.gone}
    if contest.cause != Cause.FAULT:
        return {used - mark for mark in (soft, hard, facts.room, facts.budget)}
    winner = contest.why.winner
    now = facts.tokens(winner, here[winner]) if winner in here else 0
    return {used + tokens - now - mark for tokens in facts.forms(winner).values() for mark in (soft, facts.budget)}


def _simulated(
    facts: Facts, passes: list[list[tuple[int, int | None]]], here: dict[int, int], need: int, *, patient: bool
) -> tuple[dict[int, tuple[int | None, int]], list[int]]:
    """What goes how far, and the three nearest that stay."""
    level: dict[int, int | None] = dict(here)
    gone: dict[int, tuple[int | None, int]] = {}
    losers: list[int] = []

    def tokens(page: int, at: int | None) -> int:
        return 0 if at is None else facts.tokens(page, at)

    for page, wanted in [one for stretch in passes for one in stretch]:
        now = level[page]
        if now is None or (patient and wanted is not None and now >= wanted):
            continue
        if sum(gain for _, gain in gone.values()) >= need:
            passed_over = patient and wanted is not None and not _shorter(facts, page, now, wanted)
            if not passed_over and page not in gone and page not in losers and len(losers) < 3:
                losers.append(page)
            continue
        made = None if wanted is None else min((at for at in facts.forms(page) if at >= wanted), default=0)
        assert made != 0, f"p{page} should have gone to level {wanted}, and has no such form"
        if made is not None and tokens(page, made) >= tokens(page, now):
            if patient:
                continue
            made = None
        before = gone.get(page, (None, 0))[1]
        gone[page] = (made, before + tokens(page, now) - tokens(page, made))
        level[page] = made
    return gone, losers


def _shorter(facts: Facts, page: int, now: int, wanted: int) -> bool:
    """Whether a page has a shorter form from a level on; one that nobody made yet would be."""
    made = [tokens for at, tokens in sorted(facts.forms(page).items()) if at >= wanted][:1]
    return not made or made[0] < facts.tokens(page, now)


def policy_order(state: State) -> list[tuple[int, int]]:
    """All residents as the policy orders them, with their scores."""
    assert state.policy is not None
    return [(one.score, one.page) for one in state.policy.victims(state.now)]
