"""The recalls of a session as the views have them, and what was used of each."""

from __future__ import annotations

from vmstore.core.decision import Cite, Reference, Search
from vmstore.core.recalls import USES, RecallTally, TalliedRecall
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import Decision, decided
from vmstore.views.reads.resolve_asof import moment_at


def recalls_at(lane: Branch, position: int) -> list[TalliedRecall]:
    """Every recall up to a position, in order."""
    turns: dict[int, int] = {}

    def turn(at: int) -> int:
        if at not in turns:
            turns[at] = moment_at(lane, at)[0]
        return turns[at]

    tally, search = RecallTally(), list[Decision]()

    def close() -> None:
        if search:
            first = search[0]
            pages = [row.page for row in sorted(search, key=lambda row: row.word or 0) if row.page]
            tally.recalled(first.position, turn(first.position), first.reason or 0, pages, first.tokens or 0)
            search.clear()

    for row in decided(lane, position, (Search.NUMBER, Cite.NUMBER, Reference.NUMBER)):
        if search and row.position != search[0].position:
            close()
        if row.kind == Search.NUMBER:
            search.append(row)  # a row for each page it gave
        elif row.kind == Cite.NUMBER or row.word in USES:
            tally.used(row.position, turn(row.position), row.page)
    close()
    return tally.recalls
