"""Makes room: chooses what gives way, in which order and to which level, and says why.

Pages go in the policy's order; what may be shown shorter is shortened before it leaves. What a
person or a rule pinned stays. Where that is not enough to keep the budget without its reserves, rules
yield, the weakest first: pages that just came back, then the last turns and what no call has shown
yet, level by level, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

from vmstore.core.decision import Cause, Holder, Why
from vmstore.core.mutation import Decision, Evict, Unpin
from vmstore.core.page import Level, Modality, PageType, Role
from vmstore.vm.compressors.page_types import COMPRESSION
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State
from vmstore.vm.policies.policy import ScoredPage

CUTS = 16  # places that are looked at
REWRITTEN = 115  # what a token that is written to the cache again costs more than a cached one, in hundredths
BACK = 42  # what one costs that comes back (125), which of what the policy would keep longest a third is taken to do


class CutCandidate(NamedTuple):
    """How far a page may go: its rank, the tokens that frees, and its place in the policy's order, in thousandths."""

    rank: int
    tokens: int
    place: int


class BatchCut(NamedTuple):
    """The rank of the first page that may go, and the tokens that are free then."""

    rank: int
    freed: int


def cut(order: Sequence[CutCandidate], kept: Sequence[tuple[int, int]], need: int, must: int) -> BatchCut | None:
    """The place where a token costs least to free: behind it pages go in the policy's order until `need` is free.

    Only where nowhere `must` is free, the place where most is. `kept` are the pages here by rank, each with the
    tokens of it that a provider may have kept. Costs a look at the order for each of a few places.
    """
    ranks = sorted({going.rank for going in order})
    places = min(CUTS, len(ranks))
    sums = accumulate(tokens for _, tokens in reversed(kept))
    behind = dict(zip((rank for rank, _ in reversed(kept)), sums, strict=True))
    best: tuple[bool, int] | None = None
    found: BatchCut | None = None
    for nth in range(places):
        rank = ranks[nth * len(ranks) // places]
        freed, missed = _freed(order, rank, need)
        if freed <= 0:
            continue
        cost = 1_000 * (REWRITTEN * max(0, behind[rank] - freed) + BACK * missed // 1_000) // freed
        price = (False, cost) if freed >= must else (True, -freed)
        if best is None or price < best:
            best, found = price, BatchCut(rank, freed)
    return found


def _freed(order: Sequence[CutCandidate], rank: int, need: int) -> tuple[int, int]:
    """The pages behind a rank: their tokens, and the sum of tokens times places in the policy's order."""
    freed = missed = 0
    for going in order:
        if freed >= need:
            break
        if going.rank >= rank:
            freed += going.tokens
            missed += going.tokens * going.place
    return freed, missed


TOKENS_MIN = 256  # what is shorter gains little from an abstract, and costs a form and two decisions


def may_shorten(managed: ManagedPage, level: int = Level.REDUCED, *, rarely: bool = False) -> bool:
    """Whether a page may be shown at a level, where `rarely` even as one that seldom is.

    Of a tool call nothing but the whole is one.
    """
    rule, full = COMPRESSION[managed.type], managed.forms[0]
    if level > rule.level_max or (rule.rarely and not rarely) or managed.opaque:
        return False
    if full is None or full.tokens < TOKENS_MIN:
        return False
    return not (managed.role == Role.ASSISTANT and managed.modality is Modality.STRUCTURED)


def _page(scored: ScoredPage) -> int:
    return scored.page


GONE = len(Level)  # beyond the last level: not in the prompt
LOSERS = 3
NUMBER_MAX = 2**63 - 1  # that a log holds
LEAST = 2  # a batch that can wait frees at least half of what it should
ORDINARY = (PageType.TRANSCRIPT, PageType.ARTIFACT, PageType.RAW)  # what a batch takes more of than it must
GUESS = 8  # a form nobody made yet is taken to be an eighth of the page


class YieldRules(IntEnum):
    """Protections that may be overridden where unprotected pages do not free enough."""

    NONE = 0
    RETURNED = 1  # what just came back may go again
    ALL = 2  # and the last turns, and what no call has shown


class Compression(NamedTuple):
    """A request to the door: a form of a page at a level, or at a higher one where there is none so short."""

    page: int
    level: int


class EvictionStep(NamedTuple):
    """How far a page gives way: its score, the level it goes to or None, and the tokens that frees."""

    score: int
    level: Level | None
    gain: int


class Contest(NamedTuple):
    """Pages that could give way: how many there are, and the order in which they do, each with its next level."""

    candidates: int
    order: Iterator[tuple[ScoredPage, Level | None]]


class EvictionPlan:
    """Evictions planned so far, beside a state that does not change meanwhile."""

    def __init__(self, state: State) -> None:
        assert state.settings is not None and state.policy is not None, "a session with a budget has a policy"
        self.state = state
        self.batches = state.settings.batches
        self._whole_units = state.settings.behaviour > 1
        self.used = state.used
        self.decided: list[Decision] = []
        self.requests: list[Compression] = []
        self._levels: dict[int, Level | None] = {}  # what was decided of a page here: its new level, None gone
        self.kept: dict[int, int] = {}  # pages that were just let in, and their tokens
        self.asked: dict[int, None] = {}  # pages that were asked for and are here
        self._back: dict[int, None] = {}
        self._last: dict[int, None] = {}
        self._yielded: dict[int, None] = {}

    @property
    def counted(self) -> int:
        """How much is used, as far as a log can say it: an earlier version let in pages of any number of tokens."""
        return min(self.used, NUMBER_MAX)

    def make(
        self,
        limit: int,
        target: int,
        cause: Cause,
        *,
        winner: int = 0,
        coming: int = 0,
        yields: YieldRules = YieldRules.ALL,
    ) -> bool:
        """Leaves at most `target` used with `coming` tokens more, where more than `limit` would be.

        Rules yield only as far as `limit` asks, and only those in `yields`. Answers whether
        `limit` is kept; `winner` stays.
        """
        if self.used + coming <= limit:
            return True
        self._hold()
        if self.batches:
            self._batch(limit, target, cause, winner, coming)
            target = max(limit, self.state.room if not winner else 0)
        if self.used + coming > target:
            self._take(self.used + coming - target, cause, winner, self._free(winner))
        for contest in (self._guarded, self._window)[:yields]:
            short = self.used + coming - limit
            if short > 0:
                self._take(short, cause, winner, contest(winner))
        return self.used + coming <= limit

    def _batch(self, limit: int, target: int, cause: Cause, winner: int, coming: int) -> None:
        """Lets pages go down to the target, all behind the place where that costs a provider's cache least.

        Not yet where that frees little and the room is kept: what goes voids as much as a whole batch would.
        """
        state = self.state
        need = self.used + coming - target
        waits = not winner and limit <= state.room and self.used <= state.room
        if self._free_at_most() * LEAST < (need if waits else 1):
            return
        steps = list(self._steps(winner))
        kept = sorted(
            (managed.rank, self._kept(managed)) for managed in state.here.values() if self.level(managed) < GONE
        )
        pages = {page: nth for nth, page in enumerate(dict.fromkeys(scored.page for scored, _, _ in steps))}
        order = [
            CutCandidate(self._place(scored.page), gain, pages[scored.page] * 1_000 // len(pages))
            for scored, _, gain in steps
        ]
        if waits and LEAST * sum(self.tokens(state.here[page]) for page in pages) < need:
            return  # by whole pages: a form that is made for what then waits is no part of any decision
        found = cut(order, kept, need, need // LEAST if waits else self.used + coming - limit)
        if found is not None:
            going = ((scored, level) for scored, level, _ in steps if self._place(scored.page) >= found.rank)
            self._take(need, cause, winner, Contest(len(pages), going))

    def _place(self, page: int) -> int:
        """The rank from which a page goes: a result's is that of its call, so that no place is between them."""
        here = self.state.here
        call = here[page].answers
        together = self._whole_units and self._is_here(call)
        return min(here[page].rank, here[call].rank) if together else here[page].rank

    def _free_at_most(self) -> int:
        """The tokens of what no rule holds."""
        kept_pages = {**self._back, **self._last, **self.asked}
        here = self.state.here
        return self.used - self.state.pinned - sum(
            self.tokens(here[page]) for page in kept_pages if page in here and not here[page].pinned
        )  # fmt: skip

    def _kept(self, managed: ManagedPage) -> int:
        """The tokens of a page that a provider may have kept: none of what no call has shown as it is."""
        return self.tokens(managed) if self.state.packed.get(managed.page) == managed.residence else 0

    def _steps(self, winner: int) -> Iterator[tuple[ScoredPage, Level | None, int]]:
        """Steps that free tokens in the policy's order; a call and its results leave together.

        A call whose result is out is not sent, so the later of them says when both go.
        """
        state = self.state
        assert state.policy is not None, "a session with a budget has a policy"
        free = [victim for victim in state.policy.victims(state.now) if self._may(victim.page, winner)]
        free = [victim for victim in free if self._is_free(victim.page) and state.here[victim.page].type in ORDINARY]
        sizes: dict[int, int] = {}  # of a call and its results, by the call
        for resident in state.here.values():
            if self._is_here(resident.page) and self._is_here(resident.answers):
                sizes[resident.answers] = sizes.get(resident.answers, 1) + 1
        gains: dict[int, int] = {}
        for last in (False, True):
            come: dict[int, list[ScoredPage]] = {}
            for scored in free:
                resident = state.here[scored.page]
                level = None if last else self._step(resident)
                if level is not None:
                    gains[resident.page] = self._shorter_by(resident, level)
                    yield scored, level, gains[resident.page]
                    continue
                unit = resident.answers if resident.answers in sizes else resident.page
                come.setdefault(unit, []).append(scored)
                if len(come[unit]) == sizes.get(unit, 1):
                    if self._whole_units:  # where that is enough a result stays alone, and no call does
                        come[unit].sort(key=_page)
                    for victim in come[unit]:
                        yield victim, None, self.tokens(state.here[victim.page]) - gains.get(victim.page, 0)

    def _is_here(self, page: int) -> bool:
        """Whether a page is in the prompt as decided so far."""
        return page in self.state.here and self.level(self.state.here[page]) < GONE

    def _shorter_by(self, managed: ManagedPage, level: Level) -> int:
        """Tokens freed by showing a page at a level; a form nobody made yet is estimated."""
        now, made = self.tokens(managed), managed.made(level)
        form = None if made is None else managed.forms[made]
        return now - now // GUESS if form is None else max(0, now - form.tokens)

    def _hold(self) -> None:
        self._back, self._last = self.state.guarded(), self.state.yielding()

    def withdraw(self, pages: Sequence[int], cause: Cause) -> None:
        """Takes out what no prompt is given, whatever room there is; nobody stands against it."""
        if pages:
            self._hold()
            steps = {page: EvictionStep(0, None, self.state.here[page].tokens) for page in pages}
            self._levels.update(dict.fromkeys(pages))
            self._write(steps, (), sum(step.gain for step in steps.values()), len(pages), cause, 0)

    def held(self, winner: int) -> int:
        """The tokens no fault takes, but for those of the page it is for: pins, the last turns, what just came."""
        self._hold()
        pages = self.state.pages
        tokens_held = self.state.pinned + sum(self.tokens(pages[page]) for page in self._last if page not in self.kept)
        tokens_held += sum(tokens for page, tokens in self.kept.items() if not pages[page].pinned)
        asked = (page for page in self.asked if page not in self._last and page not in self.kept)
        tokens_held += sum(self.tokens(pages[page]) for page in asked if not pages[page].pinned and page != winner)
        page = pages[winner]
        return (
            tokens_held - self.tokens(page)
            if page.pinned or winner in self._last or winner in self.kept
            else tokens_held
        )

    def level(self, managed: ManagedPage) -> int:
        """The level a page is shown at as decided so far, beyond the last where it is not."""
        level = self._levels.get(managed.page, managed.level if managed.page in self.state.here else None)
        return GONE if level is None else level

    def tokens(self, managed: ManagedPage) -> int:
        """The tokens of a page under the plan so far."""
        level = self.level(managed)
        form = managed.forms[level] if level < GONE else None
        return 0 if form is None else form.tokens

    def let_in(self, managed: ManagedPage, level: Level, tokens: int) -> None:
        """Counts a page as shown at a level, for the room was made."""
        self.used += tokens - self.tokens(managed)
        self._levels[managed.page] = level
        self.kept[managed.page] = tokens

    def arrive(self, tokens_max: int) -> None:
        """Shows what no call has shown yet and is larger than it may be as far as it fits, at the lowest level."""
        for page in self.state.unseen:
            resident = self.state.here[page]
            free = not resident.pinned and page not in self.asked and page not in self._levels  # nor decided already
            free = free and page not in self.state.barred.here
            if resident.tokens > tokens_max and free and may_shorten(resident):
                self._shorten(resident, tokens_max)

    def _shorten(self, managed: ManagedPage, tokens_max: int) -> None:
        wanted = managed.level + 1
        while wanted < len(managed.forms):
            level = managed.made(wanted)
            if level is None:
                self.requests.append(Compression(managed.page, wanted))
                return
            form = managed.forms[level]
            if form is not None and form.tokens <= tokens_max:
                self._levels[managed.page] = Level(level)
                step = EvictionStep(0, Level(level), managed.tokens - form.tokens)
                self._write({managed.page: step}, (), managed.tokens - tokens_max, 1, Cause.ARRIVAL, 0)
                return
            wanted = level + 1

    # ---- who may go

    def _free(self, winner: int) -> Contest:
        """The unprotected pages, in the policy's order."""
        closed = dict.fromkeys((*self._back, *self._last, *self._levels, *self.asked, winner))
        state = self.state
        closed_here = sum(page in state.here and not state.here[page].pinned for page in closed)
        reopened = sum(self._may(page, winner) for page in self._levels if self._is_free(page))
        count = len(state.here) - state.pinned_pages - closed_here + reopened
        return Contest(count, self._ordered(self._is_free))

    def _guarded(self, winner: int) -> Contest:
        """The pages that just came back, in the policy's order."""
        count = sum(self._may(page, winner) for page in self._back if self._is_guarded(page))
        return Contest(count, self._ordered(self._is_guarded))

    def _window(self, winner: int) -> Contest:
        """The last turns and what no call has shown: level by level, then turn by turn."""
        return Contest(sum(self._may(page, winner) for page in self._last), self._by_level())

    def _by_level(self) -> Iterator[tuple[ScoredPage, Level | None]]:
        for level in (Level.ABSTRACT, Level.REFERENCE, None):
            for page in self._last:
                managed = self.state.pages[page]
                if level is None or (
                    self.level(managed) < level and may_shorten(managed) and self._is_shorter(managed, level)
                ):
                    yield ScoredPage(0, page), level

    def _ordered(self, chosen: Callable[[int], bool]) -> Iterator[tuple[ScoredPage, Level | None]]:
        """Pages in the policy's order: what may be shown shorter first is, and leaves where that is not enough."""
        policy, now = self.state.policy, self.state.now
        assert policy is not None
        for scored in policy.victims(now):
            if chosen(scored.page):
                yield scored, self._step(self.state.pages[scored.page])
        for scored in policy.victims(now):
            if chosen(scored.page):
                yield scored, None

    def _is_free(self, page: int) -> bool:
        return page not in self._back and page not in self._last

    def _is_guarded(self, page: int) -> bool:
        return page in self._back and page not in self._last

    def _may(self, page: int, winner: int) -> bool:
        """Whether a page is here to be chosen, as decided so far."""
        resident = self.state.here.get(page)
        if resident is None or resident.pinned or page in self.kept or page in self.asked or page == winner:
            return False
        return self.level(resident) < GONE

    def _step(self, managed: ManagedPage) -> Level | None:
        """The level ordinary pressure lowers a page to: an abstract unless the settings say otherwise, then none."""
        settings = self.state.settings
        if settings is not None and settings.compress and may_shorten(managed):
            level = Level(settings.compress_level)
            return level if self.level(managed) < level else None
        return None

    def _is_shorter(self, managed: ManagedPage, level: Level) -> bool:
        """Whether the form at a level is shorter than what is shown; one nobody made yet is taken to be."""
        made = managed.made(level)
        form = None if made is None else managed.forms[made]
        return form is None or form.tokens < self.tokens(managed)

    # ---- taking

    def _take(self, need: int, cause: Cause, winner: int, contest: Contest) -> None:
        """Takes pages in order until `need` tokens are free; the three after them are the nearest losers."""
        if contest.candidates <= 0:
            return
        chosen: dict[int, EvictionStep] = {}
        losers: dict[int, int] = {}
        freed = 0
        for scored, level in contest.order:
            page = scored.page
            if not self._may(page, winner):
                continue
            if freed < need:
                level, gain = self._gain(self.state.pages[page], level)
                before = chosen.get(page)
                chosen[page] = EvictionStep(scored.score, level, gain + (before.gain if before else 0))
                self._levels[page] = level
                freed += gain
            elif page not in chosen and len(losers) < LOSERS:
                losers.setdefault(page, scored.score)
            elif len(losers) == LOSERS:
                break
        if chosen:
            nearest = tuple((score, page) for page, score in losers.items())
            self._write(chosen, nearest, need, contest.candidates, cause, winner)

    def _gain(self, managed: ManagedPage, level: Level | None) -> tuple[Level | None, int]:
        """The level a page really goes to, and the tokens that frees; asks for a form where none was made."""
        now = self.tokens(managed)
        if level is None:
            return None, now
        shorter = managed.made(level)
        if shorter is None:
            self.requests.append(Compression(managed.page, level))
            return level, now - now // GUESS
        form = managed.forms[shorter]
        assert form is not None
        return (Level(shorter), now - form.tokens) if form.tokens < now else (None, now)

    def _write(
        self,
        chosen: dict[int, EvictionStep],
        losers: tuple[tuple[int, int], ...],
        need: int,
        candidates: int,
        cause: Cause,
        winner: int,
    ) -> None:
        state = self.state
        assert state.policy is not None
        cutoff = max(step.score for step in chosen.values())
        need = min(need, NUMBER_MAX)
        why = Why(state.policy.NUMBER, state.budget, self.counted, need, winner, candidates, cutoff, losers)
        first = 0
        for page, (score, level, gain) in chosen.items():
            if page in self._last and page not in self._yielded and state.pages[page].yields != state.turn:
                self._yielded[page] = None
                self.decided.append(Unpin(page, Holder.TURNS, None if first else why))
            form = None if level is None else state.pages[page].forms[level]
            content = None if form is None else form.position
            reason = None if first else why
            self.decided.append(Evict(page, cause, gain, score, level, content, reason, first))
            first = first or state.position + len(self.decided)
            self.used -= gain
