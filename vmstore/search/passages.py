"""Passages: the best answers of a search with what was said just before and after them, within a token budget.

A text that stands in several places is shown once. Neighbours take a third of the budget at most, so that
they never crowd out what was found.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import Modality, Role
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN, estimate
from vmstore.core.text.tokenizer import readable
from vmstore.errors import InputError
from vmstore.log.port import Log
from vmstore.search.blend import answers
from vmstore.search.rank import answering
from vmstore.views.branch import Branch
from vmstore.views.stored_cells import read_cells

if TYPE_CHECKING:
    from vmstore.relevance.closeness import Closeness
    from vmstore.search.moment import MomentTexts
    from vmstore.search.naive import NaiveTexts

HITS_READ = 1_000  # texts of the best answers; more are counted
HITS_MAX = 256  # looked at: more fit no prompt
REACH = 8  # pages to each side, among which the neighbours are
TOKENS_MIN = 12  # of a text that is cut short: less says nothing
NEIGHBOUR_TOKENS_MAX = 120  # what is longer is no mere answer or question
NEIGHBOURS_SHARE = 3  # of the budget a third
_SPEAKERS = (int(Role.USER), int(Role.ASSISTANT))
Place = tuple[int, int]
"""A lane, by its session, and a page."""


class RankedText(NamedTuple):
    """A page that answers a query, best first: its score, in which lane, what is in force of it."""

    score: float
    lane: Branch
    page: int
    version: int
    position: int
    text: str


def ranked_texts(
    texts: MomentTexts | NaiveTexts,
    moments: Sequence[tuple[Branch, int]],
    query: str,
    allowed: Container[Place] | None = None,
    closeness: Closeness | None = None,
    read_max: int = HITS_READ,
    score: str | None = None,
) -> tuple[list[RankedText], int]:
    """The best pages that answer a query, best first, and how many answer it; every search by words is ranked here.

    `texts` are those of the lanes at their moments; `allowed` are the pages looked at, by who made them, where not
    all are. The best `read_max` are given back, more are counted. InputError where the query has no word.
    """
    hits = answers(texts, moments, query, read_max if allowed is None else None, closeness=closeness, score=score)
    if allowed is not None:
        hits = [hit for hit in hits if (moments[hit.lane][0].owner(hit.page), hit.page) in allowed]
    lines = texts.texts([hit.row for hit in hits[:read_max]])
    found = [
        RankedText(hit.score, moments[hit.lane][0], hit.page, hit.version, hit.position, line)
        for hit, line in zip(hits[:read_max], lines, strict=True)
    ]
    return found, len(hits) if allowed is not None else _total(texts, query, len(hits))


def _total(texts: MomentTexts | NaiveTexts, query: str, found: int) -> int:
    """How many pages have a word of a query; all that were found where none has: by a typo forgiven, by closeness."""
    try:
        return (answering(texts, query) or found) if found else 0
    except InputError:  # it has no word
        return found


class TextOrigin(NamedTuple):
    """What is known of a page beside its text."""

    message: int
    role: int
    at: int


class PlacedText(NamedTuple):
    """A page and what it says: who speaks, since when; its score, None where it only stands beside a hit.

    `whole` says whether this is all of it.
    """

    page: int
    role: int
    at: int
    text: str
    tokens: int
    score: float | None
    whole: bool = True


class FoundPassage(NamedTuple):
    """Texts of one lane that follow each other, the score of the best, how many more places say that best one."""

    lane: Branch
    texts: tuple[PlacedText, ...]
    score: float
    copies: int


class FoundPassages(NamedTuple):
    """Passages best first, the tokens they take, and how many of the hits did not fit."""

    passages: list[FoundPassage]
    tokens: int
    left_out: int


class _Choice:
    """What was chosen so far, by place."""

    def __init__(self, tokens_max: int) -> None:
        self.left = tokens_max
        self.beside = tokens_max // NEIGHBOURS_SHARE
        self.texts: dict[Place, PlacedText] = {}
        self.lanes: dict[int, Branch] = {}
        self._said: set[str] = set()

    def take(self, lane: Branch, text: PlacedText) -> bool:
        """Takes a text in if it fits."""
        is_beside = text.score is None
        says = " ".join(text.text.split())
        if is_beside and says in self._said:
            return False
        if text.tokens > (min(self.left, self.beside) if is_beside else self.left):
            return False
        self._said.add(says)
        self.texts[lane.session, text.page] = text
        self.lanes[lane.session] = lane
        self.left -= text.tokens
        self.beside -= text.tokens if is_beside else 0
        return True


def folded(hits: Iterable[RankedText]) -> tuple[list[RankedText], dict[Place, int]]:
    """The hits without those that say what a better one says, and of which place how many more say the same."""
    first: dict[str, Place] = {}
    copies: dict[Place, int] = {}
    kept = []
    for hit in hits:
        place = first.setdefault(" ".join(hit.text.split()), (hit.lane.session, hit.page))
        if place == (hit.lane.session, hit.page):
            kept.append(hit)
        else:
            copies[place] = copies.get(place, 0) + 1
    return kept, copies


def passages(
    log: Log, positions: Mapping[int, int], hits: Sequence[RankedText], tokens_max: int, *, windows: bool = True
) -> FoundPassages:
    """The best hits that fit a budget, each with its neighbours if `windows`; `positions` are the lanes' moments.

    What is longer than what is left is cut where it fits no other way, so that a budget never gives nothing.
    """
    kept, copies = folded(hits)
    choice = _Choice(tokens_max)
    known = page_facts(kept[:HITS_MAX], REACH if windows else 0)
    near = _Neighbours(log, positions, kept[:HITS_MAX], known) if windows else None
    fitted = 0
    for hit in kept[:HITS_MAX]:
        place = hit.lane.session, hit.page
        _, role, at = known.get(place, TextOrigin(0, int(Role.OTHER), 0))
        beside = choice.texts.get(place)
        tokens = _tokens(hit.text) if beside is None else 0
        text = PlacedText(hit.page, role, at, hit.text, tokens, hit.score)
        if beside is not None:  # it was shown beside a better one
            choice.texts[place] = text._replace(tokens=beside.tokens)
        elif not choice.take(hit.lane, text) and (fitted or not _cut(choice, hit.lane, text)):
            continue
        fitted += 1
        for other in near.beside(hit) if near is not None else ():
            if (hit.lane.session, other.page) not in choice.texts:
                choice.take(hit.lane, other)
    return FoundPassages(_joined(choice, copies), tokens_max - choice.left, len(kept) - fitted)


def _cut(choice: _Choice, lane: Branch, text: PlacedText) -> bool:
    """Takes the beginning of a text that fits as a whole nowhere."""
    if choice.left < TOKENS_MIN:
        return False
    part = text.text[: (choice.left - 1) * CHARACTERS_PER_TOKEN] + "…"
    return choice.take(lane, text._replace(text=part, tokens=_tokens(part), whole=False))


def _joined(choice: _Choice, copies: Mapping[Place, int]) -> list[FoundPassage]:
    """Texts of a lane that follow each other as one passage, best first."""
    runs: list[list[Place]] = []
    for place in sorted(choice.texts):
        last = runs[-1][-1] if runs else (0, 0)
        if last[0] == place[0] and place[1] - last[1] <= REACH:
            runs[-1].append(place)
        else:
            runs.append([place])
    made = []
    for run in runs:
        texts = tuple(choice.texts[place] for place in run)
        score = max(text.score for text in texts if text.score is not None)
        made.append(FoundPassage(choice.lanes[run[0][0]], texts, score, sum(copies.get(place, 0) for place in run)))
    return sorted(made, key=lambda passage: (-passage.score, passage.lane.session, passage.texts[0].page))


class _Neighbours:
    """What was said just before and after some hits, read at once."""

    def __init__(
        self, log: Log, positions: Mapping[int, int], hits: Sequence[RankedText], known: Mapping[Place, TextOrigin]
    ) -> None:
        self._known = known
        self._near: dict[Place, list[int]] = {}
        self._texts: dict[Place, str] = {}
        for hit in hits:
            place = hit.lane.session, hit.page
            self._near[place] = [page for step in (-1, 1) if (page := self._nearest(place, step))]
        for lane, places in _by_lane(hits, self._near).items():
            pages = {page for place in places for page in self._near[place]}
            self._texts.update(((lane.session, page), text) for page, text in texts_of(log, lane, positions, pages))

    def _nearest(self, place: Place, step: int) -> int:
        """The next page to one side that belongs to another message of user or assistant; 0 where none is near."""
        session, page = place
        own = self._known.get(place)
        for other in range(page + step, page + step * (REACH + 1), step):
            facts = self._known.get((session, other))
            if facts is not None and facts.role in _SPEAKERS and facts.message not in (0, own.message if own else 0):
                return other
        return 0

    def beside(self, hit: RankedText) -> list[PlacedText]:
        """The neighbours of a hit that are short enough to be shown with it."""
        texts = []
        session = hit.lane.session
        for page in self._near[session, hit.page]:
            text = self._texts.get((session, page), "")
            if text.strip() and (tokens := _tokens(text)) <= NEIGHBOUR_TOKENS_MAX:
                facts = self._known[session, page]
                texts.append(PlacedText(page, facts.role, facts.at, text, tokens, None))
        return texts


def neighbours(
    log: Log, positions: Mapping[int, int], hits: Sequence[RankedText]
) -> Iterator[tuple[RankedText, list[PlacedText]]]:
    """Each of some hits with what was said just before and after it, where that is short."""
    near = _Neighbours(log, positions, hits, page_facts(hits, REACH))
    return ((hit, near.beside(hit)) for hit in hits)


def _by_lane(hits: Sequence[RankedText], places: Iterable[Place]) -> dict[Branch, list[Place]]:
    lanes = {hit.lane.session: hit.lane for hit in hits}
    grouped: dict[Branch, list[Place]] = {}
    for place in places:
        grouped.setdefault(lanes[place[0]], []).append(place)
    return grouped


def page_facts(hits: Sequence[RankedText], reach: int) -> dict[Place, TextOrigin]:
    """What is known of the pages of some hits, and of those up to `reach` beside them."""
    known: dict[Place, TextOrigin] = {}
    for lane, places in _by_lane(hits, ((hit.lane.session, hit.page) for hit in hits)).items():
        pages = {near for _, page in places for near in range(max(1, page - reach), page + reach + 1)}
        for page, *row in lane.rows(_PAGES, sorted(pages)):
            known[lane.session, page] = TextOrigin(*row)
    return known


def texts_of(log: Log, lane: Branch, positions: Mapping[int, int], pages: Iterable[int]) -> Iterator[tuple[int, str]]:
    """What some pages of a lane say at its moment, those that are text."""
    listed = json.dumps(sorted(pages))
    last: dict[int, tuple[int, int | None, bytes | None]] = {}
    for stretch in lane.upto(positions[lane.session]):
        args = (stretch.session, listed, stretch.low, stretch.high)
        for page, position, cell, commitment in lane.db.execute(_CONTENTS, args):
            if page not in last or position >= last[page][0]:
                last[page] = position, cell, commitment
    sealed = {cell: commitment for _, cell, commitment in last.values() if cell is not None}
    cells = read_cells(log, lane.db, sealed, gone)
    for page, (_, cell, _) in sorted(last.items()):
        content = None if cell is None else cells[cell]
        text = None if content is None or isinstance(content, ErasedContent) else readable(content)
        if text is not None:
            yield page, text


def _tokens(text: str) -> int:
    return estimate(text.encode("utf-8", "surrogatepass"), Modality.TEXT)


_PAGES = """SELECT page, coalesce(message, 0), role, at FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_CONTENTS = """SELECT page, position, cell, commitment FROM versions
  WHERE session = ? AND page IN (SELECT value FROM json_each(?)) AND position > ? AND position <= ? AND level = 0
  ORDER BY position"""
