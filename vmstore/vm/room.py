"""Makes room: chooses what gives way, in which order and to which level, and says why.

Pages go in the policy's order; what may be shown shorter is shortened before it leaves. What a
person or a rule pinned stays. Where that is not enough, rules yield, the weakest first: pages that
just came back, then the last turns and what no call has shown yet, level by level, oldest first
(READINGS D8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vmstore.core.decision import Cause, Holder, Why
from vmstore.core.mutation import Decision, Evict, Unpin
from vmstore.core.page import Level
from vmstore.vm.held import Held
from vmstore.vm.policy import Scored
from vmstore.vm.shortening import may_shorten
from vmstore.vm.state import State

LOSERS = 3
GUESS = 8  # a form nobody made yet is taken to be an eighth of the page


class Compression(NamedTuple):
    """A request to the door: a form of a page at a level, or at a higher one where there is none so short."""

    page: int
    level: int


class Step(NamedTuple):
    """How far a page gives way: its score, the level it goes to or None, and the tokens that frees."""

    score: int
    level: Level | None
    gain: int


class Room:
    """What is decided to give way, beside a state that does not change meanwhile."""

    def __init__(self, state: State) -> None:
        assert state.settings is not None and state.policy is not None, "a session with a budget has a policy"
        self.state = state
        self.used = state.used
        self.decided: list[Decision] = []
        self.requests: list[Compression] = []
        self._levels: dict[int, Level | None] = {}  # what was decided of a page here: its new level, None gone
        self.kept: dict[int, None] = {}  # pages that were just let in
        self._back: dict[int, None] = {}
        self._last: dict[int, None] = {}
        self._yielded: dict[int, None] = {}

    def make(
        self, limit: int, target: int, cause: Cause, *, winner: int = 0, coming: int = 0, yields: bool = True
    ) -> bool:
        """Leaves at most `target` used with `coming` tokens more, where more than `limit` would be.

        Rules yield only as far as `limit` asks, those of the last turns only where told. Answers
        whether `limit` is kept; `winner` stays.
        """
        if self.used + coming <= limit:
            return True
        self._hold()
        self._take(self.used + coming - target, cause, winner, self._free())
        for pages in (self._guarded(), self._window()) if yields else (self._guarded(),):
            short = self.used + coming - limit
            if short > 0:
                self._take(short, cause, winner, pages)
        return self.used + coming <= limit

    def _hold(self) -> None:
        self._back, self._last = self.state.guarded(), self.state.yielding()

    def held(self) -> int:
        """The tokens that neither pressure nor a fault takes: what is pinned, and the last turns."""
        self._hold()
        pages = self.state.here
        return self.state.pinned + sum(self._tokens(pages[page]) for page in self._last)

    def arrive(self, tokens_max: int) -> None:
        """Shows what no call has shown yet and is larger than it may be as far as it fits, at the lowest level."""
        for page in self.state.unseen:
            held = self.state.here[page]
            if held.tokens > tokens_max and not held.pinned and may_shorten(held):
                self._shorten(held, tokens_max)

    def _shorten(self, held: Held, tokens_max: int) -> None:
        wanted = held.level + 1
        while wanted < len(held.forms):
            level = held.made(wanted)
            if level is None:
                self.requests.append(Compression(held.page, wanted))
                return
            form = held.forms[level]
            if form is not None and form.tokens <= tokens_max:
                self._levels[held.page] = Level(level)
                step = Step(0, Level(level), held.tokens - form.tokens)
                self._write({held.page: step}, [], held.tokens - tokens_max, Cause.ARRIVAL, 0)
                return
            wanted = level + 1

    # ---- who may go

    def _free(self) -> Iterator[tuple[Scored, Level | None]]:
        """What no rule holds, in the policy's order, each as far as it goes for ordinary pressure."""
        for scored in self._victims():
            if scored.page not in self._back and scored.page not in self._last:
                yield scored, self._step(self.state.pages[scored.page])

    def _guarded(self) -> Iterator[tuple[Scored, Level | None]]:
        for scored in self._victims():
            if scored.page in self._back and scored.page not in self._last:
                yield scored, self._step(self.state.pages[scored.page])

    def _window(self) -> Iterator[tuple[Scored, Level | None]]:
        for level in (Level.ABSTRACT, Level.REFERENCE, None):
            for page in self._last:
                held = self.state.here.get(page)
                if held is not None and (level is None or (held.level < level and may_shorten(held))):
                    yield Scored(0, page), level

    def _victims(self) -> Iterator[Scored]:
        assert self.state.policy is not None
        return self.state.policy.victims(self.state.now)

    def _step(self, held: Held) -> Level | None:
        """What ordinary pressure makes of a page: an abstract of a full one, then nothing."""
        settings = self.state.settings
        if settings is not None and settings.compress and held.level < Level.ABSTRACT and may_shorten(held):
            return Level.ABSTRACT
        return None

    # ---- taking

    def _take(self, need: int, cause: Cause, winner: int, pages: Iterable[tuple[Scored, Level | None]]) -> None:
        """Takes pages in order until `need` tokens are free; the three after them are the nearest losers."""
        chosen: dict[int, Step] = {}
        losers: list[tuple[int, int]] = []
        freed = 0
        for scored, level in pages:
            page = scored.page
            held = self.state.pages[page]
            if held.pinned or page in self.kept or page == winner or self._is_gone(page):
                continue
            if freed < need:
                level, gain = self._gain(held, level)
                before = chosen.get(page)
                chosen[page] = Step(scored.score, level, gain + (before.gain if before else 0))
                self._levels[page] = level
                freed += gain
            elif len(losers) < LOSERS and page not in chosen:
                losers.append((scored.score, page))
            else:
                break
        if chosen:
            self._write(chosen, losers, need, cause, winner)

    def _is_gone(self, page: int) -> bool:
        return page in self._levels and self._levels[page] is None

    def _tokens(self, held: Held) -> int:
        """What a page takes as decided so far."""
        level = self._levels.get(held.page, held.level)
        form = held.forms[held.level if level is None else level]
        return 0 if level is None or form is None else form.tokens

    def _gain(self, held: Held, level: Level | None) -> tuple[Level | None, int]:
        """The level a page really goes to, and the tokens that frees; asks for a form where none was made."""
        now = self._tokens(held)
        if level is None:
            return None, now
        shorter = held.made(level)
        if shorter is None:
            self.requests.append(Compression(held.page, level))
            return level, now - now // GUESS
        form = held.forms[shorter]
        assert form is not None
        return (Level(shorter), now - form.tokens) if form.tokens < now else (None, now)

    def _write(
        self, chosen: dict[int, Step], losers: list[tuple[int, int]], need: int, cause: Cause, winner: int
    ) -> None:
        state = self.state
        assert state.policy is not None
        free = len(state.here) - state.pinned_pages - len(self._back | self._last)
        cutoff = max(step.score for step in chosen.values())
        why = Why(
            state.policy.NUMBER, state.budget, self.used, need, winner, max(free, len(chosen)), cutoff, tuple(losers)
        )
        first = 0
        for page, (score, level, gain) in chosen.items():
            if page in self._last and page not in self._yielded and state.pages[page].yields != state.turn:
                self._yielded[page] = None
                self.decided.append(Unpin(page, Holder.TURNS, None if first else why))
            form = None if level is None else state.pages[page].forms[level]
            content = None if form is None else form.position
            told = None if first else why
            self.decided.append(Evict(page, cause, gain, score, level, content, told, first))
            first = first or state.position + len(self.decided)
            self.used -= gain
