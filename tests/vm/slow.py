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

LoggedMutation = tuple[int, m.AnyMutation]
HARD = (Holder.HAND, Holder.SYSTEM, Holder.TOOLS, Holder.PLAN)
DECISIONS = (m.FaultIn, m.FaultDenied, m.Prefetch, m.Evict, m.Unpin, m.Pressure)


class Facts:
    """A session after a list of mutations, told from the list alone; `cells` are settings by position."""

    def __init__(self, log: Sequence[LoggedMutation], cells: dict[int, bytes]) -> None:
        self.log = log
        fields: dict[str, Any] = {}
        for position, mutation in log:
            if isinstance(mutation, m.Settings):
                fields |= msgspec.json.decode(cells[position])
        self.settings = msgspec.convert(msgspec.structs.asdict(BEFORE) | fields, KernelSettings)
        self.factor = next((item.factor_ppm for _, item in reversed(log) if isinstance(item, m.Configure)), 1_000_000)
        self.turn = max((item.number for _, item in log if isinstance(item, m.Turn)), default=0)
        self.created = {at: item for at, item in log if isinstance(item, m.Create)}

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
        for at, page in self.log:
            match page:
                case m.Create() if page.type != PageType.RAW:
                    shown[at] = 0
                case m.FaultIn() | m.Prefetch():
                    shown[page.page] = page.level
                case m.Evict() if page.level is not None:
                    shown[page.page] = page.level
                case m.Evict():
                    del shown[page.page]
        return shown

    def forms(self, page: int) -> dict[int, int]:
        """The tokens of each form a page has."""
        made = {row.level: row.tokens for _, row in self.log if isinstance(row, m.Compress) and row.page == page}
        return {0: self.created[page].tokens, **made}

    def tokens(self, page: int, level: int) -> int:
        """The tokens of a page at a level."""
        return self.forms(page)[level]

    def used(self) -> int:
        """The tokens of the prompt."""
        return sum(self.tokens(page, level) for page, level in self.here().items())

    def pinned(self) -> set[int]:
        """The pages here that never yield."""
        rows: set[tuple[int, int]] = set()
        for _, pin in self.log:
            if isinstance(pin, m.Pin):
                rows.add((pin.page, pin.holder))
            elif isinstance(pin, m.Unpin):
                rows.discard((pin.page, pin.holder))
        return {page for page, holder in rows if holder in HARD} & set(self.here())

    def last(self) -> list[int]:
        """The pages here of the last turns, oldest turn first, then what no call has shown; pins apart."""
        numbers: list[int] = []
        window = max(self.settings.pinned_turns, 1)
        turn = 0
        fields: dict[int, list[int]] = {}
        answers: dict[int, tuple[int, list[int]]] = {}
        for at, mutation in self.log:
            if isinstance(mutation, m.Turn):
                turn = mutation.number
            if not isinstance(mutation, m.Create) or not mutation.message:
                continue
            if mutation.role == Role.USER:
                fields.setdefault(turn, []).append(at)
            elif mutation.role == Role.ASSISTANT:
                message, pages = answers.get(turn, (0, []))
                answers[turn] = (mutation.message, [*(pages if message == mutation.message else []), at])
        for turn in sorted({*fields, *answers}):
            if turn > self.turn - window:
                numbers += [*fields.get(turn, []), *answers.get(turn, (0, []))[1]]
        packed = max((at for at, item in self.log if isinstance(item, m.Pack)), default=0)
        other_pages = [page for page, made in self.created.items() if made.message and made.type != PageType.RAW]
        numbers += [page for page in other_pages if page > packed and not self.left_since(page, page)]
        here, pinned = self.here(), self.pinned()
        return [page for page in dict.fromkeys(numbers) if page in here and page not in pinned]

    def left_since(self, page: int, position: int) -> bool:
        """Whether a page left the prompt after a position."""
        gone = (at for at, row in self.log if isinstance(row, m.Evict) and row.page == page and row.level is None)
        return any(at > position for at in gone)

    def guarded(self) -> set[int]:
        """The pages here that came back and are left alone a while."""
        turn, left, until = 0, dict[int, int](), dict[int, int]()
        for _, answer in self.log:
            if isinstance(answer, m.Turn):
                turn = answer.number
            elif isinstance(answer, m.Evict) and answer.level is None:
                left[answer.page] = turn
            elif isinstance(answer, m.FaultIn | m.Prefetch):
                again = left[answer.page] + self.settings.cooldown_turns if answer.page in left else 0
                until[answer.page] = max(turn + self.settings.protected_turns, again)
        return {page for page, end in until.items() if end > turn} & set(self.here()) - self.pinned()

    def faults(self) -> tuple[int, int]:
        """How many faults of the model were served this turn, and their tokens."""
        start = max((at for at, mutation in self.log if isinstance(mutation, m.Turn)), default=0)
        asked = {at for at, mutation in self.log if isinstance(mutation, m.Reference) and mutation.use == Use.FAULT}
        served = [
            mutation
            for at, mutation in self.log
            if isinstance(mutation, m.FaultIn) and at > start and mutation.reference in asked
        ]
        return len(served), sum(item.tokens for item in served)


class Contest(NamedTuple):
    """One contest as the log tells it: its cause, its reasons, and what each page went to, in order."""

    start: int  # the position of its first mutation
    cause: int
    why: Why
    gone: dict[int, tuple[int | None, int]]


def contests(log: Sequence[LoggedMutation]) -> Iterator[Contest]:
    """The contests of a log; raises where a decision neither tells its reasons nor points at them."""
    fields: dict[int, Contest] = {}
    before: LoggedMutation | None = None
    for position, row in log:
        if isinstance(row, m.Evict) and row.cause not in (Cause.ASKED, Cause.RESTORE, Cause.SEGMENT):
            unpinned = before is not None and isinstance(before[1], m.Unpin) and before[1].page == row.page
            if row.why is not None:
                fields[position] = Contest(position - unpinned, row.cause, row.why, {})
            assert row.why is not None or row.first in fields, f"nobody says why p{row.page} gave way at {position}"
            contest = fields[row.first or position]
            assert contest.cause == row.cause, "those that went together went for one cause"
            assert row.page not in contest.gone, "a page goes once in a contest"
            contest.gone[row.page] = (row.level, row.tokens)
        elif isinstance(row, m.FaultIn | m.Prefetch | m.FaultDenied):
            assert isinstance(row.why, Why), f"nobody says why at {position}"
        elif isinstance(row, m.Unpin) and row.holder == Holder.TURNS:
            after = next(other for at, other in log if at == position + 1)
            assert isinstance(after, m.Evict) and after.page == row.page, "what yields gives way at once"
        before = (position, row)
    yield from fields.values()


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
    numbers = {page: 0 if kind == "last" else scores[page] for page in (*gone, *losers)}
    assert why.candidates == len(among)
    assert why.cutoff == max(numbers[page] for page in gone)
    assert why.losers == tuple((numbers[page], page) for page in losers)


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

    for page, wanted in [item for stretch in passes for item in stretch]:
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
    return [(page.score, page.page) for page in state.policy.victims(state.now)]
