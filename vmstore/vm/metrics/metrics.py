"""Counts what a session's memory does: a fold beside the kernel's state.

`note` is called with each mutation right after the state has folded it. A fault is what the kernel
answered with a `fault_in` or a `fault_denied`: every other reference found its page where it was.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Denial, FaultReason, Use
from vmstore.core.mutation import AnyMutation, Create, Unknown, Update, wire
from vmstore.core.page import Level, Tier
from vmstore.core.recalls import USES, RecallTally
from vmstore.vm.kernel.settings import PPM
from vmstore.vm.kernel.state import State
from vmstore.vm.metrics.report import WINDOW_TURNS, FaultShare, Measures, judged, share

MINUTE_US = 60_000_000


class CommitTimes:
    """Times of commits, in microseconds. What stands in one commit happened at one moment: it took no time here."""

    def __init__(self) -> None:
        self._commit = self._now = 0
        self._first: int | None = None
        self._last = 0
        self._waiting: list[tuple[int, int]] = []  # faults no call has shown yet: in which commit, when
        self._took: list[int] = []  # in order

    @property
    def last_at(self) -> int:
        """When something happened last; 0 where nothing did."""
        return self._last

    def begin(self, at: int) -> None:
        """A commit begins that happened at a time."""
        self._commit += 1
        self._now = at

    def tick(self) -> None:
        """Something happened in it."""
        self._first = self._now if self._first is None else self._first
        self._last = max(self._last, self._now)

    def served(self) -> None:
        """A fault was served; what it brought is in the next call."""
        self._waiting.append((self._commit, self._now))

    def called(self) -> None:
        """A call shows what was asked for before; what its own commit asked for nobody waited for."""
        for commit, at in self._waiting:
            if commit != self._commit:
                insort(self._took, max(0, self._now - at))
        self._waiting.clear()

    def latency_ms(self, percent: int) -> float | None:
        """The time from a fault to the call that shows the page, that so many of a hundred keep; None without one."""
        if not self._took:
            return None
        return self._took[-(-len(self._took) * percent // 100) - 1] / 1_000

    def a_minute(self, count: int) -> float | None:
        """A count over the time from the first commit to the last; None where no time went by."""
        span = self._last - (self._last if self._first is None else self._first)
        return round(count * MINUTE_US / span, 6) if span > 0 else None


SEAL_BYTES = 64  # a salt and a commitment


class Overhead:
    """Bytes of contents as they were accepted, and bytes of the records about them."""

    def __init__(self) -> None:
        self.contents = self.said = 0

    def note(self, mutation: AnyMutation) -> None:
        """Weighs a mutation."""
        self.said += len(wire(mutation))
        if isinstance(mutation, Unknown):
            return
        self.said += SEAL_BYTES * sum(getattr(mutation, name) is not None for name in _cells(type(mutation)))
        if isinstance(mutation, Create | Update):
            self.contents += mutation.size


@cache
def _cells(kind: type) -> tuple[str, ...]:
    """The fields of a kind that name a cell."""
    return tuple(name for name, form in kind.__annotations__.items() if form.startswith("CellRef"))


CACHED, WRITTEN = 10, 125  # what a token costs that the provider has kept, and one that it has not, in hundredths
_USED = frozenset((Use.TOOL, Use.QUOTE, Use.REUSE))
About = Callable[[int, m.Create], bytes]
"""What a page is about, by the position and the mutation that made it; empty where nobody said."""


class PromptEntry(NamedTuple):
    """A page in a prompt: its rank, the page, the position of its content, its tokens."""

    rank: int
    page: int
    content: int
    tokens: int


class Prefix:
    """The prompt of the last call in order, as a provider may have cached it."""

    def __init__(self) -> None:
        self._order: list[PromptEntry] = []
        self.pages: dict[int, PromptEntry] = {}
        self.voided = 0
        self.tokens = 0

    def move(self, state: State, pack: m.Pack) -> int:
        """Takes the next prompt; counts the tokens from the first place on that shows another content.

        Answers the tokens before that place, which a provider may have kept.
        """
        before_all, self.tokens = self.tokens, pack.tokens
        gone = [self.pages.pop(page) for page in pack.left if page in self.pages]
        gone += [self.pages.pop(residence[0]) for residence in pack.entered if residence[0] in self.pages]
        come = [_shown(state, residence) for residence in pack.entered]
        if not gone and not come:
            return before_all
        at = bisect_left(self._order, min(shown.rank for shown in (*gone, *come)), key=_rank)
        before = self._order[at:]
        kept = [shown for shown in before if shown.page in self.pages]
        self._order[at:] = sorted([*kept, *come])
        self.pages.update((shown.page, shown) for shown in come)
        same = 0
        for old, new in zip(before, self._order[at:], strict=False):
            if old[1:3] != new[1:3]:
                break
            same += 1
        lost = sum(shown.tokens for shown in before[same:])
        self.voided += lost
        return max(0, before_all - lost)


def _real(state: State, tokens: int) -> int:
    """Estimated tokens in those of the model, which the factor in force makes of them."""
    return tokens * state.factor_ppm // PPM


def _shown(state: State, residence: m.Residence) -> PromptEntry:
    page, content, level, rank = residence
    form = state.pages[page].forms[level]
    return PromptEntry(rank, page, content, 0 if form is None else form.tokens)


def _rank(shown: PromptEntry) -> int:
    return shown.rank


Topic = bytes | int
"""What a page is about; the page itself where nobody said."""


class Thrash:
    """Faults of the last turns, and how many of them were of a topic that had just been missed."""

    def __init__(self) -> None:
        self._faults: deque[tuple[int, Topic]] = deque()  # turn, what was missed
        self.sum = self.peak = 0

    def fault(self, turn: int, topic: Topic) -> None:
        """A page was asked for and was not there."""
        self._faults.append((turn, topic))

    def index(self, turn: int) -> int:
        """Repeated faults a turn over the window that ends with a turn, in parts per million."""
        while self._faults and self._faults[0][0] <= turn - WINDOW_TURNS:
            self._faults.popleft()
        repeated = len(self._faults) - len({topic for _, topic in self._faults})
        return repeated * PPM // max(1, min(WINDOW_TURNS, turn))

    def close(self, turn: int) -> None:
        """A turn is over."""
        found = self.index(turn)
        self.sum += found
        self.peak = max(self.peak, found)


class Metrics:
    """The counters of one session; `about` tells what its pages are about.

    `price` is what a token costs more where it is not cached, in nano-dollars.
    """

    def __init__(self, about: About = lambda position, made: b"", price: int | None = None) -> None:
        self._about = about
        self._price = price
        self._topics: dict[int, bytes] = {}  # of pages that say what they are about
        self._prefix = Prefix()
        self._pace = CommitTimes()
        self.overhead: Overhead | None = Overhead()  # None where nothing is written
        self._thrash = Thrash()
        self._open: dict[int, m.Reference] = {}  # what was asked since the last turn, by position
        self.turns = self.calls = self.references = self.served = self.fault_tokens = 0
        self.asked = dict.fromkeys(FaultReason, 0)
        self.refused = dict.fromkeys(FaultReason, 0)
        self.denials = dict.fromkeys(Denial, 0)
        self.model_faults = 0
        self.turn_faults = self.turn_faults_max = 0
        self.evictions = self.freed_tokens = self.compressions = 0
        self.prefetches = self.prefetch_hits = 0
        self._waiting: dict[int, None] = {}  # pages brought in before anybody asked, and not used yet
        self.used = self.over = self.peak = self.peak_share = self.shares = 0
        self.forms = self.whole = self.abstract = 0
        self.recalls = self.corrected = 0
        self._searched = RecallTally()
        self.searched_in_prompt = 0
        self._cited: dict[int, None] = {}  # of the last call
        self._coming: dict[int, None] = {}  # what the next call is known to use
        self.sent = self.effective = 0
        self.invalidated = 0  # tokens of requests that the next one had otherwise
        self.cost = 0  # of all calls, in hundredths of a token

    @property
    def last_at(self) -> int:
        """When something happened last, in microseconds since 1970; 0 where nothing did."""
        return self._pace.last_at

    def begin(self, at: int) -> None:
        """A commit begins that happened at a time, in microseconds since 1970."""
        self._pace.begin(at)

    def note(self, state: State, position: int, mutation: m.AnyMutation) -> None:
        """Counts a mutation the state has just folded; nothing before the session has a budget."""
        if state.settings is None:
            return
        self._pace.tick()
        if self.overhead is not None:
            self.overhead.note(mutation)
        fold = _FOLDS.get(type(mutation))
        if fold is not None:
            fold(self, state, position, mutation)

    # ---- one fold a kind of mutation

    def _on_turn(self, state: State, position: int, turn: m.Turn) -> None:
        if self.turns:
            self._thrash.close(state.turn - 1)
        self.turns += 1
        self.turn_faults = 0
        self._open.clear()

    def _on_create(self, state: State, position: int, made: m.Create) -> None:
        if topic := self._about(position, made):
            self._topics[position] = topic

    def _on_reference(self, state: State, position: int, reference: m.Reference) -> None:
        if reference.use == Use.SIGNAL:
            return
        self.references += 1
        self._open[position] = reference
        if reference.use == Use.FAULT:
            self.asked[FaultReason(reference.reason)] += 1
        self._touch(state, reference.page)
        if reference.use in USES:
            self._searched.used(position, state.turn, reference.page)
        if reference.use in _USED and reference.call > state.call:
            self._coming[reference.page] = None
        elif reference.use in _USED:
            self._cite(reference.page)

    def _on_cite(self, state: State, position: int, cite: m.Cite) -> None:
        self._touch(state, cite.page)
        self._searched.used(position, state.turn, cite.page)
        self._cite(cite.page)

    def _on_recall(self, state: State, position: int, recall: m.Recall) -> None:
        self.recalls += 1
        self.corrected += recall.corrected

    def _on_search(self, state: State, position: int, search: m.Search) -> None:
        self._searched.recalled(position, state.turn, search.recaller, search.found, search.tokens)
        self.searched_in_prompt += sum(page in state.here for page in self._searched.recalls[-1].pages)

    def _on_compress(self, state: State, position: int, made: m.Compress) -> None:
        self.forms += 1
        full = state.pages[made.page].forms[0]
        if made.level == Level.ABSTRACT and full is not None:
            self.whole += full.tokens
            self.abstract += made.tokens

    def _touch(self, state: State, page: int) -> None:
        if page in self._waiting:
            del self._waiting[page]
            self.prefetch_hits += page in state.here

    def _cite(self, page: int) -> None:
        if page in self._prefix.pages and page not in self._cited:
            self._cited[page] = None
            self.effective += self._prefix.pages[page].tokens

    # ---- decisions

    def _on_fault_in(self, state: State, position: int, served: m.FaultIn) -> None:
        self.served += 1
        self._pace.served()
        self.fault_tokens += served.tokens
        self._fault(state, served.page, served.reference)

    def _on_fault_denied(self, state: State, position: int, denied: m.FaultDenied) -> None:
        self.denials[Denial(denied.because)] += 1
        asked = self._fault(state, denied.page, denied.reference)
        if asked is not None and asked.use == Use.FAULT:
            self.refused[FaultReason(asked.reason)] += 1

    def _fault(self, state: State, page: int, reference: int) -> m.Reference | None:
        asked = self._open.pop(reference, None)
        self.model_faults += asked is not None and asked.use == Use.FAULT
        self.turn_faults += 1
        self.turn_faults_max = max(self.turn_faults_max, self.turn_faults)
        if page:
            self._thrash.fault(state.turn, self._topics.get(page, page))
        return asked

    def _on_prefetch(self, state: State, position: int, fetched: m.Prefetch) -> None:
        self.prefetches += 1
        self._waiting[fetched.page] = None

    def _on_evict(self, state: State, position: int, gone: m.Evict) -> None:
        if gone.cause == Cause.THOUGHT:  # it was in no call
            return
        self.freed_tokens += gone.tokens
        if gone.level is not None:
            self.compressions += 1
            return
        self.evictions += 1
        self._waiting.pop(gone.page, None)

    def _on_pack(self, state: State, position: int, pack: m.Pack) -> None:
        self.calls += 1
        self._pace.called()
        before = self._prefix.voided
        kept, all_ = self._prefix.move(state, pack), pack.tokens + max(0, state.beside)
        self.invalidated += self._prefix.voided - before if pack.voided is None else pack.voided
        cached = min(all_, kept * all_ // max(1, pack.tokens))
        self.cost += CACHED * cached + WRITTEN * (all_ - cached)
        self._cited.clear()
        for page in self._coming:
            self._cite(page)
        self._coming.clear()
        tokens, budget = (pack.sent_tokens, state.whole) if pack.sent_tokens else (pack.tokens, state.budget)
        self.sent += tokens
        self.peak = max(self.peak, _real(state, tokens))
        part = tokens * PPM // budget if budget else 0
        self.shares += part
        self.peak_share = max(self.peak_share, part)
        self.over += tokens > budget

    # ---- the answer

    def measures(self, state: State) -> Measures:
        """All of it, as things stand."""
        denied = sum(self.denials.values())
        faults = self.served + denied
        thrash = self._thrash.index(state.turn)
        voided, price = self._prefix.voided, self._price
        measures = Measures(
            turns=self.turns,
            calls=self.calls,
            references=self.references,
            hits=self.references - faults,
            faults=faults,
            served=self.served,
            denied=denied,
            fault_tokens=self.fault_tokens,
            fault_rate=share(faults, self.references),
            hit_rate=share(self.references - faults, self.references),
            faults_a_turn=share(faults, self.turns),
            faults_a_turn_max=self.turn_faults_max,
            model_faults=self.model_faults,
            reasons={reason.word: self._reason(reason) for reason in FaultReason},
            denials={denial.word: count for denial, count in self.denials.items() if count},
            thrash_index=share(self._thrash.sum + thrash, self.turns * PPM),
            thrash_peak=max(self._thrash.peak, thrash) / PPM,
            thrash_now=thrash / PPM,
            evictions=self.evictions,
            freed_tokens=self.freed_tokens,
            compressions=self.compressions,
            prefetches=self.prefetches,
            prefetch_hits=self.prefetch_hits,
            prefetch_hit_rate=share(self.prefetch_hits, self.prefetches),
            utilisation=share(self.shares, self.calls * PPM),
            utilisation_peak=self.peak_share / PPM if self.calls else None,
            l0_peak=self.peak,
            l0_tokens=_real(state, state.used),
            l0_available=max(0, _real(state, state.budget - state.used)) if state.settings else 0,
            calls_over_budget=self.over,
            pages={Tier.L0.name: len(state.here), Tier.L2.name: len(state.pages) - len(state.here)},
            prefix_voided=voided,
            prefix_voided_a_call=share(voided, self.calls),
            invalidated=self.invalidated,
            call_cost=share(self.cost, 100 * self.calls),
            **self._recalled(),
            prefix_cost=None if price is None else voided * price / 1e9,
            forms=self.forms,
            compression=share(self.abstract, self.whole),
            recalls=self.recalls,
            recall_success=share(self.recalls - self.corrected, self.recalls),
            effective=share(self.effective, self.sent),
            evictions_a_minute=self._pace.a_minute(self.evictions),
            fault_latency_p95_ms=self._pace.latency_ms(95),
            overhead=None if self.overhead is None else share(self.overhead.said, self.overhead.contents),
        )
        return judged(measures)

    def _recalled(self) -> dict[str, Any]:
        """The worth of recalls."""
        searches = self._searched.recalls
        given, used = sum(len(search.pages) for search in searches), sum(len(search.used) for search in searches)
        return {
            "searches": len(searches),
            "searched_pages": given,
            "searched_used": used,
            "searched_used_share": share(used, given),
            "searched_in_prompt": self.searched_in_prompt,
            "searched_tokens": sum(search.tokens for search in searches),
        }

    def _reason(self, reason: FaultReason) -> FaultShare:
        asked, denied = self.asked[reason], self.refused[reason]
        return FaultShare(
            asked=asked,
            denied=denied,
            share=share(asked, sum(self.asked.values())),
            success=share(asked - denied, asked),
        )


_FOLDS: dict[type, Callable[[Metrics, State, int, Any], None]] = {
    m.Create: Metrics._on_create,
    m.Turn: Metrics._on_turn,
    m.Reference: Metrics._on_reference,
    m.Cite: Metrics._on_cite,
    m.Recall: Metrics._on_recall,
    m.Search: Metrics._on_search,
    m.Compress: Metrics._on_compress,
    m.FaultIn: Metrics._on_fault_in,
    m.FaultDenied: Metrics._on_fault_denied,
    m.Prefetch: Metrics._on_prefetch,
    m.Evict: Metrics._on_evict,
    m.Pack: Metrics._on_pack,
}
