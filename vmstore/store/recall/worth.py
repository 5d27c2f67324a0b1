"""What recall was worth: how often a session recalled, what it was given, and how much of that was used."""

from __future__ import annotations

from typing import Any

from vmstore.core.decision import Cite, Recaller, Reference, Search, Use
from vmstore.store.recall.results import RecallWorth
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import moment_at

USED_IN = 2  # turns: that of the recall, and the next, which one before a message is for
_USES = f"{int(Use.FAULT)}, {int(Use.TOOL)}, {int(Use.QUOTE)}, {int(Use.REUSE)}"


def worth(lane: Branch, position: int) -> list[RecallWorth]:
    """One row for each way of asking, up to a position; a page that was found is used where answers after it use it."""
    searches: dict[int, tuple[int, int, list[int]]] = {}
    uses: dict[int, list[int]] = {}
    for stretch in lane.upto(position):
        rows: Any = lane.db.execute(_SEARCHES, stretch[:3])
        for at, page, recaller, tokens in rows:
            known = searches.setdefault(at, (recaller or 0, tokens or 0, []))
            known[2].extend([page] if page else [])
        for at, page in lane.db.execute(_USED, stretch[:3]):
            uses.setdefault(page, []).append(at)
    turns: dict[int, int] = {}

    def turn(at: int) -> int:
        if at not in turns:
            turns[at] = moment_at(lane, at)[0]
        return turns[at]

    sums: dict[int, list[int]] = {}
    for at, (recaller, tokens, pages) in searches.items():
        used = sum(any(at < use and turn(use) < turn(at) + USED_IN for use in uses.get(page, ())) for page in pages)
        total = sums.setdefault(recaller, [0, 0, 0, 0, 0])
        for place, count in enumerate((1, len(pages), used, int(used > 0), tokens)):
            total[place] += count
    return [RecallWorth(Recaller(number).word, *counts) for number, counts in sorted(sums.items())]


_SEARCHES = f"""SELECT position, page, reason, tokens FROM decisions
  WHERE session = ? AND position > ? AND position <= ? AND kind = {Search.NUMBER}"""
_USED = f"""SELECT position, page FROM decisions WHERE session = ? AND position > ? AND position <= ?
  AND (kind = {Cite.NUMBER} OR (kind = {Reference.NUMBER} AND word IN ({_USES})))"""
