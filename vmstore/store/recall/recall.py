"""What the memory of sessions holds of some words or of some time, as passages within a token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.page import PageType, Role, Standing
from vmstore.errors import InputError
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import (
    HITS_READ,
    FoundPassages,
    RankedText,
    page_facts,
    passages,
    ranked_texts,
    texts_of,
)
from vmstore.store.reads.search import Moments, question_of
from vmstore.store.recall.periods import Period
from vmstore.store.recall.results import NamedTime, NamedTimes, Passage, RecallAnswer, RecalledText
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.redactions import barred_files
from vmstore.views.reads.annotations import notes_of

QUERY_CHARS_MAX = 10_000  # of a query: more says no better what is looked for
TOKENS_MAX = 1_000_000
TEXTS_MAX = 10_000  # of a time that no words narrow: more fit no budget
_ROLES = {int(role): role.word for role in Role}
Untold = Callable[[Branch, Sequence[int]], frozenset[int]]
"""Answers which of some pages of a lane nobody is told of; who asks holds no lock."""


class FoundTexts(NamedTuple):
    """The texts that answer a query, best first, and what was done where it is not what was asked."""

    hits: list[RankedText]
    note: str
    answering: int = 0
    """How many pages answer, where more do than were read."""

    @property
    def total(self) -> int:
        """How many pages answer."""
        return self.answering or len(self.hits)


def budget(tokens: int) -> int:
    """A token budget, checked."""
    if type(tokens) is not int or not 1 <= tokens <= TOKENS_MAX:
        raise InputError(f"{tokens!r:.60} is no token budget; give a count from 1 to {TOKENS_MAX:,}")
    return tokens


def found(
    ns: Namespace, moments: Moments, query: str, read_max: int = HITS_READ, score: str | None = None
) -> FoundTexts:
    """The best `read_max` texts that answer a query; where it has no word, those that hold it as it is written."""
    if not isinstance(query, str):
        raise InputError(f"a query is a text, and {query!r:.60} is none")
    if not query.strip():
        raise InputError("the query is empty; say what is looked for")
    note = ""
    if len(query) > QUERY_CHARS_MAX:
        note = f"only the first {QUERY_CHARS_MAX:,} of {len(query):,} characters were looked for"
        query = query[:QUERY_CHARS_MAX]
    question = question_of(ns, query)
    with ns.asking():
        lanes = [(lane, position) for _, lane, position in moments]
        texts = ns.texts(lanes)
        closeness, said = ns.closeness.of(question, lanes, texts) if question is not None else (None, None)
        note = "; ".join(part for part in (note, said) if part)
        try:
            hits, total = ranked_texts(texts, lanes, query, closeness=closeness, read_max=read_max, score=score)
        except InputError:  # it has no word: signs
            hits = _written(ns, moments, query.strip())
            total = len(hits)
            note = "the query has no word, so texts that hold it as it is written were looked for"
    if not hits:
        note = "; ".join(part for part in (note, "no page answers the query; ask with other words") if part)
    return FoundTexts(hits, note, total)


def without(answer: FoundTexts, untold: Untold) -> FoundTexts:
    """The hits except those that are reported to nobody."""
    out = {
        (lane.session, page)
        for lane in {hit.lane.session: hit.lane for hit in answer.hits}.values()
        for page in untold(lane, [hit.page for hit in answer.hits if hit.lane.session == lane.session])
    }
    hits = [hit for hit in answer.hits if (hit.lane.session, hit.page) not in out] if out else answer.hits
    if hits or not answer.hits:
        return FoundTexts(hits, answer.note, max(0, answer.total - len(answer.hits) + len(hits)))
    return FoundTexts([], "what answers was taken back or is what the memory answered before", 0)


def taken_back(ns: Namespace) -> Untold:
    """Answers which pages no prompt is told by now, in whichever session: retracted ones, and files not approved."""

    def untold(lane: Branch, pages: Sequence[int]) -> frozenset[int]:
        with ns.asking():
            notes, barred = notes_of(lane, NEVER, pages), barred_files(lane, NEVER, pages)
        return barred.union(page for page, note in notes.items() if note.status == Standing.SUPERSEDED)

    return untold


def recalled(
    ns: Namespace,
    moments: Moments,
    answer: FoundTexts,
    tokens: int,
    *,
    earliest_first: bool = False,
    windows: bool = True,
    untold: Untold,
) -> RecallAnswer:
    """The best of some hits as passages within a budget, beside none of which stands what is reported to nobody."""
    with ns.asking():
        positions = {lane.session: position for _, lane, position in moments}
        chosen = passages(ns.log, positions, answer.hits, budget(tokens), windows=windows)
    chosen = _shown(chosen, untold)
    names = {lane.session: name for name, lane, _ in moments}
    best = max((passage.score for passage in chosen.passages), default=1.0) or 1.0
    shown = [_passage(passage, names, best) for passage in chosen.passages]
    if earliest_first:
        shown.sort(key=lambda passage: (passage.at_us, passage.session))
    note = answer.note
    if answer.hits and not shown:
        note = "; ".join(part for part in (note, f"nothing fits {tokens} tokens; give more") if part)
    left_out = chosen.left_out + answer.total - len(answer.hits)
    return RecallAnswer(shown, chosen.tokens, answer.total, left_out, note)


def _shown(chosen: FoundPassages, untold: Untold) -> FoundPassages:
    """The passages without neighbours that are reported to nobody."""
    kept = []
    for passage in chosen.passages:
        out = untold(passage.lane, [text.page for text in passage.texts if text.score is None])
        texts = tuple(text for text in passage.texts if text.score is not None or text.page not in out)
        kept.append(passage._replace(texts=texts))
    return chosen._replace(passages=kept, tokens=sum(text.tokens for passage in kept for text in passage.texts))


def _passage(passage: Any, names: dict[int, str], best: float) -> Passage:
    texts = [
        RecalledText(
            page_name(text.page), _ROLES[text.role], text.at, text.text, text.tokens, text.score is not None, text.whole
        )
        for text in passage.texts
    ]
    relevance = round(max(passage.score, 0.0) / best, 6)
    return Passage(names[passage.lane.session], texts[0].at_us, relevance, texts, passage.copies)


def within(ns: Namespace, answer: FoundTexts, asked: Period) -> FoundTexts:
    """The hits that were said in a time, or that name a time in it."""
    with ns.asking():
        facts = page_facts(answer.hits, 0)
    hits = []
    for hit in answer.hits:
        known = facts.get((hit.lane.session, hit.page))
        at = 0 if known is None else known.at
        if asked.holds(at, at + 1) or asked.named_in(hit.text, at):
            hits.append(hit)
    note = answer.note
    if answer.hits and not hits:
        among = f"{answer.total} pages" if answer.total == len(answer.hits) else f"the best {len(answer.hits)} pages"
        note = f"of {among} that answer the query none is of that time; ask for another"
    return FoundTexts(hits, note)


def of_time(ns: Namespace, moments: Moments, asked: Period) -> FoundTexts:
    """All that was said in a time by user and assistant, the first said the best."""
    hits: list[RankedText] = []
    with ns.asking():
        for _, lane, position in moments:
            pages = _said(lane, position, asked)
            for page, text in texts_of(ns.log, lane, {lane.session: position}, pages):
                hits.append(RankedText(0.0, lane, page, 1, page, text))
        facts = page_facts(hits, 0)
    hits.sort(key=lambda hit: (facts[hit.lane.session, hit.page].at, hit.lane.session, hit.page))
    note = "" if hits else "nothing was said in that time; ask for another"
    return FoundTexts([hit._replace(score=1.0 / (1 + place)) for place, hit in enumerate(hits)], note)


def named_times(ns: Namespace, moments: Moments, answer: FoundTexts, asked: Period, limit: int) -> NamedTimes:
    """The times that some texts name and that have a part of another, the earliest first."""
    with ns.asking():
        facts = page_facts(answer.hits, 0)
    names = {lane.session: name for name, lane, _ in moments}
    times = []
    for hit in answer.hits:
        at_us = facts[hit.lane.session, hit.page].at
        times += [
            NamedTime(
                names[hit.lane.session], page_name(hit.page), at_us, hit.text[span.start : span.end],
                span.from_us, span.to_us, span.precision,
            )
            for span in asked.times_in(hit.text, at_us)
        ]  # fmt: skip
    times.sort(key=lambda time: (time.from_us, time.to_us, time.at_us))
    note = "" if times else "no text names such a time"
    if len(answer.hits) >= TEXTS_MAX:
        note = f"only the first {TEXTS_MAX:,} texts were read; ask as of another moment for the others"
    return NamedTimes(times[:limit], len(times), note)


def _said(lane: Branch, position: int, asked: Period) -> list[int]:
    pages: list[int] = []
    bounds = (
        0 if asked.from_us is None else asked.from_us,
        (1 << 62) if asked.to_us is None else asked.to_us,
    )
    for stretch in reversed(lane.upto(position)):
        rows: Any = lane.db.execute(_SAID, (stretch.session, stretch.low, stretch.high, *bounds, TEXTS_MAX))
        pages += [page for (page,) in rows]
    return pages[:TEXTS_MAX]


def _written(ns: Namespace, moments: Moments, written: str) -> list[RankedText]:
    """The texts that hold some signs, the latest first."""
    hits: list[RankedText] = []
    for _, lane, position in moments:
        pages = [page for stretch in lane.upto(position) for (page,) in lane.db.execute(_ALL, stretch[:3])]
        for page, text in texts_of(ns.log, lane, {lane.session: position}, pages):
            if written in text:
                hits.append(RankedText(float(text.count(written)), lane, page, 1, page, text))
    return sorted(hits, key=lambda hit: (-hit.score, hit.lane.session, -hit.page))


def types_of(hits: Sequence[RankedText]) -> dict[tuple[int, int], tuple[int, int]]:
    """Of the pages of some hits the type and the importance, in parts per million."""
    known: dict[tuple[int, int], tuple[int, int]] = {}
    lanes = {hit.lane.session: hit.lane for hit in hits}
    for session, lane in lanes.items():
        pages = sorted({hit.page for hit in hits if hit.lane.session == session})
        for page, type_, importance in lane.rows(_TYPES, pages):
            known[session, page] = type_, importance
    return known


_SPEECH = (
    f"type = {int(PageType.TRANSCRIPT)} AND message IS NOT NULL AND role IN ({int(Role.USER)}, {int(Role.ASSISTANT)})"
)
_SAID = f"""SELECT page FROM pages WHERE session = ? AND page > ? AND page <= ? AND at >= ? AND at < ? AND {_SPEECH}
  ORDER BY at, page LIMIT ?"""
_ALL = "SELECT page FROM pages WHERE session = ? AND page > ? AND page <= ?"
_TYPES = "SELECT page, type, importance FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
