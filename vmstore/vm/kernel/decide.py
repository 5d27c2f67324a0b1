"""Decides which faults to serve, which prefetches to make and which pages to evict.

`decide` reads a state and changes nothing. What it cannot decide before somebody made a shorter
form of a page it requests; the answer comes back as a `compress`, and it is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmstore.core.decision import Cause, Denial, Load, Use, Why
from vmstore.core.mutation import (
    AnyMutation,
    Configure,
    Decision,
    FaultDenied,
    FaultIn,
    Prefetch,
    Pressure,
    Reference,
    Settings,
)
from vmstore.core.page import Level, Tier
from vmstore.vm.kernel.eviction import GONE, NUMBER_MAX, Compression, EvictionPlan, YieldRules, may_shorten
from vmstore.vm.kernel.managed_page import ManagedForm, ManagedPage
from vmstore.vm.kernel.state import State

Stimulus = tuple[int, AnyMutation]
"""A stimulus: a mutation and its position."""


WITHDRAWN = (Cause.RETRACTED, Cause.UNAPPROVED)
"""The causes for which pages leave the prompt whatever room there is."""


class DecideResult(NamedTuple):
    """The decisions; none where something must be requested first."""

    mutations: list[Decision]
    requests: list[Compression]


def decide(state: State, stimulus: Sequence[Stimulus]) -> DecideResult:
    """Decides on a stimulus that the state has folded already."""
    if state.settings is None or _settled(state, stimulus):
        return DecideResult([], [])
    room = EvictionPlan(state)
    deciding = DecisionRun(state, room)
    room.withdraw(state.barred.leaving(state.here, Cause.RETRACTED), Cause.RETRACTED)
    room.withdraw(state.barred.leaving(state.here, Cause.UNAPPROVED), Cause.UNAPPROVED)
    asked = [(position, mutation) for position, mutation in stimulus if isinstance(mutation, Reference)]
    if state.settings.shape is not None:
        deciding.hold(mutation for _, mutation in asked)
    for position, mutation in asked:
        deciding.answer(position, mutation)
    deciding.settle(Cause.BUDGET if any(_is_budget(mutation) for _, mutation in stimulus) else Cause.PRESSURE)
    return DecideResult([], room.requests) if room.requests else DecideResult(room.decided, [])


def _is_budget(mutation: AnyMutation) -> bool:
    """Whether somebody changed what pages may take."""
    return isinstance(mutation, Settings) or (isinstance(mutation, Configure) and mutation.beside > 0)


def _settled(state: State, stimulus: Sequence[Stimulus]) -> bool:
    """Whether nothing follows: what was asked for is here as it was asked for, and the prompt as full as it was."""
    here = state.here
    assert state.settings is not None
    for _, mutation in stimulus:
        if isinstance(mutation, Reference):
            managed = here.get(mutation.page)
            if managed is None or (
                managed.level > mutation.level and (mutation.use != Use.SIGNAL or state.settings.recall_share)
            ):
                return False
    if state.barred.here and any(state.barred.leaving(here, cause) for cause in WITHDRAWN):
        return False
    return state.used <= state.high and _load(state.used, state.low, state.high, state.room) is state.load


class DecisionRun:
    """One decision under way: what it has let in so far counts for what comes next."""

    def __init__(self, state: State, room: EvictionPlan) -> None:
        assert state.settings is not None and state.policy is not None
        self.state = state
        self.room = room
        self.settings = state.settings
        self.number = state.policy.NUMBER
        self.faults, self.tokens = state.faults, state.fault_tokens
        self.share = state.recall  # for what is wished for

    def hold(self, asked: Iterable[Reference]) -> None:
        """Keeps pages that are used at once here, and of those wished for what the share allows."""
        share = self.share
        for reference in asked:
            resident = self.state.here.get(reference.page)
            if resident is None or (reference.use == Use.SIGNAL and resident.tokens > share):
                continue
            share -= resident.tokens if reference.use == Use.SIGNAL else 0
            self.room.asked[reference.page] = None

    def answer(self, position: int, asked: Reference) -> None:
        """Brings in what is used, or wished for, and is not here."""
        if asked.use == Use.SIGNAL:
            self._wish(position, asked)
        else:
            self._fault(position, asked)

    def _fault(self, position: int, asked: Reference) -> None:
        managed = self.state.pages.get(asked.page)
        if managed is None:
            self._deny(position, 0, Denial.NO_PAGE, 0)
        elif self.room.level(managed) > asked.level:
            denial = self._refusal(asked, managed)
            if denial is None:
                denial = self._serve(position, asked, managed)
            if denial is not None:
                self._deny(position, managed.page, denial, _full(managed))
        elif asked.use in (Use.FAULT, Use.ASKED):
            self.room.asked[managed.page] = None  # it is here, and does not leave while that is answered

    def _refusal(self, asked: Reference, managed: ManagedPage) -> Denial | None:
        """The reason to refuse a page whatever its size: not approved, retracted, or no fault the model may make."""
        if self.state.barred.unapproved(managed.page):
            return Denial.APPROVAL
        if managed.page in self.state.barred and asked.use != Use.ASKED:
            return Denial.RETRACTED
        if asked.use != Use.FAULT:
            return None
        if self.settings.paging == "runtime":
            return Denial.PAGING
        if not self.settings.admits(asked.reason):
            return Denial.REASON
        return Denial.FAULTS_A_TURN if self.faults >= self.settings.faults_a_turn_max else None

    def _serve(self, position: int, asked: Reference, managed: ManagedPage) -> Denial | None:
        """Brings a page in at the lowest level from the one asked for on that there is room for, or says why not."""
        state, room = self.state, self.room
        fits = state.budget - room.held(managed.page)
        if managed.pinned:  # what never yields leaves the reserves alone
            fits = min(fits, state.room - state.pinned + room.tokens(managed))
        left = state.tokens(self.settings.fault_tokens_a_turn_max) - self.tokens if asked.use == Use.FAULT else fits
        denial = Denial.NO_LEVEL
        wanted = asked.level
        if managed.made(wanted) is None and not may_shorten(managed):  # nothing is as short: what there is will do
            wanted = max(level for level, form in enumerate(managed.forms) if form is not None)
        most = min(fits, left)
        worth = most if asked.use in (Use.FAULT, Use.ASKED) else state.tokens(self.settings.returned_tokens_max)
        whole = self.settings.behaviour < 2
        for level in range(wanted, self.room.level(managed)):
            form = managed.forms[level]
            if (
                form is not None
                and form.tokens <= most
                and (form.tokens <= worth or (whole and not _is_longer(managed, level)))
            ):
                return self._bring(position, asked, managed, Level(level), form)
            if form is not None and form.tokens > most:
                denial = Denial.NO_ROOM if form.tokens > fits else Denial.TOKENS_A_TURN
            elif may_shorten(managed) and managed.made(level) is None:
                room.requests.append(Compression(managed.page, level))
                return None
        return denial

    def _bring(
        self, position: int, asked: Reference, managed: ManagedPage, level: Level, form: ManagedForm
    ) -> Denial | None:
        state, room = self.state, self.room
        coming = form.tokens - room.tokens(managed)
        used = room.counted
        if not room.make(
            state.budget, state.low, Cause.FAULT, winner=managed.page, coming=coming, yields=YieldRules.RETURNED
        ):
            return Denial.NO_ROOM
        why = Why(self.number, state.budget, used, form.tokens, managed.page, 1, 0, ())
        tier = Tier.L0 if room.level(managed) < GONE else Tier.L2
        room.decided.append(FaultIn(managed.page, form.position, level, form.tokens, position, why, tier))
        room.let_in(managed, level, form.tokens)
        if asked.use == Use.FAULT:
            self.faults += 1
            self.tokens += form.tokens
        return None

    def _deny(self, position: int, page: int, because: Denial, need: int) -> None:
        why = Why(self.number, self.state.budget, self.room.counted, min(need, NUMBER_MAX), 0, 0, 0, ())
        self.room.decided.append(FaultDenied(page, position, because, why))

    def _wish(self, position: int, wish: Reference) -> None:
        """Brings in what is wished for: within its share what nothing holds goes for it."""
        managed = self.state.pages.get(wish.page)
        if managed is None or not self.settings.prefetch or managed.page in self.state.barred:
            return
        room, limit = self.room, self.state.high
        now = room.level(managed)
        if now < GONE and not self.share:
            return
        forms = [(level, form) for level, form in enumerate(managed.forms) if form is not None and wish.level <= level]
        for level, form in [rendition for rendition in forms if rendition[0] < now]:
            coming = form.tokens - room.tokens(managed)
            fits = room.used + coming <= limit
            if not fits and coming <= self.share:
                fits = room.make(
                    limit, self.state.low, Cause.PRESSURE, winner=managed.page, coming=coming, yields=YieldRules.NONE
                )
            if fits:
                self.share -= max(0, coming) if self.share else 0
                why = Why(
                    self.number, self.state.budget, room.counted, form.tokens, managed.page, len(forms), limit, ()
                )
                room.decided.append(Prefetch(managed.page, form.position, level, form.tokens, position, why))
                room.let_in(managed, Level(level), form.tokens)
                return

    def settle(self, cause: Cause) -> None:
        """Makes room where the prompt is fuller than its high mark, and says how full it is then."""
        state, room = self.state, self.room
        if room.used > state.high and not room.kept:
            last = self.settings.arrivals_last
            if not last:
                room.arrive(state.low // 2)
            room.make(state.high, state.low, cause, yields=YieldRules.NONE)
            if last and room.used > state.room:  # nothing older is left that could go
                room.arrive(state.low // 2)
        room.make(state.budget if room.kept else state.room, state.room, cause)
        if room.used > state.budget:  # what is here and was asked for is too much
            room.asked.clear()
            room.make(state.budget, state.room, cause)
        load = _load(room.used, state.low, state.high, state.room)
        if load is not state.load and not room.requests:
            room.decided.append(Pressure(load, room.counted, state.budget))


def _is_longer(managed: ManagedPage, level: int) -> bool:
    """Whether a page can be shown shorter than at a level, an abstract being the least that tells of it."""
    return level < Level.ABSTRACT and may_shorten(managed)


def _full(managed: ManagedPage) -> int:
    form = managed.forms[0]
    return managed.tokens if form is None else form.tokens


def _load(used: int, soft: int, hard: int, room: int) -> Load:
    return Load.LOW if used <= soft else Load.MEDIUM if used <= hard else Load.HIGH if used <= room else Load.CRITICAL
