"""The recalls of a session as the views have them, and what was used of each.

Assembled prompts are among them, with the choices in which a page stood: as one that was shown, or as one of the
nearest that were not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from vmstore.core.decision import Cite, PromptContest, PromptPart, Reference, Search
from vmstore.core.recalls import USES, RecallTally, TalliedRecall
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import Decision, decided
from vmstore.views.reads.reasons import word_of
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
            recall = tally.recalled(first.position, turn(first.position), first.reason or 0, pages, first.tokens or 0)
            recall.scores = {row.page: row.score for row in search if row.score is not None}
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


class PagePlace(NamedTuple):
    """A page in the choice of an assembled prompt: its place among the pages shown or the losers, from 1."""

    position: int
    contest: PromptContest
    place: int
    is_shown: bool


def places_of(lane: Branch, page: int, position: int) -> Iterator[PagePlace]:
    """The choices a page stood in up to a position, in order; the cost grows with the prompts that were logged."""
    for stretch in reversed(lane.upto(position)):
        rows: list[Any] = lane.db.execute(_PROMPTS, (page, stretch.session, stretch.high)).fetchall()
        for at, text, rank in rows:
            contests = [_contest(fields) for fields in json.loads(text)]
            yield from _places(at, contests, page, rank)


def _places(position: int, contests: list[PromptContest], page: int, rank: int | None) -> Iterator[PagePlace]:
    """The places of a page in one prompt: its rank among those found says in which part, else the losers name it."""
    before = 0
    for contest in contests:
        if rank is not None and before < rank <= before + contest.pages:
            yield PagePlace(position, contest, rank - before, True)
        places = [place for place, (_, loser) in enumerate(contest.losers, 1) if loser == page]
        if rank is None and places:
            yield PagePlace(position, contest, places[0], False)
        before += contest.pages


def _contest(fields: list[object]) -> PromptContest:
    *numbers, losers = fields
    assert isinstance(losers, list), "a contest ends with its losers"
    return PromptContest._make((*numbers, tuple(map(tuple, losers))))


def place_in_words(found: PagePlace) -> str:
    """An assembled prompt's choice about a page: its part, its place in it, the room of that part, and who lost."""
    contest = found.contest
    part = word_of(PromptPart, contest.part)
    of = f"{contest.candidates:,} candidate{'s' * (contest.candidates != 1)}, {contest.used:,} tokens shown of a budget"
    of += f" of {contest.budget:,}"
    if not found.is_shown:
        score = contest.losers[found.place - 1][0]
        least = f"; the least score shown was {contest.cutoff / PPM:.3f}" if contest.pages else ""
        return f"not in an assembled prompt: {part}, score {score / PPM:.3f}, {of}{least}"
    losers = ", ".join(f"p{page} {score / PPM:.3f}" for score, page in contest.losers)
    nearest = f"; nearest not shown: {losers}" if losers else ""
    least = f"the least score shown was {contest.cutoff / PPM:.3f}"
    return f"in an assembled prompt: {part}, page {found.place} of {contest.pages}, {of}; {least}{nearest}"


def place_json(found: PagePlace) -> str:
    """The choice as JSON."""
    contest = found.contest
    fields = {**contest._asdict(), "part": word_of(PromptPart, contest.part), "shown": found.is_shown}
    fields["losers"] = [{"page": f"p{page}", "score": score} for score, page in contest.losers]
    return json.dumps(fields)


PPM = 1_000_000
_PROMPTS = """SELECT p.position, p.contests, d.word FROM prompts p
  LEFT JOIN decisions d ON d.session = p.session AND d.position = p.position AND d.page = ?
  WHERE p.session = ? AND p.position <= ? ORDER BY p.position"""
