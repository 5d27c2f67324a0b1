"""Selects pages for a window smaller than L0, with the level of each, and reasons for those left out.

What feels like a conversation comes first: the newest turns as they were said, one summary for
each older segment, then what is known, then older talk. What instructs, the plan and pins are
never left out; whatever else is can still be loaded by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmstore.core.page import Level, PageType, Role
from vmstore.errors import InputError
from vmstore.vm.assembly.choice import LoweredPage, OmittedPage, RoomChoice, lowered_of, smallest
from vmstore.vm.protocol.abi import WEIGHTS_PPM
from vmstore.vm.protocol.prompt_page import PromptPage

TURNS = 3
SUMMARY_LEVEL = 2

SAME_ORIGIN = "shown as another page"
LONELY = "its result is left out"
SUMMARISED = "its segment has a summary"


class Selection(NamedTuple):
    """Selected pages in the order they came in, pages shown at a lower level, and pages left out."""

    shown: tuple[PromptPage, ...]
    lowered: tuple[LoweredPage, ...]
    left: tuple[OmittedPage, ...]
    tokens: int
    budget: int


def select(leaves: Sequence[PromptPage], budget: int, *, turns: int = TURNS) -> Selection:
    """The pages for a window of `budget` tokens; the newest `turns` turns are shown as they are where they fit.

    Raises InputError where what may not be left out is too large in its smallest form.
    """
    choice = _Choice(leaves, budget)
    choice.take_required()
    choice.take_turns(turns)
    choice.take_summaries()
    choice.take_rest()
    choice.leave_lonely_calls()
    return choice.selection(leaves)


class _Choice(RoomChoice[PromptPage]):
    """The choice for a window, class by class."""

    def __init__(self, leaves: Sequence[PromptPage], budget: int) -> None:
        self._budget = budget
        self._newest = max((leaf.turn for leaf in leaves), default=0)
        self._rank = {leaf.name: rank for rank, leaf in enumerate(leaves)}
        assert len(self._rank) == len(leaves), "a page is given once"
        self._results = {leaf.call_id for leaf in leaves if leaf.is_result}
        super().__init__((), budget)
        self.open = {leaf.name: self._as_spoken(leaf) for leaf in self._one_of_each(leaves)}

    def take_required(self) -> None:
        """Takes the mandatory pages, each at the highest level that fits."""
        required = [leaf for leaf in self.open.values() if _is_required(leaf)]
        # What gives way first: other pins, then the plan, then what instructs; of each the least important.
        required.sort(key=lambda leaf: (leaf.instructs, leaf.task, leaf.importance, -leaf.tokens))
        if not self.take_all(required):
            least = sum(smallest(leaf).tokens for leaf in required)
            names = ", ".join(leaf.name for leaf in required[:5])
            raise InputError(
                f"a window of {self._budget} tokens cannot hold what may not be left out ({names}: {least} tokens in "
                "the smallest form); widen it, or unpin some",
                code="over-budget",
            )

    def take_turns(self, turns: int) -> None:
        """The newest turns as they were said; where they do not fit, levels go first, then whole turns."""
        for first in range(self._newest - turns + 1, self._newest + 1):
            window = [leaf for leaf in self.open.values() if leaf.turn >= first and _is_talk(leaf)]
            window.sort(key=lambda leaf: (leaf.turn, -leaf.tokens, self._rank[leaf.name]))
            if self.take_all(window):
                return
        # Not even the newest turn fits: its question first, then what came last.
        newest = [leaf for leaf in self.open.values() if leaf.turn == self._newest and _is_talk(leaf)]
        newest.sort(key=lambda leaf: (leaf.role is not Role.USER, -self._rank[leaf.name]))
        self.take_each(newest)

    def take_summaries(self) -> None:
        """One summary for each older segment, the newest segment first; the pages it stands for stay out."""
        if self.fits():
            return
        newest: dict[int, PromptPage] = {}
        for leaf in self.open.values():
            if leaf.type is PageType.SUMMARY and leaf.segment:
                newest[leaf.segment] = leaf
        for segment in sorted(newest, reverse=True):
            summary = newest[segment]
            self.take_each([_abstract(summary)])
            if summary.name in self.taken:
                for leaf in [leaf for leaf in self.open.values() if leaf.segment == segment and _is_summarised(leaf)]:
                    self.leave(leaf, SUMMARISED, summary.name)

    def take_rest(self) -> None:
        """All that is left where it fits; else what is known, then older talk, each by its score."""
        if self.fits():
            self.take(list(self.open.values()))
        known = [leaf for leaf in self.open.values() if not _is_talk(leaf)]
        talk = [leaf for leaf in self.open.values() if _is_talk(leaf)]
        self.take_each(sorted(known, key=self._by_score))
        self.take_each(sorted(talk, key=self._by_score))
        for leaf in list(self.open.values()):
            self.leave(leaf)

    def leave_lonely_calls(self) -> None:
        """No tool call without its result: where that is out, the call goes too."""
        shown = {leaf.call_id for leaf in self.taken.values() if leaf.is_result}
        for leaf in list(self.taken.values()):
            has_result = leaf.is_call and leaf.call_id in self._results
            if has_result and leaf.call_id not in shown and not _is_required(leaf):
                self.give_back(leaf, LONELY)

    def selection(self, leaves: Sequence[PromptPage]) -> Selection:
        """The selection, in the order the pages came in."""
        assert not self.open, "every page is decided"
        shown = tuple(self.taken[leaf.name] for leaf in leaves if leaf.name in self.taken)
        lowered = lowered_of(leaves, self.taken)
        left = tuple(self.omitted[leaf.name] for leaf in leaves if leaf.name in self.omitted)
        tokens = sum(leaf.tokens for leaf in shown)
        assert tokens <= self._budget, "the window holds what was chosen"
        return Selection(shown, lowered, left, tokens, self._budget)

    def _one_of_each(self, leaves: Sequence[PromptPage]) -> list[PromptPage]:
        """Keeps one of a page and its stand-in: a pinned one, the page in its own turn, else the stand-in."""
        roots = _roots(leaves)
        chosen: dict[str, PromptPage] = {}
        for leaf in leaves:
            other = chosen.get(roots[leaf.name])
            if other is None or self._preference(leaf) > self._preference(other):
                chosen[roots[leaf.name]] = leaf
        kept = [leaf for leaf in leaves if chosen[roots[leaf.name]] is leaf]
        for leaf in leaves:
            best = chosen[roots[leaf.name]]
            if best is not leaf:
                self.omitted[leaf.name] = OmittedPage(leaf.name, leaf.tokens, SAME_ORIGIN, best.name)
        return kept

    def _preference(self, leaf: PromptPage) -> tuple[bool, bool, bool, int]:
        is_wanted = not leaf.origin and leaf.turn == self._newest
        return _is_required(leaf), is_wanted, bool(leaf.origin), self._rank[leaf.name]

    def _as_spoken(self, leaf: PromptPage) -> PromptPage:
        """Media in words, unless it was brought or asked for in the newest turn, or is pinned as it is."""
        if not leaf.is_media or leaf.turn == self._newest or leaf.pinned:
            return leaf
        spoken = leaf.caption()
        return spoken if spoken.level < Level.REFERENCE else leaf  # which only says what kind of thing it is

    def _by_score(self, leaf: PromptPage) -> tuple[int, int]:
        weighed = leaf.importance * WEIGHTS_PPM[leaf.modality] // 1_000_000
        return -(weighed // (1 + self._newest - leaf.turn)), -self._rank[leaf.name]


def _roots(leaves: Sequence[PromptPage]) -> dict[str, str]:
    """The page that each page stands for in the end: itself, or what its stand-ins lead to."""
    origins = {leaf.name: leaf.origin for leaf in leaves}
    roots = {}
    for name in origins:
        path = [name]
        while (origin := origins.get(path[-1])) and origin not in path:
            path.append(origin)
        # Pages that stand for each other in a circle are one page, whichever is asked.
        roots[name] = min(path[path.index(origin) :]) if origin else path[-1]
    return roots


def _is_required(leaf: PromptPage) -> bool:
    return leaf.instructs or leaf.task or leaf.pinned


def _is_talk(leaf: PromptPage) -> bool:
    return leaf.type in (PageType.TRANSCRIPT, PageType.ARTIFACT, PageType.RAW)


def _is_summarised(leaf: PromptPage) -> bool:
    return _is_talk(leaf) or leaf.type is PageType.SUMMARY


def _abstract(leaf: PromptPage) -> PromptPage:
    return leaf.at(SUMMARY_LEVEL) if SUMMARY_LEVEL in leaf.levels and leaf.level < SUMMARY_LEVEL else leaf
