"""Quotes: where something was said in these words, or nearly, with who said it and when."""

from __future__ import annotations

from typing import Final

from vmstore.core.address import page_name
from vmstore.core.page import Role
from vmstore.core.text.tokenizer import words
from vmstore.namespace.namespace import Namespace
from vmstore.relevance.words import Analyzer
from vmstore.search.passages import RankedText, folded, page_facts
from vmstore.search.place import rules_of
from vmstore.store.reads.search import Moments
from vmstore.store.recall.recall import FoundTexts
from vmstore.store.recall.results import FoundQuote, FoundQuotes
from vmstore.views.reads.annotations import notes_of

QUOTES_MAX: Final = 20
EXCERPT_CHARS = 240
LEAD_CHARS = 80  # of an excerpt, before what was found
_ROLES = {int(role): role.word for role in Role}


def quotes(ns: Namespace, moments: Moments, answer: FoundTexts, text: str) -> FoundQuotes:
    """The best quotes of some hits, those that hold the text as it is first; what is said twice is quoted once."""
    wanted = _plain(text)
    names = {lane.session: name for name, lane, _ in moments}
    positions = {lane.session: position for _, lane, position in moments}
    with ns.asking():
        spoken = (stretch.session for _, lane, position in moments for stretch in lane.upto(position))
        rules = rules_of(ns.languages, spoken)
    saying = _saying(answer.hits, text, wanted, rules)
    hits, _ = folded(saying or answer.hits)  # where none says it, those found in spite of a typo, or as close to it
    ordered = sorted(hits, key=lambda hit: wanted not in _plain(hit.text))[:QUOTES_MAX]  # stable: by score within
    best = max((hit.score for hit in ordered), default=1.0) or 1.0
    with ns.asking():
        facts = page_facts(ordered, 0)
        tags = _tags(ordered, positions)
    found = []
    for hit in ordered:
        known = facts[hit.lane.session, hit.page]
        is_exact = wanted in _plain(hit.text)
        found.append(
            FoundQuote(
                page_name(hit.page),
                names[hit.lane.session],
                known.at,
                _ROLES[known.role],
                "exact" if is_exact else "words" if saying else "similar",
                excerpt(hit.text, text, is_exact),
                tags[hit.lane.session, hit.page],
                round(max(hit.score, 0.0) / best, 6),
            )
        )
    return FoundQuotes(found, answer.total, answer.note)


def _saying(hits: list[RankedText], text: str, wanted: str, words_of: Analyzer) -> list[RankedText]:
    """The hits that have a word of a text, or hold it as it is."""
    terms = _terms(text, words_of)
    return [hit for hit in hits if wanted in _plain(hit.text) or not terms.isdisjoint(_terms(hit.text, words_of))]


def _terms(text: str, words_of: Analyzer) -> set[str]:
    forms = words_of.forms(text)
    return {term for form in forms for term in form.terms} or {term for form in forms for term in form.stops}


def excerpt(text: str, wanted: str, is_exact: bool) -> str:
    """A line of a text around what was looked for: the text itself, or the first of its words."""
    line = " ".join(text.split())
    low = line.lower()
    at = low.find(_plain(wanted)) if is_exact else -1
    if at < 0:
        places = [place for word in dict.fromkeys(words(wanted)) if (place := low.find(word)) >= 0]
        at = min(places, default=0)
    start = max(0, at - LEAD_CHARS)
    if start:
        start = line.find(" ", start, at) + 1 or start
    cut = line[start : start + EXCERPT_CHARS]
    return ("…" if start else "") + cut + ("…" if start + len(cut) < len(line) else "")


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _tags(hits: list[RankedText], positions: dict[int, int]) -> dict[tuple[int, int], list[str]]:
    found: dict[tuple[int, int], list[str]] = {}
    for lane in {hit.lane.session: hit.lane for hit in hits}.values():
        pages = [hit.page for hit in hits if hit.lane.session == lane.session]
        notes = notes_of(lane, positions[lane.session], pages)
        found.update({(lane.session, page): list(notes[page].tags) if page in notes else [] for page in pages})
    return found
