"""The tags of a session's turns, kept for its lane: the next question of them reads what was tagged since."""

from __future__ import annotations

from collections.abc import Iterable

from vmstore.tags.history import TagHistory
from vmstore.views.branch import Branch, BranchRange
from vmstore.views.reads.tags import aliases, tag_changes, turns_of_pages

WALK = "topics"


class _TagWalk:
    """The tags of the turns of a stretch up to where it was read; with which aliases, and after which erasure."""

    def __init__(self, ends: dict[str, str], erasure: int) -> None:
        self.ends, self.erasure = ends, erasure
        self.history = TagHistory()
        self.high = -1
        self._tags: dict[int, dict[str, None]] = {}  # of each page
        self._turn: dict[int, int] = {}
        self._pages: dict[int, dict[int, None]] = {}  # of each turn those that have, or had, a tag

    def read(self, lane: Branch, stretch: BranchRange) -> None:
        """Takes in what was tagged in a stretch since it was read last."""
        touched: dict[int, None] = {}
        for tag, page, held, _ in tag_changes(lane, stretch, max(self.high, stretch.low)):
            tags = self._tags.setdefault(page, {})
            if held:
                tags[tag] = None
            else:
                tags.pop(tag, None)
            touched[page] = None
        for page, turn in turns_of_pages(lane, {page for page in touched if page not in self._turn}).items():
            self._turn[page] = turn
            self._pages.setdefault(turn, {})[page] = None
        for turn in sorted({self._turn[page] for page in touched}):
            names = (name for page in self._pages[turn] for name in self._tags[page])
            self.history.put(turn, (self.ends.get(name, name) for name in names))
        self.high = max(self.high, stretch.high)


def tagged_turns(lane: Branch, position: int, erasure: int) -> tuple[TagHistory, dict[str, str]]:
    """The tags of the turns at a position, and what names count as; `erasure` is the last one, after which all is read.

    What is handed out is kept: nobody changes it.
    """
    ends = aliases(lane, position)
    stretches: list[BranchRange] = list(reversed(lane.upto(position)))
    key = WALK, stretches[-1].session
    walk: _TagWalk | None = lane.walks.get(key)
    is_own = len(stretches) == 1
    if walk is None or not is_own or walk.ends != ends or walk.erasure != erasure or walk.high > stretches[-1].high:
        is_past = walk is not None and is_own and walk.high > stretches[-1].high
        walk = _TagWalk(ends, erasure)
        if is_own and not is_past:
            lane.walks[key] = walk
    _read(walk, lane, stretches)
    return walk.history, ends


def _read(walk: _TagWalk, lane: Branch, stretches: Iterable[BranchRange]) -> None:
    for stretch in stretches:
        if stretch.high > walk.high:
            walk.read(lane, stretch)
